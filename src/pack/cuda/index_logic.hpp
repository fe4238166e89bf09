// Where in memory each packed word lies: the arithmetic of every kernel, compiled for the host too.
//
// A locator answers at(word) for a word-aligned packed position and byte(k) for any packed byte. There are three:
//
//   Nest      a block in modes, at most one of them a table of offsets; its numbers travel in the kernel parameters
//   Segments  runs of differing lengths; a tile of the packed stream stages the runs it needs and searches there
//   Tree      anything else: walks the serialised layout for every word
//
// copy_tile and copy_edges are the kernels' bodies. The simulated GPU of the tests runs the same bodies in loops.
#pragma once

#include <cstddef>
#include <type_traits>

#include "layout/layout.hpp"
#include "pack/cuda/arithmetic.hpp"

namespace gapless::pack::cuda {

using layout::Offset;

inline constexpr int max_levels = 12;
inline constexpr int threads_per_block = 256;
inline constexpr int words_per_thread =
    4;  // loads in flight: one is not enough to hide memory latency below 16-byte words
inline constexpr int words_per_tile = threads_per_block * words_per_thread;
inline constexpr int max_staged_runs = 1024;
inline constexpr Offset tile_bytes_limit = words_per_tile * 16;
inline constexpr int coarse_shift =
    10;  // a tile is 1 to 16 KiB: its runs are found within a KiB on either side, unsearched

struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// A list of offsets in GPU memory, 4 or 8 bytes an entry.
struct Table {
  const void* entries;
  bool narrow;

  template <class Index>
  GAPLESS_HOST_DEVICE Offset operator[](Index i) const noexcept {
    return narrow ? Offset{static_cast<const std::int32_t*>(entries)[i]} : static_cast<const std::int64_t*>(entries)[i];
  }
};

/// First i in [low, high) with ends[i] > k. Precondition: there is one.
template <class Ends, class Index, class Position>
GAPLESS_HOST_DEVICE Index first_end_after(const Ends& ends, Index low, Index high, Position k) noexcept {
  while (low + 1 < high) {
    const Index middle = low + (high - low) / 2;
    if (ends[middle - 1] > k) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

template <class Index>
struct Level {
  Divider<Index> count;
  std::make_signed_t<Index> stride;
};

/// A nest counted in words: level 0 walks the words of a block, the last level needs no count.
template <class Index>
struct Nest {
  Level<Index> levels[max_levels];
  Table table;
  int level_count;
  int table_level;  ///< the level whose digit indexes `table`; -1 if none
  int word_shift;   ///< log2 of the bytes in a word

  /// For a level count known when compiled, and no table.
  template <int known_levels>
  GAPLESS_HOST_DEVICE Offset at_known(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    GAPLESS_UNROLL
    for (int i = 0; i + 1 < known_levels; ++i) {
      const Index quotient = levels[i].count.quotient(rest);
      offset += static_cast<Offset>(rest - quotient * levels[i].count.divisor) * levels[i].stride;
      rest = quotient;
    }
    return offset + static_cast<Offset>(rest) * levels[known_levels - 1].stride;
  }

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    GAPLESS_UNROLL
    for (int i = 0; i < max_levels; ++i) {
      if (i >= level_count) break;
      Index digit = rest;
      if (i + 1 < level_count) {
        rest = levels[i].count.quotient(rest);
        digit -= rest * levels[i].count.divisor;
      }
      offset += i == table_level ? table[digit] : static_cast<Offset>(digit) * levels[i].stride;
    }
    return offset;
  }

  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept {
    return at(static_cast<Index>(k >> word_shift)) + static_cast<Offset>(k & ((std::uint64_t{1} << word_shift) - 1));
  }
};

/// A nest whose kernel was compiled for its level count.
template <class Index, int known_levels>
struct KnownNest {
  const Nest<Index>& nest;

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept { return nest.template at_known<known_levels>(word); }
};

/// Calls action with the locator to use for a nest: one for the usual few levels, else the nest itself.
template <class Index, class Action>
void visit_levels(const Nest<Index>& nest, const Action& action) {
  const int known = nest.table_level < 0 ? nest.level_count : 0;
  if (known == 2) return action(std::integral_constant<int, 2>{});
  if (known == 3) return action(std::integral_constant<int, 3>{});
  if (known == 4) return action(std::integral_constant<int, 4>{});
  action(std::integral_constant<int, 0>{});
}

// A layout serialised for the GPU: nodes, modes and tables in one block of bytes, referring to each other by position.

struct TreeMode {
  Divider<std::uint64_t> count;
  Offset stride;
};

struct TreeTable {
  std::uint64_t position;
  std::uint64_t narrow;
};

struct TreeNode {
  Offset base;
  Divider<std::uint64_t> core;  ///< packed bytes of one repetition of the core
  std::uint32_t kind;           ///< layout::Core
  std::uint32_t mode_count;
  std::uint64_t modes;  ///< position of the modes, innermost first
  std::uint64_t entry_count;
  Divider<std::uint64_t> child;  ///< index: packed bytes of the child
  TreeTable offsets;             ///< index, segments
  TreeTable ends;                ///< segments, sum: packed end of each entry within the core
  TreeTable coarse;              ///< segments: the run that packed byte i << coarse_shift lies in, and one entry more
  std::uint64_t children;        ///< index: position of the child; sum: position of the parts' positions
};

/// A place in memory, and how many bytes from there on are contiguous.
struct Place {
  Offset offset;
  std::uint64_t remaining;
};

struct Tree {
  const std::byte* bytes;
  Divider<std::uint64_t> size;  ///< packed bytes of one repetition of the layout
  Offset extent;                ///< memory between repetitions
  int word_shift;

  template <class T>
  GAPLESS_HOST_DEVICE const T& read(std::uint64_t position) const noexcept {
    return *reinterpret_cast<const T*>(bytes + position);
  }
  GAPLESS_HOST_DEVICE Table table(const TreeTable& t) const noexcept { return {bytes + t.position, t.narrow != 0}; }

  /// Adds the digits of repetition `repetition` of a node's core.
  GAPLESS_HOST_DEVICE Offset modes_offset(const TreeNode& node, std::uint64_t repetition) const noexcept {
    Offset offset = node.base;
    const TreeMode* modes = &read<TreeMode>(node.modes);
    for (std::uint32_t i = 0; i < node.mode_count; ++i) {
      const std::uint64_t rest = modes[i].count.quotient(repetition);
      offset += static_cast<Offset>(repetition - rest * modes[i].count.divisor) * modes[i].stride;
      repetition = rest;
    }
    return offset;
  }

  GAPLESS_HOST_DEVICE Place place(std::uint64_t k) const noexcept {
    const std::uint64_t whole = size.quotient(k);
    Offset offset = static_cast<Offset>(whole) * extent;
    k -= whole * size.divisor;
    std::uint64_t position = 0;
    while (true) {
      const TreeNode& node = read<TreeNode>(position);
      const std::uint64_t repetition = node.core.quotient(k);
      k -= repetition * node.core.divisor;
      offset += modes_offset(node, repetition);
      switch (static_cast<layout::Core>(node.kind)) {
        case layout::Core::block:
          return {offset + static_cast<Offset>(k), node.core.divisor - k};
        case layout::Core::index: {
          const std::uint64_t entry = node.child.quotient(k);
          offset += table(node.offsets)[entry];
          k -= entry * node.child.divisor;
          position = node.children;
          break;
        }
        case layout::Core::segments: {
          const Table ends = table(node.ends);
          const std::uint64_t entry = first_end_after(ends, std::uint64_t{0}, node.entry_count, static_cast<Offset>(k));
          const Offset start = entry == 0 ? 0 : ends[entry - 1];
          return {offset + table(node.offsets)[entry] + static_cast<Offset>(k) - start,
                  static_cast<std::uint64_t>(ends[entry]) - k};
        }
        case layout::Core::sum: {
          const Table ends = table(node.ends);
          const std::uint64_t entry = first_end_after(ends, std::uint64_t{0}, node.entry_count, static_cast<Offset>(k));
          if (entry != 0) k -= static_cast<std::uint64_t>(ends[entry - 1]);
          position = read<std::uint64_t>(node.children + entry * sizeof(std::uint64_t));
          break;
        }
      }
    }
  }

  GAPLESS_HOST_DEVICE Offset at(std::uint64_t word) const noexcept { return place(word << word_shift).offset; }
  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept { return place(k).offset; }
};

/// The runs one tile needs, in memory its threads share.
struct StagedRuns {
  std::int32_t ends[max_staged_runs];  ///< packed end, relative to the tile's start
  std::uint16_t
      hints[words_per_tile / 8];   ///< which staged run every eighth word lies in; the search goes on from there
  Offset shifts[max_staged_runs];  ///< memory offset of a byte is its position in the tile plus this
};

/// Runs [low, high) of the core: all that a tile touches. Staged when they fit and the tile stays in one repetition.
struct RunWindow {
  bool staged;
  std::uint64_t low, high;
  std::uint64_t start;   ///< packed byte the tile starts at
  Offset within;         ///< the same, within the core
  Offset memory_origin;  ///< what every run's offset is relative to in this repetition
};

/// A list of runs, in any modes; the root of `tree`, with what every tile needs of it.
struct Segments {
  Tree tree;
  Divider<std::uint64_t> core;
  Table ends, offsets, coarse;

  /// Precondition: first_word <= last_word, both within the stream.
  GAPLESS_HOST_DEVICE RunWindow window(std::uint64_t first_word, std::uint64_t last_word) const noexcept {
    const std::uint64_t first = first_word << tree.word_shift, last = last_word << tree.word_shift;
    const std::uint64_t repetition = core.quotient(first);
    if (repetition != core.quotient(last)) return {};
    const std::uint64_t whole = tree.size.quotient(first);
    const std::uint64_t inner = repetition - core.quotient(whole * tree.size.divisor);
    const std::uint64_t begin = first - repetition * core.divisor, end = last - repetition * core.divisor;
    const auto low = static_cast<std::uint64_t>(coarse[begin >> coarse_shift]);
    const auto high = static_cast<std::uint64_t>(coarse[(end >> coarse_shift) + 1]) + 1;
    return {high - low <= max_staged_runs,
            low,
            high,
            first,
            static_cast<Offset>(begin),
            static_cast<Offset>(whole) * tree.extent + tree.modes_offset(tree.read<TreeNode>(0), inner)};
  }

  GAPLESS_HOST_DEVICE void stage(const RunWindow& window, int thread, int threads, StagedRuns& runs) const noexcept {
    for (std::uint64_t i = window.low + static_cast<std::uint64_t>(thread); i < window.high;
         i += static_cast<std::uint64_t>(threads)) {
      const Offset end = ends[i] - window.within, start = (i == 0 ? 0 : ends[i - 1]) - window.within;
      const auto run = static_cast<std::uint32_t>(i - window.low);
      runs.ends[run] = static_cast<std::int32_t>(end < tile_bytes_limit ? end : tile_bytes_limit);
      runs.shifts[run] = window.memory_origin + offsets[i] - start;
      hint(run, start, end, runs);
    }
  }

  /// Notes the run at every eighth word that lies in it.
  GAPLESS_HOST_DEVICE void hint(std::uint32_t run, Offset start, Offset end, StagedRuns& runs) const noexcept {
    if (end <= 0 || start >= tile_bytes_limit) return;
    const int shift = tree.word_shift + 3;
    const auto first = start <= 0 ? 0 : static_cast<int>((start + (Offset{1} << shift) - 1) >> shift);
    const Offset last = (end + (Offset{1} << shift) - 1) >> shift;
    const int stop = last < words_per_tile / 8 ? static_cast<int>(last) : words_per_tile / 8;
    for (int i = first; i < stop; ++i) runs.hints[i] = static_cast<std::uint16_t>(run);
  }

  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept { return tree.place(k).offset; }
};

/// Segments with the runs of a tile at hand; only for tiles whose window is staged.
struct StagedSegments {
  int word_shift;
  std::uint64_t start;
  const StagedRuns& runs;

  GAPLESS_HOST_DEVICE Offset at(std::uint64_t word) const noexcept {
    const auto position = static_cast<std::int32_t>((word << word_shift) - start);
    std::uint32_t run = runs.hints[position >> (word_shift + 3)];
    while (runs.ends[run] <= position) ++run;
    return runs.shifts[run] + position;
  }
};

/// A packed byte range as a kernel sees it: whole words in the middle, single bytes at either edge.
struct Range {
  std::uintptr_t memory;  ///< address of layout offset 0
  std::uintptr_t packed;  ///< address packed byte 0 has or would have
  std::uint64_t begin;    ///< first packed byte
  std::uint64_t first_word;
  std::uint64_t word_count;
  std::uint32_t head;  ///< bytes before the first whole word
  std::uint32_t tail;  ///< bytes after the last whole word
  bool unpack;
};

GAPLESS_HOST_DEVICE RunWindow window_of_tile(const Range& range, const Segments& segments,
                                             std::uint64_t tile) noexcept {
  const std::uint64_t first = tile * words_per_tile;
  const std::uint64_t last = first + words_per_tile < range.word_count ? first + words_per_tile : range.word_count;
  return segments.window(range.first_word + first, range.first_word + last - 1);
}

/// Memory addressed as it is. The simulated GPU passes a space of its own that checks and translates every address.
struct DirectSpace {
  template <class T>
  GAPLESS_HOST_DEVICE T* at(std::uintptr_t address) const noexcept {
    return reinterpret_cast<T*>(address);
  }
};

/// Moves the words of one thread of one tile; a whole tile needs no comparison with the end.
template <class Word, class Index, bool whole, class Locator, class Space>
GAPLESS_HOST_DEVICE void copy_thread(const Range& range, const Locator& locator, Index first,
                                     const Space& space) noexcept {
  const auto count = static_cast<Index>(range.word_count), first_word = static_cast<Index>(range.first_word);
  Word words[words_per_thread];
  std::uintptr_t memory[words_per_thread];
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = first + static_cast<Index>(i * threads_per_block);
    if (whole || word < count) {
      const Index k = first_word + word;
      memory[i] = range.memory + static_cast<std::uintptr_t>(locator.at(k));
      words[i] =
          *space.template at<const Word>(range.unpack ? range.packed + std::uint64_t{k} * sizeof(Word) : memory[i]);
    }
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = first + static_cast<Index>(i * threads_per_block);
    if (whole || word < count) {
      const Index k = first_word + word;
      *space.template at<Word>(range.unpack ? memory[i] : range.packed + std::uint64_t{k} * sizeof(Word)) = words[i];
    }
  }
}

template <class Word, class Index, class Locator, class Space>
GAPLESS_HOST_DEVICE void copy_tile(const Range& range, const Locator& locator, std::uint64_t tile, int thread,
                                   const Space& space) noexcept {
  const Index first = static_cast<Index>(tile * words_per_tile) + static_cast<Index>(thread);
  if ((tile + 1) * words_per_tile <= range.word_count) {
    copy_thread<Word, Index, true>(range, locator, first, space);
  } else {
    copy_thread<Word, Index, false>(range, locator, first, space);
  }
}

/// The same for runs, once they are staged.
template <class Word, class Space>
GAPLESS_HOST_DEVICE void copy_runs_tile(const Range& range, const Segments& segments, const RunWindow& window,
                                        const StagedRuns& runs, std::uint64_t tile, int thread,
                                        const Space& space) noexcept {
  if (window.staged) {
    const StagedSegments staged{segments.tree.word_shift, window.start, runs};
    copy_tile<Word, std::uint64_t>(range, staged, tile, thread, space);
  } else {
    copy_tile<Word, std::uint64_t>(range, segments.tree, tile, thread, space);
  }
}

/// Moves one of the edge bytes; edge < head + tail.
template <class Locator, class Space>
GAPLESS_HOST_DEVICE void copy_edge(const Range& range, const Locator& locator, int word_shift, std::uint32_t edge,
                                   const Space& space) noexcept {
  const std::uint64_t k = edge < range.head
                              ? range.begin + edge
                              : ((range.first_word + range.word_count) << word_shift) + (edge - range.head);
  const std::uintptr_t memory = range.memory + static_cast<std::uintptr_t>(locator.byte(k));
  const std::uintptr_t packed = range.packed + k;
  *space.template at<char>(range.unpack ? memory : packed) =
      *space.template at<const char>(range.unpack ? packed : memory);
}

/// One thread's share of the run that packed byte range.begin + done lies in; returns the bytes all threads move
/// together. Bytes of one run never overlap, so its threads need no order among themselves.
template <class Space>
GAPLESS_HOST_DEVICE std::uint64_t copy_run(const Range& range, const Tree& tree, std::uint64_t done,
                                           std::uint64_t bytes, unsigned thread, unsigned threads,
                                           const Space& space) noexcept {
  const std::uint64_t k = range.begin + done;
  const Place place = tree.place(k);
  const std::uint64_t left = bytes - done;
  const std::uint64_t length = place.remaining < left ? place.remaining : left;
  const std::uintptr_t memory = range.memory + static_cast<std::uintptr_t>(place.offset);
  const std::uintptr_t packed = range.packed + k;
  for (std::uint64_t i = thread; i < length; i += threads) {
    *space.template at<char>((range.unpack ? memory : packed) + i) =
        *space.template at<const char>((range.unpack ? packed : memory) + i);
  }
  return length;
}

/// Calls action with a value of the word type of 2^shift bytes, 0 <= shift <= 4.
template <class Action>
void visit_word(int shift, const Action& action) {
  switch (shift) {
    case 0:
      return action(std::uint8_t{});
    case 1:
      return action(std::uint16_t{});
    case 2:
      return action(std::uint32_t{});
    case 3:
      return action(std::uint64_t{});
    default:
      return action(Word16{});
  }
}

}  // namespace gapless::pack::cuda

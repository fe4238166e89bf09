// Regime tree: any layout, walked from its root for every word. The reference that every other regime is measured
// against: the point-per-thread traversal of Jenkins et al. (Cluster 2012), prefix sums and binary search included.
#pragma once

#include "pack/gpu/kernel/block.hpp"
#include "pack/gpu/kernel/range.hpp"
#include "pack/gpu/kernel/tables.hpp"

namespace gapless::pack::gpu {

// A layout serialised for the GPU: nodes, modes and tables in one block of bytes, referring to each other by position.

inline constexpr int hint_shift = 11;

struct TreeMode {
  Divider<std::uint64_t> count;
  Offset stride;
};

struct TreeTable {
  std::uint64_t position;
  std::uint64_t narrow;
};

struct TreeRuns {
  std::uint64_t position;
  std::uint32_t narrow;
  std::int32_t unit_shift;
};

struct TreeNode {
  Offset base;
  Divider<std::uint64_t> core;  ///< packed bytes of one repetition of the core
  std::uint32_t kind;           ///< layout::Core
  std::uint32_t mode_count;
  std::uint64_t modes;  ///< position of the modes, innermost first
  std::uint64_t entry_count;
  Divider<std::uint64_t> child;  ///< index: packed bytes of the child
  TreeTable offsets;             ///< index
  TreeTable ends;                ///< sum: packed end of each part within the core
  TreeRuns runs;                 ///< segments
  TreeTable hints;               ///< segments: the run that packed byte i << hint_shift lies in, and the last run
  std::uint64_t children;        ///< index: position of the child; sum: position of the parts' positions
};

/// A place in memory, and how many bytes from there on are contiguous.
struct TreePlace {
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

  GAPLESS_HOST_DEVICE RunTable runs(const TreeRuns& r) const noexcept {
    return {bytes + r.position, r.narrow != 0, r.unit_shift};
  }

  /// Where the core's repetition number `repetition` begins.
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

  GAPLESS_HOST_DEVICE TreePlace place(std::uint64_t k) const noexcept {
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
          const RunTable list = runs(node.runs);
          const std::uint64_t run = run_of(list, node.entry_count, static_cast<Offset>(k));
          return {offset + list[run].shift + static_cast<Offset>(k),
                  static_cast<std::uint64_t>(list[run + 1].start) - k};
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

struct TreeWork {
  using Shared = NothingShared;
  static constexpr int words_per_thread = 4;

  Range range;
  Tree tree;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return range.tiles(words_per_thread); }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return tree.word_shift; }
};

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const TreeWork& work, std::uint64_t tile, const Block& block,
                                  NothingShared&) noexcept {
  if (tile == 0) copy_edges(work.range, work.tree, work.tree.word_shift, block);
  copy_tile<Word, std::uint64_t, TreeWork::words_per_thread>(work.range, work.tree, tile, block);
}

}  // namespace gapless::pack::gpu

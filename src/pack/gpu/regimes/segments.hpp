// Regime segments: long lists of runs of differing lengths. For each word of a tile of the packed stream, shared memory
// has how far away in memory the word lies: the tile's runs write that there, so that no word has to search its run.
//
// Which runs a tile needs is found in a table of hints made with the layout's description, so that nothing is searched
// in GPU memory either, and all of it may happen before the data is there. Tiles never cross from one repetition of the
// list to the next.
#pragma once

#include "pack/gpu/kernel/unaligned.hpp"
#include "pack/gpu/regimes/nest.hpp"
#include "pack/gpu/regimes/tree.hpp"

namespace gapless::pack::gpu {

/// In flight in a thread: what 32 bytes hold, 8 at most.
GAPLESS_HOST_DEVICE constexpr std::uint32_t segment_words_per_thread(std::uint32_t word_bytes) noexcept {
  return word_bytes <= 4 ? 8 : 32 / word_bytes;
}
GAPLESS_HOST_DEVICE constexpr std::uint32_t segment_tile_words(int word_shift) noexcept {
  return segment_words_per_thread(1u << word_shift) * threads_per_block;
}

/// How far each word of a tile lies from where it would if memory were the packed stream, in the units of the runs.
template <class Entry>
struct StagedShifts {
  decltype(Entry::shift) shifts[segment_tile_words(0)];
};

/// Part of the list, within one repetition.
struct SegmentTile {
  std::uint64_t begin;       ///< packed byte within the list
  std::uint32_t word_count;  ///< at most segment_tile_words
  std::uint64_t packed;      ///< packed byte that `begin` is
  std::uintptr_t memory;     ///< address that the runs' shifts are relative to
};

/// Entry: NarrowRun or Run, of which the list is made.
template <class Entry>
struct SegmentsWork {
  using Shared = StagedShifts<Entry>;

  Range range;
  Tree tree;  ///< for the bytes at either edge of the range
  const Entry* runs;
  int unit_shift;  ///< log2 of the bytes that the runs count in
  Table hints;     ///< the run that the list's packed byte i << hint_shift lies in
  Divider<std::uint32_t> tiles_per_list;
  std::uint32_t first_tile;
  std::uint32_t tile_count;
  std::uint64_t list_size;  ///< packed bytes
  bool is_prefetched;
  std::uintptr_t list_memory;  ///< address that the first repetition's shifts are relative to
  Nest<std::uint64_t> repetitions;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return tile_count; }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return tree.word_shift; }

  GAPLESS_HOST_DEVICE SegmentTile tile(std::uint64_t number) const noexcept {
    const std::uint32_t position = first_tile + static_cast<std::uint32_t>(number);
    const std::uint32_t repetition = tiles_per_list.quotient(position);
    const std::uint32_t within = position - repetition * tiles_per_list.divisor;
    const std::uint32_t tile_words = segment_tile_words(word_shift());
    const std::uint64_t begin = std::uint64_t{within} * tile_words << word_shift();
    const std::uint64_t rest = (list_size - begin) >> word_shift();
    return {begin, rest < tile_words ? static_cast<std::uint32_t>(rest) : tile_words, repetition * list_size + begin,
            list_memory + static_cast<std::uintptr_t>(repetitions.at(std::uint64_t{repetition}))};
  }
};

/// Fetches the sectors at either end of [begin, end) that are not written whole.
GAPLESS_HOST_DEVICE void prefetch_ends(std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (begin % sector_bytes != 0) prefetch_sector(begin);
  if (end % sector_bytes != 0) prefetch_sector(end - 1);
}

/// A run of the list as a tile sees it.
template <class Entry>
struct ListedRun {
  Entry run;
  decltype(Entry::start) next;  ///< where the next one starts
};

/// Writes a run's shift for those of the tile's words that are its, `lanes` apart from `lane` on.
template <class Entry>
GAPLESS_HOST_DEVICE void stage_run(const SegmentsWork<Entry>& work, const SegmentTile& tile,
                                   const ListedRun<Entry>& listed, std::uint32_t lane, std::uint32_t lanes,
                                   StagedShifts<Entry>& staged) noexcept {
  using Start = decltype(Entry::start);
  const int word_shift = work.word_shift(), unit_shift = work.unit_shift;
  const auto begin = static_cast<Start>(tile.begin >> unit_shift);
  if (listed.next <= begin) return;
  // Lists count in whole words or, if their places do not fit, in bytes.
  const auto words = [&](Start units) {
    return static_cast<std::uint32_t>(unit_shift >= word_shift ? units << (unit_shift - word_shift)
                                                               : units >> (word_shift - unit_shift));
  };
  const std::uint32_t start = listed.run.start > begin ? words(listed.run.start - begin) : 0;
  const Start rest = listed.next - begin;
  const std::uint32_t end =
      rest < static_cast<Start>(tile.word_count) << word_shift >> unit_shift ? words(rest) : tile.word_count;
  for (std::uint32_t word = start + lane; word < end; word += lanes) staged.shifts[word] = listed.run.shift;
  if (!work.is_prefetched || lane != 0 || start >= end) return;
  const std::uintptr_t list = tile.memory + (static_cast<std::uintptr_t>(Offset{listed.run.shift}) << unit_shift);
  prefetch_ends(list + (static_cast<std::uintptr_t>(listed.run.start) << unit_shift),
                list + (static_cast<std::uintptr_t>(listed.next) << unit_shift));
}

/// Writes the shifts of the tile's words. Each run has a power of two of threads, as many as there are for all.
template <class Entry>
GAPLESS_HOST_DEVICE void stage_shifts(const SegmentsWork<Entry>& work, const SegmentTile& tile, int thread,
                                      StagedShifts<Entry>& staged) noexcept {
  constexpr std::uint32_t runs_at_once = 2;
  const std::uint64_t last_byte = tile.begin + (std::uint64_t{tile.word_count} << work.word_shift()) - 1;
  const auto low = static_cast<std::uint64_t>(work.hints[tile.begin >> hint_shift]);
  const auto high = static_cast<std::uint64_t>(work.hints[(last_byte >> hint_shift) + 1]) + 1;
  const auto count = static_cast<std::uint32_t>(high - low);
  const std::uint32_t lane_shift =
      count < threads_per_block ? bit_width(threads_per_block - 1) - bit_width(count - 1) : 0;
  const std::uint32_t lanes = 1u << lane_shift, lane = static_cast<std::uint32_t>(thread) & (lanes - 1);
  const std::uint32_t apart = threads_per_block >> lane_shift;
  const Entry* const runs = work.runs + low;
  for (std::uint32_t i = static_cast<std::uint32_t>(thread) >> lane_shift; i < count; i += runs_at_once * apart) {
    ListedRun<Entry> listed[runs_at_once];
    GAPLESS_UNROLL
    for (std::uint32_t r = 0; r < runs_at_once; ++r) {
      const std::uint32_t run = i + r * apart;
      if (run < count) listed[r] = {runs[run], runs[run + 1].start};
    }
    GAPLESS_UNROLL
    for (std::uint32_t r = 0; r < runs_at_once; ++r) {
      if (i + r * apart < count) stage_run(work, tile, listed[r], lane, lanes, staged);
    }
  }
}

/// Where the words of a tile lie, once their shifts are staged.
template <class Entry>
struct SegmentPlaces {
  using Shift = decltype(Entry::shift);

  const StagedShifts<Entry>& staged;
  Shift unit;             ///< bytes that shifts count in
  std::uintptr_t memory;  ///< of word 0 if its shift is 0
  std::uintptr_t packed;  ///< of word 0

  /// The thread's word number `i`. What is the same for all of them is added first, what is known when the kernel is
  /// compiled last: that part is free.
  template <class Word>
  GAPLESS_HOST_DEVICE std::uintptr_t at(bool in_memory, std::uint32_t thread, std::uint32_t i) const noexcept {
    const std::uint64_t first = thread * sizeof(Word), rest = std::uint64_t{i * threads_per_block} * sizeof(Word);
    if (!in_memory) return packed + first + rest;
    const Shift shift = staged.shifts[thread + i * threads_per_block];
    return memory + first + static_cast<std::uintptr_t>(Offset{shift} * unit) + rest;
  }
};

/// A thread's share of words [low, high) of a tile.
template <class Word, bool whole, bool unpack, class Entry, class Space>
GAPLESS_HOST_DEVICE void copy_staged(const SegmentPlaces<Entry>& places, std::uint32_t low, std::uint32_t high,
                                     std::uint32_t thread, const Space& space) noexcept {
  constexpr std::uint32_t words_per_thread = segment_words_per_thread(sizeof(Word));
  const auto has = [&](std::uint32_t i) {
    const std::uint32_t word = thread + i * threads_per_block;
    return whole || (word >= low && word < high);
  };
  Word words[words_per_thread];
  GAPLESS_UNROLL
  for (std::uint32_t i = 0; i < words_per_thread; ++i) {
    if (has(i)) words[i] = *space.template at<const Word>(places.template at<Word>(!unpack, thread, i));
  }
  GAPLESS_UNROLL
  for (std::uint32_t i = 0; i < words_per_thread; ++i) {
    if (has(i)) *space.template at<Word>(places.template at<Word>(unpack, thread, i)) = words[i];
  }
}

/// Stages the shifts.
template <class Entry, class Block>
GAPLESS_HOST_DEVICE void prepare_tile(const SegmentsWork<Entry>& work, std::uint64_t number, const Block& block,
                                      StagedShifts<Entry>& staged) noexcept {
  if (work.range.word_count == 0) return;
  const SegmentTile tile = work.tile(number);
  block.threads([&](int thread) { stage_shifts(work, tile, thread, staged); });
  block.barrier();
}

/// Called, not inlined: walking the tree takes more registers than all the rest.
template <class Block>
GAPLESS_HOST_DEVICE_CALLED void copy_list_edges(const Range& range, const Tree& tree, const Block& block) noexcept {
  copy_edges(range, tree, tree.word_shift, block);
}

template <class Word, class Entry, class Block>
GAPLESS_HOST_DEVICE void run_tile(const SegmentsWork<Entry>& work, std::uint64_t number, const Block& block,
                                  StagedShifts<Entry>& staged) noexcept {
  if (number == 0) copy_list_edges(work.range, work.tree, block);
  const Range& range = work.range;
  if (range.word_count == 0) return;
  const SegmentTile tile = work.tile(number);
  const SegmentPlaces<Entry> places{staged, static_cast<decltype(Entry::shift)>(std::int64_t{1} << work.unit_shift),
                                    tile.memory + tile.begin, range.packed + tile.packed};
  const std::uint64_t start = tile.packed >> work.word_shift(), rest = range.first_word + range.word_count - start;
  const auto low = static_cast<std::uint32_t>(range.first_word > start ? range.first_word - start : 0);
  const std::uint32_t high = rest < tile.word_count ? static_cast<std::uint32_t>(rest) : tile.word_count;
  const bool is_whole = low == 0 && high == segment_tile_words(work.word_shift());
  block.threads([&](int thread) {
    const auto copy = [&](auto whole, auto unpack) {
      copy_staged<Word, decltype(whole)::value, decltype(unpack)::value>(
          places, low, high, static_cast<std::uint32_t>(thread), block.space);
    };
    const std::true_type yes;
    const std::false_type no;
    if (range.unpack) {
      is_whole ? copy(yes, yes) : copy(no, yes);
    } else {
      is_whole ? copy(yes, no) : copy(no, no);
    }
  });
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::gpu

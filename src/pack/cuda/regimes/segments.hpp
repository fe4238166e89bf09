// Regime segments: long lists of runs of differing lengths. A tile of the packed stream stages the runs it needs in
// shared memory and finds the run of each of its words there.
//
// Where runs begin is kept as one bit a word, so that a word's run is a count of bits, not a search. Which runs a tile
// needs is found in a table of hints made with the layout's description, so that nothing is searched in GPU memory
// either. Tiles never cross from one repetition of the list to the next.
#pragma once

#include "pack/cuda/regimes/nest.hpp"
#include "pack/cuda/regimes/tree.hpp"
#include "pack/cuda/unaligned.hpp"

namespace gapless::pack::cuda {

inline constexpr int segment_words_per_thread = 8;
inline constexpr int segment_tile_words = segment_words_per_thread * threads_per_block;
inline constexpr int mask_bits = 32;

/// What the threads of a tile share.
struct StagedRuns {
  struct alignas(8) Group {
    std::uint32_t starts;    ///< a bit for each of its words, but the first, that a run starts at
    std::uint32_t covering;  ///< the staged run that its first word lies in
  };
  Group groups[segment_tile_words / mask_bits];
  Offset shifts[segment_tile_words];  ///< of each staged run
};

/// Part of the list, within one repetition.
struct SegmentTile {
  std::uint64_t begin, end;  ///< packed bytes within the list
  std::uint64_t packed;      ///< packed byte that `begin` is
  std::uint64_t low, high;   ///< no runs but these can be its
  std::uintptr_t memory;     ///< address that the runs' shifts are relative to
};

struct SegmentsWork {
  using Shared = StagedRuns;

  Range range;
  Tree tree;  ///< for the bytes at either edge of the range
  RunTable runs;
  Table hints;  ///< the run that the list's packed byte i << hint_shift lies in
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
    const std::uint64_t within = position - repetition * tiles_per_list.divisor;
    const std::uint64_t tile_bytes = std::uint64_t{segment_tile_words} << word_shift();
    const std::uint64_t begin = within * tile_bytes;
    const std::uint64_t end = begin + tile_bytes < list_size ? begin + tile_bytes : list_size;
    return {begin,
            end,
            repetition * list_size + begin,
            static_cast<std::uint64_t>(hints[begin >> hint_shift]),
            static_cast<std::uint64_t>(hints[((end - 1) >> hint_shift) + 1]) + 1,
            list_memory + static_cast<std::uintptr_t>(repetitions.at(std::uint64_t{repetition}))};
  }
};

/// Notes where run `run` starts, and which groups of words begin in it. Both positions are in words of the tile.
GAPLESS_HOST_DEVICE void mark_run(StagedRuns& staged, std::uint32_t run, int start, int end) noexcept {
  if (start > 0 && start % mask_bits != 0) set_bits(staged.groups[start / mask_bits].starts, 1u << (start % mask_bits));
  const int first = start <= 0 ? 0 : (start + mask_bits - 1) / mask_bits;
  for (int group = first; group * mask_bits < end; ++group) staged.groups[group].covering = run;
}

/// Fetches the sectors at either end of [begin, end) that are not written whole.
GAPLESS_HOST_DEVICE void prefetch_ends(std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (begin % sector_bytes != 0) prefetch_sector(begin);
  if (end % sector_bytes != 0) prefetch_sector(end - 1);
}

/// What a tile has of a run, in words of the tile.
struct RunPart {
  int start, end;  ///< empty: the run begins after the tile
};

/// Precondition: the run ends after the tile's beginning, or is followed by one that does. Entries have a `start`.
template <class Entry>
GAPLESS_HOST_DEVICE RunPart part_of_run(const SegmentTile& tile, const Entry& run, const Entry& next, int unit_shift,
                                        int word_shift) noexcept {
  using Start = decltype(run.start);
  const auto begin = static_cast<Start>(tile.begin >> unit_shift), end = static_cast<Start>(tile.end >> unit_shift);
  if (run.start >= end) return {0, 0};
  const Start first = run.start > begin ? run.start - begin : 0, last = (next.start < end ? next.start : end) - begin;
  const auto words = [&](Start units) {
    return unit_shift >= word_shift ? static_cast<int>(units << (unit_shift - word_shift))
                                    : static_cast<int>(units >> (word_shift - unit_shift));
  };
  return {words(first), words(last)};
}

GAPLESS_HOST_DEVICE void stage_runs(const SegmentsWork& work, const SegmentTile& tile, int thread,
                                    StagedRuns& staged) noexcept {
  const RunTable& runs = work.runs;
  for (std::uint64_t i = tile.low + static_cast<unsigned>(thread); i < tile.high; i += threads_per_block) {
    const RunPart part = runs.narrow ? part_of_run(tile, runs.narrow_entry(i), runs.narrow_entry(i + 1),
                                                   runs.unit_shift, work.word_shift())
                                     : part_of_run(tile, runs[i], runs[i + 1], 0, work.word_shift());
    if (part.end == 0) break;
    const auto index = static_cast<std::uint32_t>(i - tile.low);
    staged.shifts[index] = runs[i].shift;
    mark_run(staged, index, part.start, part.end);
    if (work.is_prefetched) {
      const Run run = runs[i];
      const std::uintptr_t list = tile.memory + static_cast<std::uintptr_t>(run.shift);
      prefetch_ends(list + static_cast<std::uintptr_t>(run.start),
                    list + static_cast<std::uintptr_t>(runs[i + 1].start));
    }
  }
}

/// Where the words of a tile lie, once its runs are staged.
struct StagedSegments {
  const SegmentTile& tile;
  const StagedRuns& staged;
  int word_shift;

  GAPLESS_HOST_DEVICE std::uintptr_t address(std::uint32_t word) const noexcept {
    const StagedRuns::Group group = staged.groups[word / mask_bits];
    const std::uint32_t up_to_word = (2u << (word % mask_bits)) - 1;
    const std::uint32_t run = group.covering + count_bits(group.starts & up_to_word);
    return tile.memory + static_cast<std::uintptr_t>(staged.shifts[run]) + tile.begin +
           (std::uintptr_t{word} << word_shift);
  }
};

/// Words [low, high) of a tile.
template <class Word, bool whole, class Space>
GAPLESS_HOST_DEVICE void copy_staged(const Range& range, const StagedSegments& places, std::uint32_t low,
                                     std::uint32_t high, int thread, const Space& space) noexcept {
  const std::uintptr_t packed = range.packed + places.tile.packed;
  // Addresses are found where they are used: kept, they would take more registers than the words.
  const auto place = [&](std::uint32_t word, bool in_memory) {
    return in_memory ? places.address(word) : packed + word * sizeof(Word);
  };
  Word words[segment_words_per_thread];
  GAPLESS_UNROLL
  for (int i = 0; i < segment_words_per_thread; ++i) {
    const auto word = static_cast<std::uint32_t>(thread + i * threads_per_block);
    if (whole || (word >= low && word < high)) words[i] = *space.template at<const Word>(place(word, !range.unpack));
  }
  GAPLESS_UNROLL
  for (int i = 0; i < segment_words_per_thread; ++i) {
    const auto word = static_cast<std::uint32_t>(thread + i * threads_per_block);
    if (whole || (word >= low && word < high)) *space.template at<Word>(place(word, range.unpack)) = words[i];
  }
}

template <class Word, class Space>
GAPLESS_HOST_DEVICE void copy_segment_words(const SegmentsWork& work, const SegmentTile& tile, int thread,
                                            const StagedRuns& staged, const Space& space) noexcept {
  const Range& range = work.range;
  const StagedSegments places{tile, staged, work.word_shift()};
  const std::uint64_t start = tile.packed >> work.word_shift();
  const std::uint64_t stop = start + ((tile.end - tile.begin) >> work.word_shift());
  const std::uint64_t range_stop = range.first_word + range.word_count;
  const auto low = static_cast<std::uint32_t>(range.first_word > start ? range.first_word - start : 0);
  const auto high = static_cast<std::uint32_t>((range_stop < stop ? range_stop : stop) - start);
  if (low == 0 && high == segment_tile_words) {
    copy_staged<Word, true>(range, places, low, high, thread, space);
  } else {
    copy_staged<Word, false>(range, places, low, high, thread, space);
  }
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const SegmentsWork& work, std::uint64_t number, const Block& block,
                                  StagedRuns& staged) noexcept {
  if (number == 0) copy_edges(work.range, work.tree, work.word_shift(), block);
  if (work.range.word_count == 0) return;
  const SegmentTile tile = work.tile(number);
  block.threads([&](int thread) {
    if (thread < segment_tile_words / mask_bits) staged.groups[thread].starts = 0;
  });
  block.barrier();
  block.threads([&](int thread) { stage_runs(work, tile, thread, staged); });
  block.barrier();
  block.threads([&](int thread) { copy_segment_words<Word>(work, tile, thread, staged, block.space); });
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::cuda

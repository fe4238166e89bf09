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
  std::uint32_t starts[segment_tile_words / mask_bits];    ///< a bit for each word that a run starts at
  std::uint16_t covering[segment_tile_words / mask_bits];  ///< the staged run that each group of words begins in
  Offset shifts[segment_tile_words];                       ///< of each staged run
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
  Divider<std::uint64_t> tiles_per_list;
  std::uint64_t list_size;  ///< packed bytes
  std::uint64_t first_tile;
  std::uint64_t tile_count;
  bool is_prefetched;
  std::uintptr_t list_memory;  ///< address that the first repetition's shifts are relative to
  Nest<std::uint64_t> repetitions;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return tile_count; }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return tree.word_shift; }

  GAPLESS_HOST_DEVICE SegmentTile tile(std::uint64_t number) const noexcept {
    const std::uint64_t position = first_tile + number;
    const std::uint64_t repetition = tiles_per_list.quotient(position);
    const std::uint64_t within = position - repetition * tiles_per_list.divisor;
    const std::uint64_t tile_bytes = std::uint64_t{segment_tile_words} << word_shift();
    const std::uint64_t begin = within * tile_bytes;
    const std::uint64_t end = begin + tile_bytes < list_size ? begin + tile_bytes : list_size;
    return {begin,
            end,
            repetition * list_size + begin,
            static_cast<std::uint64_t>(hints[begin >> hint_shift]),
            static_cast<std::uint64_t>(hints[((end - 1) >> hint_shift) + 1]) + 1,
            list_memory + static_cast<std::uintptr_t>(repetitions.at(repetition))};
  }
};

/// Notes where run `run` starts, and in which groups of words it is the first. Both positions are in words of the tile.
GAPLESS_HOST_DEVICE void mark_run(StagedRuns& staged, std::uint32_t run, std::int64_t start,
                                  std::int64_t end) noexcept {
  if (start > 0 && start % mask_bits != 0) set_bits(staged.starts[start / mask_bits], 1u << (start % mask_bits));
  const std::int64_t first = start <= 0 ? 0 : (start + mask_bits - 1) / mask_bits;
  const std::int64_t last = end < segment_tile_words ? end : segment_tile_words;
  for (std::int64_t group = first; group * mask_bits < last; ++group) {
    staged.covering[group] = static_cast<std::uint16_t>(run);
  }
}

template <class Block>
GAPLESS_HOST_DEVICE void stage_runs(const SegmentsWork& work, const SegmentTile& tile, int thread, StagedRuns& staged,
                                    const Block&) noexcept {
  for (std::uint64_t i = tile.low + static_cast<unsigned>(thread); i < tile.high; i += threads_per_block) {
    const Run run = work.runs[i];
    if (run.start >= static_cast<Offset>(tile.end)) break;
    const Offset next = work.runs[i + 1].start;
    const auto index = static_cast<std::uint32_t>(i - tile.low);
    staged.shifts[index] = run.shift;
    const auto begin = static_cast<Offset>(tile.begin);
    mark_run(staged, index, (run.start - begin) >> work.word_shift(), (next - begin) >> work.word_shift());
    if (work.is_prefetched) {
      const std::uintptr_t first = tile.memory + static_cast<std::uintptr_t>(run.shift + run.start);
      const std::uintptr_t last = tile.memory + static_cast<std::uintptr_t>(run.shift + next) - 1;
      if (first % 32 != 0) prefetch_sector(first);
      if (last % 32 != 31) prefetch_sector(last);
    }
  }
}

/// Where the words of a tile lie, once its runs are staged.
struct StagedSegments {
  const SegmentTile& tile;
  const StagedRuns& staged;
  int word_shift;

  GAPLESS_HOST_DEVICE std::uintptr_t address(std::uint32_t word) const noexcept {
    const std::uint32_t up_to_word = (2u << (word % mask_bits)) - 1;
    const std::uint32_t run =
        staged.covering[word / mask_bits] + count_bits(staged.starts[word / mask_bits] & up_to_word);
    return tile.memory + static_cast<std::uintptr_t>(staged.shifts[run]) + tile.begin +
           (std::uintptr_t{word} << word_shift);
  }
};

template <class Word, class Block>
GAPLESS_HOST_DEVICE void copy_segment_words(const SegmentsWork& work, const SegmentTile& tile, int thread,
                                            const StagedRuns& staged, const Block& block) noexcept {
  const Range& range = work.range;
  const StagedSegments places{tile, staged, work.word_shift()};
  // Words of the tile that belong to the range.
  const std::uint64_t start = tile.packed >> work.word_shift();
  const std::uint64_t stop = start + ((tile.end - tile.begin) >> work.word_shift());
  const std::uint64_t range_stop = range.first_word + range.word_count;
  const auto low = static_cast<std::uint32_t>(range.first_word > start ? range.first_word - start : 0);
  const auto high = static_cast<std::uint32_t>((range_stop < stop ? range_stop : stop) - start);
  const std::uintptr_t packed = range.packed + tile.packed;
  Word words[segment_words_per_thread];
  std::uintptr_t memory[segment_words_per_thread];
  GAPLESS_UNROLL
  for (int i = 0; i < segment_words_per_thread; ++i) {
    const auto word = static_cast<std::uint32_t>(thread + i * threads_per_block);
    if (word < low || word >= high) continue;
    memory[i] = places.address(word);
    words[i] = *block.space.template at<const Word>(range.unpack ? packed + word * sizeof(Word) : memory[i]);
  }
  GAPLESS_UNROLL
  for (int i = 0; i < segment_words_per_thread; ++i) {
    const auto word = static_cast<std::uint32_t>(thread + i * threads_per_block);
    if (word < low || word >= high) continue;
    *block.space.template at<Word>(range.unpack ? memory[i] : packed + word * sizeof(Word)) = words[i];
  }
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const SegmentsWork& work, std::uint64_t number, const Block& block,
                                  StagedRuns& staged) noexcept {
  if (number == 0) copy_edges(work.range, work.tree, work.word_shift(), block);
  if (work.range.word_count == 0) return;
  const SegmentTile tile = work.tile(number);
  block.barrier();  // the tile before is done with the shared memory
  block.threads([&](int thread) {
    if (thread < segment_tile_words / mask_bits) staged.starts[thread] = 0;
  });
  block.barrier();
  block.threads([&](int thread) { stage_runs(work, tile, thread, staged, block); });
  block.barrier();
  block.threads([&](int thread) { copy_segment_words<Word>(work, tile, thread, staged, block); });
}

}  // namespace gapless::pack::cuda

// Regime segments: runs of differing lengths. A tile of the packed stream stages the runs it needs in shared memory and
// finds each of its words there.
#pragma once

#include "pack/cuda/regimes/tree.hpp"

namespace gapless::pack::cuda {

inline constexpr int max_staged_runs = 1024;
inline constexpr Offset tile_bytes_limit = words_per_tile * 16;
inline constexpr int coarse_shift =
    10;  // a tile is 1 to 16 KiB: its runs are found within a KiB on either side, unsearched

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

/// What the threads of a tile share.
struct SharedRuns {
  RunWindow window;
  StagedRuns runs;
};

struct SegmentsWork {
  using Shared = SharedRuns;

  Range range;
  Segments segments;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return range.tiles(); }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return segments.tree.word_shift; }

  GAPLESS_HOST_DEVICE RunWindow window_of_tile(std::uint64_t tile) const noexcept {
    const std::uint64_t first = tile * words_per_tile;
    const std::uint64_t last = first + words_per_tile < range.word_count ? first + words_per_tile : range.word_count;
    return segments.window(range.first_word + first, range.first_word + last - 1);
  }
};

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const SegmentsWork& work, std::uint64_t tile, const Block& block,
                                  SharedRuns& shared) noexcept {
  if (tile == 0) copy_edges(work.range, work.segments, work.word_shift(), block);
  if (tile * words_per_tile >= work.range.word_count) return;
  block.barrier();  // the tile before is done with the shared memory
  block.threads([&](int thread) {
    if (thread == 0) shared.window = work.window_of_tile(tile);
  });
  block.barrier();
  if (shared.window.staged) {
    block.threads([&](int thread) { work.segments.stage(shared.window, thread, threads_per_block, shared.runs); });
    block.barrier();
    const StagedSegments staged{work.word_shift(), shared.window.start, shared.runs};
    copy_tile<Word, std::uint64_t>(work.range, staged, tile, block);
  } else {
    copy_tile<Word, std::uint64_t>(work.range, work.segments.tree, tile, block);
  }
}

}  // namespace gapless::pack::cuda

// Runs the kernels' bodies on the CPU, one thread after the other.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>

#include "pack/gpu/plan/plan.hpp"

namespace gapless::tests {

/// No data: what a tile does to prepare itself would not compile if it touched any.
struct NoSpace {};

/// Tiles [first, end) of a work.
struct TileRange {
  std::uint64_t first = 0, end = std::numeric_limits<std::uint64_t>::max();
};

template <class Space>
class SequentialKernels {
 public:
  /// No other tiles than `only` are run.
  explicit SequentialKernels(const Space& space, TileRange only = {}) : block_{space}, only_(only) {}

  template <class Index>
  void operator()(const pack::gpu::NestWork<Index>& work) const {
    using namespace pack::gpu;
    visit_word(work.word_shift(), [&](auto word) {
      visit_form(work.nest, [&](auto form) {
        visit_words_per_thread(work.words_per_thread, [&](auto words) {
          // As many as blocks of several tiles would run, of which the last are not there.
          for (std::uint64_t tile = only_.first; tile < end(work.tiles() + most_tiles_per_block - 1); ++tile) {
            run_known_tile<decltype(word), decltype(form), decltype(words)::value>(work, tile, block_);
          }
        });
      });
    });
  }
  void operator()(const pack::gpu::ShiftedWork& work) const { run_rows(work); }
  void operator()(const pack::gpu::SectorsWork& work) const { run_rows(work); }

  template <class Work>
  void operator()(const Work& work) const {
    const auto shared = std::make_unique<typename Work::Shared>();
    pack::gpu::visit_word(work.word_shift(), [&](auto word) {
      for (std::uint64_t tile = only_.first; tile < end(work.tiles()); ++tile) {
        pack::gpu::prepare_tile(work, tile, pack::gpu::SequentialBlock<NoSpace>{NoSpace{}}, *shared);
        pack::gpu::run_tile<decltype(word)>(work, tile, block_, *shared);
      }
    });
  }

 private:
  /// Of so many tiles those before it may be run.
  std::uint64_t end(std::uint64_t count) const noexcept { return std::min(count, only_.end); }

  template <class Work>
  void run_rows(const Work& work) const {
    using namespace pack::gpu;
    visit_word(work.word_shift(), [&](auto word) {
      visit_row_form(work.rows.places, [&](auto form) {
        if constexpr (sizeof(word) == 8 || (sizeof(word) >= 4 && std::is_same_v<Work, SectorsWork>)) {
          constexpr int not_there = std::is_same_v<Work, SectorsWork> ? most_row_tiles_per_block - 1 : 0;
          visit_row_words<decltype(word)>(work, [&](auto words) {
            for (std::uint64_t tile = only_.first; tile < end(work.tiles() + not_there); ++tile) {
              run_known_tile<decltype(word), decltype(form), decltype(words)::value>(work, tile, block_);
            }
          });
        }
      });
    });
  }

  pack::gpu::SequentialBlock<Space> block_;
  TileRange only_;
};

}  // namespace gapless::tests

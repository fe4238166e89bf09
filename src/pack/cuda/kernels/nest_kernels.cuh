// One kernel for each word, form of nest and number of words per thread that jobs really have.
#pragma once

#include "pack/cuda/kernels/launching.cuh"
#include "pack/gpu/regimes/nest.hpp"

namespace gapless::pack::gpu {

inline constexpr int most_nest_threads = most_tiles_per_block * threads_per_block;

/// threadIdx.y is the tile within the block.
template <class Word, class Form, int words_per_thread, class Index>
__global__ void __launch_bounds__(most_nest_threads)
    nest_kernel(const __grid_constant__ NestWork<Index> work, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  preload(completion);
  wait_for_kernel_before();
  // The last block's tiles that are not there have no words.
  const std::uint32_t tile = blockIdx.x * blockDim.y + threadIdx.y;
  run_known_tile<Word, Form, words_per_thread>(work, tile, DeviceBlock{});
  complete(completion);
}

/// Precondition: the work's words_per_thread is at most most_words_per_thread().
template <class Word, class Form, class Index>
cudaError_t launch_form(const NestWork<Index>& work, const Queue& queue, const Completion& completion) noexcept {
  constexpr bool has_table = Form::level_count == 0 || Form::table_level >= 0;
  cudaError_t error = cudaErrorInvalidValue;
  visit_words_per_thread(work.words_per_thread, [&](auto words_per_thread) {
    constexpr int words = decltype(words_per_thread)::value;
    if constexpr (words <= most_words_per_thread(sizeof(Word), has_table)) {
      error = launch_tiles(nest_kernel<Word, Form, words, Index>, work, queue, completion, work.tiles_per_block);
    }
  });
  return error;
}

}  // namespace gapless::pack::gpu

// One kernel for each word, form of nest and number of words per thread that jobs really have.
#pragma once

#include "pack/cuda/launching.cuh"
#include "pack/cuda/regimes/nest.hpp"

namespace gapless::pack::cuda {

inline constexpr int most_nest_threads = most_tiles_per_block * threads_per_block;

/// Takes five instructions a round, so that the loads of a multiprocessor's warps are asked for one after another and
/// not all at once: memory then serves those that are near each other together. Returns true always, which no compiler
/// can know.
__device__ __forceinline__ bool pace_loads(int rounds) {
  unsigned odd = threadIdx.x | 1;
#pragma unroll 1
  for (; rounds > 0; --rounds) asm volatile("mad.lo.u32 %0, %0, %1, %1; or.b32 %0, %0, 1;" : "+r"(odd) : "r"(rounds));
  return odd != 0;
}

/// threadIdx.y is the tile within the block. Kernels that are not paced do not ask either: a thread that moves one word
/// is bound by its instructions.
template <class Word, class Form, int words_per_tile, bool is_paced, class Index>
__global__ void __launch_bounds__(most_nest_threads)
    nest_kernel(const __grid_constant__ NestWork<Index> work, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  foresee(completion);
  wait_for_kernel_before();
  if constexpr (is_paced) {
    if (!pace_loads(work.pacing_rounds)) return;
  }
  // The last block's tiles that are not there have no words.
  const std::uint32_t tile = blockIdx.x * blockDim.y + threadIdx.y;
  run_known_tile<Word, Form, words_per_tile>(work, tile, DeviceBlock{});
  complete(completion);
}

template <class Word, class Form, int words_per_tile>
constexpr bool may_be_paced() noexcept {
  return sizeof(Word) >= 4 && words_per_tile == threads_per_block &&
         is_of_few_modes(Form::level_count, Form::table_level);
}

template <class Word, class Form, int words_per_tile, class Index>
constexpr bool has_kernel() noexcept {
  if (words_per_tile % threads_per_block != 0) {
    return has_partly_doubled_tiles(sizeof(Word), sizeof(Index), Form::level_count, Form::table_level);
  }
  return words_per_tile <=
         threads_per_block * most_words_per_thread(sizeof(Word), Form::level_count == 0 || Form::table_level >= 0);
}

/// Precondition: has_kernel() for the work's words_per_tile.
template <class Word, class Form, class Index>
cudaError_t launch_form(const NestWork<Index>& work, const Queue& queue, const Completion& completion) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  visit_words_per_tile(work.words_per_tile, [&](auto words_per_tile) {
    constexpr int words = decltype(words_per_tile)::value;
    if constexpr (has_kernel<Word, Form, words, Index>()) {
      auto* kernel = nest_kernel<Word, Form, words, false, Index>;
      if constexpr (may_be_paced<Word, Form, words>()) {
        if (work.pacing_rounds > 0) kernel = nest_kernel<Word, Form, words, true, Index>;
      }
      error = launch_tiles(kernel, work, queue, completion, work.tiles_per_block);
    }
  });
  return error;
}

}  // namespace gapless::pack::cuda

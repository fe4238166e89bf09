// The nest's kernels but those of nest_kernels_of_4.cu.
#include "pack/cuda/kernels/nest_kernels.cuh"
#include "pack/cuda/kernels/nest_kernels.hpp"

namespace gapless::pack::gpu {

cudaError_t launch_nest(const NestWork<std::uint32_t>& work, const Queue& queue,
                        const Completion& completion) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  visit_word(work.word_shift(), [&](auto word) {
    using Word = decltype(word);
    if constexpr (sizeof(Word) < 4) {
      error = launch_form<Word, AnyForm>(work, queue, completion);
    } else if constexpr (sizeof(Word) > 4) {
      visit_form(work.nest, [&](auto form) { error = launch_form<Word, decltype(form)>(work, queue, completion); });
    }
  });
  return error;
}

cudaError_t launch_nest(const NestWork<std::uint64_t>& work, const Queue& queue,
                        const Completion& completion) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  visit_word(work.word_shift(),
             [&](auto word) { error = launch_form<decltype(word), AnyForm>(work, queue, completion); });
  return error;
}

}  // namespace gapless::pack::gpu

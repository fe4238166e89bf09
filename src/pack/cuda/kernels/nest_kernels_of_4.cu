// The nest's kernels of words of 4 bytes and indices of 32 bits: about half of all of them.
#include "pack/cuda/kernels/nest_kernels.cuh"
#include "pack/cuda/kernels/nest_kernels.hpp"

namespace gapless::pack::gpu {

cudaError_t launch_nest_of_4(const NestWork<std::uint32_t>& work, const Queue& queue,
                             const Completion& completion) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  visit_form(work.nest,
             [&](auto form) { error = launch_form<std::uint32_t, decltype(form)>(work, queue, completion); });
  return error;
}

}  // namespace gapless::pack::gpu

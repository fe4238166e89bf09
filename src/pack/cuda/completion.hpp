// How the CPU learns that a kernel is done: by a number in page-locked memory that the kernel's last block writes.
//
// The CPU polls that number instead of asking the driver, which takes microseconds longer to notice. Blocks count
// themselves in GPU memory; the last one to arrive resets the count, so that the next kernel finds zero.
#pragma once

#include <cstdint>

namespace gapless::pack::cuda {

/// Travels in the parameters of a kernel. Kernels that share one must follow each other in one stream.
struct Completion {
  std::uint32_t* arrived = nullptr;  ///< in GPU memory, 0 before and after a kernel
  std::uint32_t* flag = nullptr;     ///< page-locked; null: nobody waits for it
  std::uint32_t value = 0;           ///< what to write to the flag
};

#if defined(__CUDACC__)
/// To be called by all threads of a block when they have done all their work, of which the CPU then sees every byte.
__device__ __forceinline__ void complete(const Completion& completion) {
  if (completion.flag == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  // The fence covers what this block's other threads wrote before the barrier, and at system scope, because what they
  // wrote may be host memory or that of another GPU.
  __threadfence_system();
  if (gridDim.x > 1 && atomicInc(completion.arrived, gridDim.x - 1) != gridDim.x - 1) return;
  *const_cast<volatile std::uint32_t*>(completion.flag) = completion.value;
}
#endif

}  // namespace gapless::pack::cuda

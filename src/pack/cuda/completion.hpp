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
  bool beyond_gpu = true;            ///< the kernel writes memory that is not its own GPU's
};

#if defined(__CUDACC__)
/// Has the numbers fetched at the beginning, while there is other work to do, instead of waiting for them at the end.
__device__ __forceinline__ void foresee(const Completion& completion) {
  asm volatile("" ::"l"(completion.arrived), "l"(completion.flag), "r"(completion.value));
}

/// To be called by all threads of a block when they have done all their work, of which every byte is then to be seen.
__device__ __forceinline__ void complete(const Completion& completion) {
  if (completion.flag == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0) return;
  // The fence covers what this block's other threads wrote before the barrier. Whoever reads this GPU's memory does so
  // through its second-level cache, where all stores are once they are visible to the whole GPU.
  if (completion.beyond_gpu) {
    __threadfence_system();
  } else {
    __threadfence();
  }
  if (gridDim.x > 1 && atomicInc(completion.arrived, gridDim.x - 1) != gridDim.x - 1) return;
  *const_cast<volatile std::uint32_t*>(completion.flag) = completion.value;
}
#endif

}  // namespace gapless::pack::cuda

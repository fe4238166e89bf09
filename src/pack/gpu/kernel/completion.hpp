// How the CPU learns that a kernel is done: by a number in page-locked memory that the kernel's last block writes.
//
// The CPU polls that number instead of asking the driver, which takes microseconds longer to notice. It is the same
// number each time, so that a launch that comes again has the same parameters. Blocks count themselves in GPU memory;
// the last one to arrive resets the count, so that the next kernel finds zero.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gapless::pack::gpu {

/// Travels in the parameters of a kernel. Kernels that share one must follow each other in one stream. Has no padding,
/// so that equal launches have equal bytes.
struct Completion {
  std::uint32_t* arrived = nullptr;  ///< in GPU memory, 0 before and after a kernel
  std::uint32_t* flag = nullptr;     ///< page-locked, 0 before a kernel and 1 after it; null: nobody waits for it
  std::uint64_t beyond_gpu = 1;      ///< does the kernel write memory that is not its own GPU's?
};
static_assert(std::has_unique_object_representations_v<Completion>);

#if defined(__CUDACC__)
/// Has the pointers fetched at the beginning, while there is other work to do, instead of waiting for them at the end.
__device__ __forceinline__ void preload(const Completion& completion) {
  asm volatile("" ::"l"(completion.arrived), "l"(completion.flag));
}

/// To be called by all threads of a block when they have done all their work, of which every byte is then to be seen.
__device__ __forceinline__ void complete(const Completion& completion) {
  if (completion.flag == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0) return;
  // The fence covers what this block's other threads wrote before the barrier. Whoever reads this GPU's memory does so
  // through its second-level cache, where all stores are once they are visible to the whole GPU.
  if (completion.beyond_gpu != 0) {
    __threadfence_system();
  } else {
    __threadfence();
  }
  if (gridDim.x > 1 && atomicInc(completion.arrived, gridDim.x - 1) != gridDim.x - 1) return;
  *const_cast<volatile std::uint32_t*>(completion.flag) = 1;
}
#endif

}  // namespace gapless::pack::gpu

// What all kernels of a block a tile share.
#pragma once

#include <cuda_runtime.h>

#include "pack/cuda/launch/tile_launch.hpp"
#include "pack/gpu/kernel/block.hpp"
#include "pack/gpu/kernel/completion.hpp"

namespace gapless::pack::gpu {

/// To be called before a kernel touches memory: its blocks may have been scheduled while the kernel before it in the
/// stream was still running.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the blocks of the next kernel in the stream be scheduled once all blocks of this one are, if it waits for this
/// one before it touches memory. It has then started, and done what needs no data, by the time this one ends.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Launches a block for so many tiles, a row of threads each. The kernel must call wait_for_kernel_before().
template <class Work>
cudaError_t launch_tiles(void (*kernel)(Work, Completion), const Work& work, const Queue& queue,
                         const Completion& completion, int tiles_per_block = 1) noexcept {
  const KernelParameter parameters[] = {{&work, sizeof work}, {&completion, sizeof completion}};
  return launch_tiles(reinterpret_cast<const void*>(kernel), work.tiles(), tiles_per_block, queue, parameters);
}

}  // namespace gapless::pack::gpu

// What all launches share.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <limits>

#include "pack/cuda/block.hpp"
#include "pack/cuda/completion.hpp"

namespace gapless::pack::cuda {

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

/// Does the current device let a kernel's blocks be scheduled while the kernel before it finishes?
inline bool may_launch_early() noexcept {
  static std::array<std::atomic<signed char>, 64> known{};  // 0: not asked yet
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= static_cast<int>(known.size())) return false;
  std::atomic<signed char>& answer = known[static_cast<std::size_t>(device)];
  if (answer.load(std::memory_order_relaxed) == 0) {
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    answer.store(major >= 9 ? 1 : -1, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) > 0;
}

/// Launches a block a tile. The kernel must call wait_for_kernel_before().
template <class Work>
cudaError_t launch_tiles(void (*kernel)(Work, Completion), const Work& work, cudaStream_t stream,
                         const Completion& completion) noexcept {
  const std::uint64_t tiles = work.tiles();
  if (tiles > std::numeric_limits<std::int32_t>::max()) return cudaErrorInvalidConfiguration;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(tiles));
  config.blockDim = dim3(threads_per_block);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = may_launch_early() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, work, completion);
}

}  // namespace gapless::pack::cuda

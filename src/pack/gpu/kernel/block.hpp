// What a kernel body sees of the threads that run it, so that the same body runs on a GPU and in a loop on the CPU.
//
// A body is a sequence of phases: block.threads(phase) runs phase(thread) for every thread, block.barrier() separates
// phases that talk through shared memory. Nothing but shared memory outlives a phase. block.space turns addresses into
// pointers.
#pragma once

#include <cstdint>

#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {

/// Memory addressed as it is. Tests pass a space of their own that checks and translates every address.
struct DirectSpace {
  template <class T>
  GAPLESS_HOST_DEVICE T* at(std::uintptr_t address) const noexcept {
#if defined(__CUDA_ARCH__)
    // Else every access might be to shared memory: it keeps its place among others, and takes longer.
    return reinterpret_cast<T*>(__cvta_global_to_generic(address));
#else
    return reinterpret_cast<T*>(address);
#endif
  }
  /// The 8 bytes at an aligned address of which the layout may hold only some.
  GAPLESS_HOST_DEVICE std::uint64_t word_around(std::uintptr_t address) const noexcept {
    return *at<const std::uint64_t>(address);
  }
};

/// All threads of a block in one. They run last to first, which a missing barrier does not survive as easily as the
/// order that the phases are written for.
template <class Space>
struct SequentialBlock {
  const Space& space;

  template <class Phase>
  void threads(const Phase& phase) const {
    for (int thread = threads_per_block; thread-- > 0;) phase(thread);
  }
  void barrier() const noexcept {}
};

#if defined(__CUDACC__)
/// The block that the calling GPU thread belongs to.
struct DeviceBlock {
  DirectSpace space;

  template <class Phase>
  __device__ __forceinline__ void threads(const Phase& phase) const {
    phase(static_cast<int>(threadIdx.x));
  }
  __device__ __forceinline__ void barrier() const { __syncthreads(); }
};
#endif

/// For work whose threads share nothing.
struct NothingShared {};

inline constexpr std::uint32_t lanes_per_warp = 32;

/// The number of lanes for which holds(lane) is true. Must be called by all threads of a warp.
template <class Condition>
GAPLESS_HOST_DEVICE std::uint32_t count_lanes(const Condition& holds) noexcept {
#if defined(__CUDA_ARCH__)
  return __popc(__ballot_sync(~0u, holds(threadIdx.x % lanes_per_warp)));
#else
  std::uint32_t count = 0;
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) count += holds(lane) ? 1 : 0;
  return count;
#endif
}

/// What a block does before run_tile, and maybe before the kernel before its own has ended: it touches no data.
template <class Work, class Block>
GAPLESS_HOST_DEVICE void prepare_tile(const Work&, std::uint64_t, const Block&, typename Work::Shared&) noexcept {}

}  // namespace gapless::pack::gpu

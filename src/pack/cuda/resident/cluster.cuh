// The few instructions of thread block clusters and their barriers that CUDA C++ has no names for (sm_90).
#pragma once

#include <cstdint>

#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {

#if __CUDA_ARCH__ >= 900
/// A barrier in shared memory that counts arrivals, bytes to come, or both.
class ClusterBarrier {
 public:
  __device__ void initialise(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  /// Arrives, and lets the phase wait for that many bytes more.
  __device__ void expect(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  /// Arrives at this barrier in another block of the cluster, after all that the caller has seen.
  __device__ void arrive_at(unsigned block) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address_in(block)) : "memory");
  }
  /// The same without a word about what the caller has seen.
  __device__ void arrive_relaxed_at(unsigned block) {
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(address_in(block)) : "memory");
  }
  __device__ bool is_complete(unsigned parity) {
    unsigned complete;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(complete)
        : "r"(address()), "r"(parity)
        : "memory");
    return complete != 0;
  }
  __device__ void wait(unsigned parity) {
    while (!is_complete(parity)) {
    }
  }
  /// Stores to `place` of another block's shared memory, and counts the bytes there.
  __device__ void send(const void* place, uint4 value, unsigned block) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     mapped(place, block)),
                 "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(address_in(block))
                 : "memory");
  }

 private:
  static __device__ unsigned mapped(const void* place, unsigned block) {
    unsigned result;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(result)
        : "r"(static_cast<unsigned>(__cvta_generic_to_shared(place))), "r"(block));
    return result;
  }
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(this)); }
  __device__ unsigned address_in(unsigned block) const { return mapped(this, block); }

  std::uint64_t state_;
};

__device__ __forceinline__ void synchronise_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ unsigned cluster_blocks() {
  unsigned blocks;
  asm("mov.u32 %0, %cluster_nctaid.x;" : "=r"(blocks));
  return blocks;
}

__device__ __forceinline__ std::uint32_t cycles() {
  std::uint32_t now;
  asm volatile("mov.u32 %0, %clock;" : "=r"(now)::"memory");
  return now;
}

__device__ __forceinline__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
#endif

}  // namespace gapless::pack::gpu

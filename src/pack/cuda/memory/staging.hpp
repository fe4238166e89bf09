// Two buffers of packed GPU memory: a copy engine fills one while a kernel unpacks the other.
//
// There is one pair for each context, made when it is first needed and kept. Events order all use of it, so that
// whoever has issued his chunks can hand it on; a thread that finds it taken, or no memory for it, goes without.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "pack/gpu/batch/chunks.hpp"

namespace gapless::pack::gpu {

class Staging final : public ChunkBuffers {
 public:
  /// For the caller alone until release(), for kernels in `queue`, of the current context; false if it is not to be
  /// had. Copies wait for what `queue` has been given so far.
  bool acquire(cudaStream_t queue) noexcept;
  void release() noexcept { taken_.clear(std::memory_order_release); }
  /// After a failure: returns when no copy reads host memory any more.
  void abandon() noexcept;

  device::Status bring(const void* host, std::size_t bytes, void*& packed) noexcept override;
  device::Status done() noexcept override;

 private:
  cudaError_t create() noexcept;
  cudaError_t follow(cudaStream_t queue) noexcept;

  std::atomic_flag taken_;
  bool is_complete_ = false;
  int current_ = 0;
  cudaStream_t queue_ = nullptr;   ///< where kernels are launched
  cudaStream_t stream_ = nullptr;  ///< where copies are issued
  char* buffers_ = nullptr;
  cudaEvent_t issued_ = nullptr;
  cudaEvent_t arrived_[2] = {};
  cudaEvent_t unpacked_[2] = {};
};

}  // namespace gapless::pack::gpu

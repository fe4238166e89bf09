#include "pack/cuda/memory/staging.hpp"

#include "device/cuda/errors.hpp"
#include "device/cuda/scopes.hpp"

namespace gapless::pack::gpu {

using device::cuda::OutsideCapture;
using device::cuda::result;

bool Staging::acquire(cudaStream_t queue) noexcept {
  if (taken_.test_and_set(std::memory_order_acquire)) return false;
  if (create() == cudaSuccess && follow(queue) == cudaSuccess) return true;
  cudaGetLastError();
  release();
  return false;
}

cudaError_t Staging::create() noexcept {
  if (is_complete_) return cudaSuccess;
  const OutsideCapture outside;
  cudaError_t error = cudaSuccess;
  if (stream_ == nullptr) error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  for (cudaEvent_t* event : {&issued_, &arrived_[0], &arrived_[1], &unpacked_[0], &unpacked_[1]}) {
    if (error == cudaSuccess && *event == nullptr) error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  }
  if (error == cudaSuccess) error = cudaMalloc(reinterpret_cast<void**>(&buffers_), 2 * largest_chunk);
  is_complete_ = error == cudaSuccess;
  return error;
}

cudaError_t Staging::follow(cudaStream_t queue) noexcept {
  queue_ = queue;
  const cudaError_t error = cudaEventRecord(issued_, queue);
  return error == cudaSuccess ? cudaStreamWaitEvent(stream_, issued_, 0) : error;
}

void Staging::abandon() noexcept {
  if (cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
}

device::Status Staging::bring(const void* host, std::size_t bytes, void*& packed) noexcept {
  current_ = 1 - current_;
  packed = buffers_ + current_ * largest_chunk;
  cudaError_t error = cudaStreamWaitEvent(stream_, unpacked_[current_], 0);
  if (error == cudaSuccess) error = cudaMemcpyAsync(packed, host, bytes, cudaMemcpyDefault, stream_);
  if (error == cudaSuccess) error = cudaEventRecord(arrived_[current_], stream_);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(queue_, arrived_[current_], 0);
  return result("bringing packed bytes to the GPU", error);
}

device::Status Staging::done() noexcept {
  return result("marking the end of a chunk", cudaEventRecord(unpacked_[current_], queue_));
}

}  // namespace gapless::pack::gpu

#include "device/cuda/streams.hpp"

#include <exception>
#include <new>
#include <utility>

#include "device/cuda/scopes.hpp"

namespace gapless::device::cuda {

bool Lane::follow(cudaStream_t queue) noexcept {
  if (queue == stream) return true;
  cudaError_t error = cudaEventRecord(event, queue);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, event, 0);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

cudaError_t highest_priority(int& priority) noexcept {
  int lowest = 0;
  return cudaDeviceGetStreamPriorityRange(&lowest, &priority);
}

std::unique_ptr<Lane> make_lane(cudaError_t& error) noexcept {
  const OutsideCapture outside;
  std::unique_ptr<Lane> lane(new (std::nothrow) Lane);
  int priority = 0;
  error = lane != nullptr ? highest_priority(priority) : cudaErrorMemoryAllocation;
  if (error == cudaSuccess) error = cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, priority);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&lane->event, cudaEventDisableTiming);
  if (error == cudaSuccess) return lane;
  if (lane != nullptr && lane->stream != nullptr) cudaStreamDestroy(lane->stream);
  return nullptr;
}

void IdleLanes::give(std::unique_ptr<Lane> lane) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(lane));
  } catch (const std::exception&) {
    // Without memory to keep it in, the lane is lost, which harms nobody.
  }
}

std::unique_ptr<Lane> IdleLanes::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (lanes_.empty()) return nullptr;
  std::unique_ptr<Lane> lane = std::move(lanes_.back());
  lanes_.pop_back();
  return lane;
}

cudaError_t query(cudaStream_t stream) noexcept {
  const OutsideCapture outside;
  const cudaError_t error = cudaStreamQuery(stream);
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

cudaError_t may_touch_default_stream(bool& may) noexcept {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(cudaStreamLegacy, &capture);
  may = error == cudaSuccess;
  if (error != cudaErrorStreamCaptureImplicit) return error;
  cudaGetLastError();
  return cudaSuccess;
}

}  // namespace gapless::device::cuda

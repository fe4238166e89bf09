// What every (thread, GPU) has of its own: a stream, an event, and what the layers above add to them. Handed on when a
// thread ends.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/slots.hpp"

namespace gapless::device::cuda {

/// Forgotten, not destroyed: its end calls no CUDA function.
struct Lane {
  cudaStream_t stream = nullptr;  ///< of high priority, non-blocking with respect to the legacy stream
  cudaEvent_t event = nullptr;
  Slots slots;  ///< for the layers above

  /// Lets the stream wait for `queue`; false if that failed, and then nothing has happened.
  bool follow(cudaStream_t queue) noexcept;
};

/// Makes one in the current context; nullptr with the reason in `error`.
std::unique_ptr<Lane> make_lane(cudaError_t& error) noexcept;

/// Lanes of ended threads. Their streams are never destroyed: at process exit the driver may be gone before our
/// destructors.
class IdleLanes {
 public:
  void give(std::unique_ptr<Lane> lane) noexcept;
  /// nullptr where there is none.
  std::unique_ptr<Lane> take() noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// The priority of lanes' streams: whoever waits for communication waits longer than whoever computes beside it.
cudaError_t highest_priority(int& priority) noexcept;

/// cudaSuccess once everything has been done that was issued to the stream, and to those it synchronises with. Asked
/// while another stream is being captured, too.
cudaError_t query(cudaStream_t stream) noexcept;
inline bool is_idle(cudaStream_t stream) noexcept { return query(stream) == cudaSuccess; }
/// Is it idle, or can nothing be done in it any more?
inline bool has_ended(cudaStream_t stream) noexcept { return query(stream) != cudaErrorNotReady; }

inline bool is_capturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

/// While a stream that synchronises with the default stream is being captured, the default stream must not be touched,
/// and it has no work that could be waited for: what is captured does not run.
cudaError_t may_touch_default_stream(bool& may) noexcept;

}  // namespace gapless::device::cuda

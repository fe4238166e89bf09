// What every (thread, GPU) has of its own: a stream, an event, a number in page-locked memory to wait for, and graphs
// of kernels that are waited for. Handed on when a thread ends.
#pragma once

#include <cuda_runtime_api.h>

#include "device/device.hpp"
#include "pack/cuda/completion.hpp"
#include "pack/cuda/graph_launch.hpp"

namespace gapless::pack::cuda {

struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Completion completion;                  ///< of the last kernel that was to complete it
  GraphLaunches* graphs = nullptr;        ///< for the program's default stream
  GraphLaunches* graphs_ahead = nullptr;  ///< for `stream`, which has a higher priority

  /// What the next kernel is to complete. Precondition: the last one has.
  const Completion& next_completion(device::Reach reach) noexcept;
  /// Returns when the last next_completion() is complete or `queue`, where its kernel was launched, has failed.
  cudaError_t wait(cudaStream_t queue) const noexcept;
};

/// The calling thread's lane on `device`, which must be the current device; nullptr with the reason in `error`.
Lane* lane(int device, cudaError_t& error) noexcept;

/// Has everything been done that was issued to the stream, and to those it synchronises with? Asked while another
/// stream is being captured, too.
bool is_idle(cudaStream_t stream) noexcept;

}  // namespace gapless::pack::cuda

// What every (thread, GPU) has of its own: a stream, an event, a number in page-locked memory to wait for, and graphs
// of kernels that are waited for. Handed on when a thread ends.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include "device/device.hpp"
#include "pack/cuda/completion.hpp"
#include "pack/cuda/graph_launch.hpp"

namespace gapless::pack::cuda {

/// Forgotten, not destroyed: its end calls no CUDA function.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Completion completion;                        ///< of the last kernel that was to complete it
  std::unique_ptr<GraphLaunches> graphs;        ///< for the program's default stream
  std::unique_ptr<GraphLaunches> graphs_ahead;  ///< for `stream`, which has a higher priority

  /// What the next kernel is to complete. Precondition: the last one has.
  const Completion& next_completion(device::Reach reach) noexcept;
  /// Returns when the last next_completion() is complete or `queue`, where its kernel was launched, has failed.
  cudaError_t wait(cudaStream_t queue) const noexcept;
};

/// Makes one in the current context; after a failure it has no stream.
cudaError_t create(Lane& lane) noexcept;

/// Lanes of ended threads. Their streams are never destroyed: at process exit the driver may be gone before our
/// destructors.
class IdleLanes {
 public:
  void give(Lane&& lane) noexcept;
  /// Without a stream where there is none.
  Lane take() noexcept;

 private:
  std::mutex mutex_;
  std::vector<Lane> lanes_;
};

/// Has everything been done that was issued to the stream, and to those it synchronises with? Asked while another
/// stream is being captured, too.
bool is_idle(cudaStream_t stream) noexcept;

}  // namespace gapless::pack::cuda

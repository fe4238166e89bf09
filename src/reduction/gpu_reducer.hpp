// Reductions on a GPU, behind an interface that plugins implement beside device::Runtime.
#pragma once

#include "device/runtime.hpp"
#include "reduction/reduction.hpp"

namespace gapless::reduction {

/// All functions are thread-safe, leave the calling thread's current device as it was, never throw and never write to
/// stdout. After a failure device::Runtime::last_error() describes it for the calling thread.
class GpuReducer {
 public:
  virtual ~GpuReducer() = default;

  /// Issues the reduction to `stream`, one of `device`, by which all operands and the result must be addressable.
  /// Asynchronous: they must stay valid until the stream has passed this point. Numbers must be aligned to their size.
  virtual device::Status reduce(const Job& job, int device, void* stream) noexcept = 0;
};

/// The reducer of the plugin behind device::runtime(); null if there is none. Looked for on the first call.
GpuReducer* gpu_reducer() noexcept;

}  // namespace gapless::reduction

/// What a plugin exports beside gapless_device_open. `interface_version` must equal
/// gapless_reduction_interface_version, else it returns null.
extern "C" gapless::reduction::GpuReducer* gapless_reduction_open(int interface_version);
inline constexpr int gapless_reduction_interface_version = 1;

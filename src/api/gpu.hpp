// What packing and copying share of calls to the GPU runtime.
#pragma once

#include "api/error.hpp"
#include "device/device.hpp"

namespace gapless::api {

/// Where the bytes at both ends of a movement are. Page-locked memory is told from ordinary memory where it matters:
/// beside GPU memory. `of_call` is for calls that move more than once.
void locate(const void* one, const void* other, device::Location& of_one, device::Location& of_other,
            device::Locator* of_call = nullptr) noexcept;

/// The GPU runtime; null with the failure recorded, to be returned as UNSUPPORTED, where there is none.
device::Runtime* gpu_runtime();

/// What a runtime's answer is to the caller of the C API, recorded if it is a failure.
gapless_status status_of(device::Status status, device::Runtime& runtime, int device) noexcept;

/// Calls action(runtime), which returns a device::Status.
template <class Action>
gapless_status on_gpu(int device, const Action& action) {
  device::Runtime* runtime = gpu_runtime();
  return runtime == nullptr ? GAPLESS_ERROR_UNSUPPORTED : status_of(action(*runtime), *runtime, device);
}

}  // namespace gapless::api

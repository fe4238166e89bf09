// What packing and copying share of calls to the GPU.
#pragma once

#include "api/error.hpp"
#include "device/device.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::api {

/// Where the bytes at both ends of a movement are. Page-locked memory is told from ordinary memory where it matters:
/// beside GPU memory. `of_call` is for calls that move more than once.
void locate(const void* one, const void* other, device::Location& of_one, device::Location& of_other,
            device::Locator* of_call = nullptr) noexcept;

/// The GPU engine; null with the failure recorded, to be returned as UNSUPPORTED, where there is none.
pack::GpuEngine* gpu_engine();

/// What an engine's or a runtime's answer is to the caller of the C API, recorded if it is a failure.
gapless_status status_of(device::Status status, int device) noexcept;

/// Calls action(engine), which returns a device::Status.
template <class Action>
gapless_status on_gpu(int device, const Action& action) {
  pack::GpuEngine* engine = gpu_engine();
  return engine == nullptr ? GAPLESS_ERROR_UNSUPPORTED : status_of(action(*engine), device);
}

}  // namespace gapless::api

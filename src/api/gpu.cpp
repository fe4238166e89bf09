#include "api/gpu.hpp"

#include "api/placement.hpp"

namespace gapless::api {
namespace {

/// device::locate may take page-locked heap memory for ordinary memory; the runtime knows.
void locate_exactly(const void* pointer, device::Location& location) noexcept {
  if (location.kind != device::MemoryKind::host) return;
  if (device::Runtime* runtime = device::runtime()) location = runtime->locate(pointer);
}

/// Of the calling thread, where there is an engine.
const char* last_error() noexcept { return device::runtime()->last_error(); }

}  // namespace

void locate(const void* one, const void* other, device::Location& of_one, device::Location& of_other,
            device::Locator* of_call) noexcept {
  of_one = device::locate(one, of_call);
  of_other = device::locate(other, of_call);
  if (placement_of(of_one).on_gpu) locate_exactly(other, of_other);
  if (placement_of(of_other).on_gpu) locate_exactly(one, of_one);
}

pack::GpuEngine* gpu_engine() {
  pack::GpuEngine* engine = pack::gpu_engine();
  if (engine == nullptr) fail(GAPLESS_ERROR_UNSUPPORTED, "GPU memory, but: %s", pack::why_no_gpu_engine().c_str());
  return engine;
}

gapless_status status_of(device::Status status, int device) noexcept {
  switch (status) {
    case device::Status::ok:
      return GAPLESS_SUCCESS;
    case device::Status::out_of_memory:
      return fail(GAPLESS_ERROR_OUT_OF_MEMORY, "GPU %d: %s", device, last_error());
    case device::Status::unsupported:
      return fail(GAPLESS_ERROR_UNSUPPORTED, "GPU %d: %s", device, last_error());
    case device::Status::failed:
      break;
  }
  return fail(GAPLESS_ERROR_DEVICE, "GPU %d: %s", device, last_error());
}

}  // namespace gapless::api

#include "reduction/gpu_reducer.hpp"

#include "device/device.hpp"

namespace gapless::reduction {
namespace {

GpuReducer* look() noexcept {
  if (device::runtime() == nullptr) return nullptr;
  const auto open =
      reinterpret_cast<decltype(&gapless_reduction_open)>(device::plugin_function("gapless_reduction_open"));
  return open != nullptr ? open(gapless_reduction_interface_version) : nullptr;
}

}  // namespace

GpuReducer* gpu_reducer() noexcept {
  static GpuReducer* const found = look();
  return found;
}

}  // namespace gapless::reduction

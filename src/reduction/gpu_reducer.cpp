#include "reduction/gpu_reducer.hpp"

#include <atomic>

#include "device/device.hpp"

namespace gapless::reduction {
namespace {

std::atomic<GpuReducer*> loaded{nullptr};

}  // namespace

GpuReducer* gpu_reducer() noexcept {
  if (GpuReducer* const reducer = loaded.load(std::memory_order_acquire)) return reducer;
  if (device::runtime() == nullptr) return nullptr;
  const auto open =
      reinterpret_cast<decltype(&gapless_reduction_open)>(device::plugin_function("gapless_reduction_open"));
  GpuReducer* const reducer = open != nullptr ? open(gapless_reduction_interface_version) : nullptr;
  loaded.store(reducer, std::memory_order_release);
  return reducer;
}

}  // namespace gapless::reduction

#include "pack/gpu_engine.hpp"

#include <atomic>

#include "device/device.hpp"

namespace gapless::pack {
namespace {

std::atomic<GpuEngine*> loaded{nullptr};

}  // namespace

GpuEngine* gpu_engine() noexcept {
  if (GpuEngine* engine = loaded.load(std::memory_order_acquire)) return engine;
  if (device::runtime() == nullptr) return nullptr;
  const auto open = reinterpret_cast<decltype(&gapless_pack_open)>(device::plugin_function("gapless_pack_open"));
  GpuEngine* const engine = open != nullptr ? open(gapless_pack_interface_version) : nullptr;
  loaded.store(engine, std::memory_order_release);
  return engine;
}

std::string why_no_gpu_engine() {
  if (gpu_engine() != nullptr) return {};
  const std::string why = device::why_unavailable();
  return !why.empty() ? why : "the GPU plugin was built for another version of gapless";
}

}  // namespace gapless::pack

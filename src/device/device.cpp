#include "device/device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "device/driver.hpp"
#include "device/host_memory.hpp"
#include "device/plugin.hpp"

namespace gapless::device {
namespace {

using internal::Oracle;

std::atomic<Runtime*> loaded{nullptr};
std::atomic<bool> device_pointer_met{false};

const char* plugin_override() noexcept {
  const char* path = std::getenv("GAPLESS_DEVICE_PLUGIN");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

bool turned_off() noexcept {
  const char* gpu = std::getenv("GAPLESS_GPU");
  return gpu != nullptr && std::strcmp(gpu, "0") == 0;
}

/// Never destroyed: other threads and other libraries' destructors may still ask at exit.
const Plugin& plugin() noexcept {
  static std::once_flag once;
  static const Plugin* result = nullptr;
  std::call_once(once, [] {
    static const Plugin empty;
    result = &empty;
    try {
      const char* path = plugin_override();
      result = turned_off() ? new Plugin{nullptr, "GPU support is turned off by GAPLESS_GPU=0"}
                            : new Plugin(load_plugin(path != nullptr ? path : ""));
    } catch (...) {
      // Out of memory this early: no plugin, and no room for a sentence about it.
    }
    loaded.store(result->runtime, std::memory_order_release);
  });
  return *result;
}

void warn_once(const char* what, const std::string& why) noexcept {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) std::fprintf(stderr, "gapless: %s: %s\n", what, why.c_str());
}

/// `ask_driver(pointer)` is called where the driver knows.
template <class AskDriver>
inline Location locate_by(const void* pointer, const AskDriver& ask_driver) noexcept {
  const Oracle known = internal::known_oracle();
  if (known == Oracle::nobody || pointer == nullptr || is_surely_host(pointer)) return {};
  const Location location =
      known == Oracle::driver ? ask_driver(pointer) : loaded.load(std::memory_order_acquire)->locate(pointer);
  if (location.kind == MemoryKind::device && !device_pointer_met.load(std::memory_order_relaxed)) {
    device_pointer_met.store(true, std::memory_order_relaxed);
  }
  return location;
}

}  // namespace

namespace internal {

constinit std::atomic<Oracle> oracle{Oracle::not_looked};

Oracle look() noexcept {
  static std::once_flag once;
  std::call_once(once, [] {
    Oracle found = Oracle::nobody;
    if (!turned_off()) {
      if (plugin_override() == nullptr) {
        found = driver::find() ? Oracle::driver : Oracle::nobody;
      } else if (plugin().runtime != nullptr) {
        found = Oracle::plugin;
      } else {
        warn_once("no GPU memory will be recognised", plugin().why_unavailable);
      }
    }
    if (found != Oracle::nobody) learn_host_memory();
    oracle.store(found, std::memory_order_release);
  });
  return oracle.load(std::memory_order_acquire);
}

}  // namespace internal

Location locate(const void* pointer) noexcept {
  return locate_by(pointer, [](const void* unknown) { return driver::locate(unknown); });
}

Location Locator::locate(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  // The newest first: a batch asks of two allocations in turn.
  for (unsigned age = 1; age <= std::min(found_, most_known); ++age) {
    const Allocation& allocation = known_[(found_ - age) % most_known];
    if (address - allocation.begin < allocation.bytes) return allocation.location;
  }
  return locate_by(pointer, [this](const void* unknown) {
    driver::AddressRange range;
    const Location location = driver::locate(unknown, range);
    if (range.bytes != 0) known_[found_++ % most_known] = {range.begin, range.bytes, location};
    return location;
  });
}

Runtime* runtime() noexcept {
  if (Runtime* known = loaded.load(std::memory_order_acquire)) return known;
  const Plugin& result = plugin();
  if (result.runtime == nullptr && device_pointer_met.load(std::memory_order_relaxed)) {
    warn_once("the program uses GPU memory, which MPI calls cannot be given", result.why_unavailable);
  }
  return result.runtime;
}

std::string why_unavailable() { return plugin().why_unavailable; }

}  // namespace gapless::device

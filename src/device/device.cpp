#include "device/device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "base/settings.hpp"
#include "device/driver.hpp"
#include "device/host_memory.hpp"
#include "device/plugin.hpp"

namespace gapless::device {
namespace {

using internal::Oracle;

std::atomic<Runtime*> loaded{nullptr};
std::atomic<bool> device_pointer_seen{false};
std::atomic<void (*)(const void*) noexcept> watcher{nullptr};

/// The empty string for none.
const char* plugin_override() noexcept { return settings().device_plugin.data(); }

bool turned_off() noexcept { return !settings().gpu; }

/// Never destroyed: other threads and other libraries' destructors may still ask at exit.
const Plugin& plugin() noexcept {
  static std::once_flag once;
  static const Plugin* result = nullptr;
  std::call_once(once, [] {
    static const Plugin empty;
    result = &empty;
    try {
      result = turned_off() ? new Plugin{nullptr, "GPU support is turned off by GAPLESS_GPU=0"}
                            : new Plugin(load_plugin(plugin_override()));
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
  const Oracle oracle = internal::found_oracle();
  if (oracle == Oracle::nobody || pointer == nullptr || is_surely_host(pointer)) return {};
  const Location location =
      oracle == Oracle::driver ? ask_driver(pointer) : loaded.load(std::memory_order_acquire)->locate(pointer);
  if (location.kind != MemoryKind::device) return location;
  if (!device_pointer_seen.load(std::memory_order_relaxed)) device_pointer_seen.store(true, std::memory_order_relaxed);
  if (const auto watch = watcher.load(std::memory_order_relaxed)) [[unlikely]]
    watch(pointer);
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
      if (*plugin_override() == '\0') {
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

bool has_met_gpu_memory() noexcept { return device_pointer_seen.load(std::memory_order_relaxed); }

Location locate(const void* pointer) noexcept {
  return locate_by(pointer, [](const void* unknown) { return driver::locate(unknown); });
}

void watch_gpu_memory(void (*watch)(const void*) noexcept) noexcept { watcher.store(watch, std::memory_order_relaxed); }

Location Locator::locate(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  // The newest first: a batch asks of two allocations in turn.
  for (unsigned age = 1; age <= std::min(found_, most_cached); ++age) {
    const Allocation& allocation = cached_[(found_ - age) % most_cached];
    if (address - allocation.begin < allocation.bytes) return allocation.location;
  }
  driver::AddressRange allocation;
  const Location location =
      locate_by(pointer, [&allocation](const void* unknown) { return driver::locate(unknown, allocation); });
  // Where the allocation is not known, nothing is known of its other addresses.
  if (allocation.bytes == 0 && location.kind == MemoryKind::device) allocation = {address, 1};
  if (allocation.bytes != 0) cached_[found_++ % most_cached] = {allocation.begin, allocation.bytes, location};
  return location;
}

Runtime* runtime() noexcept {
  if (Runtime* runtime = loaded.load(std::memory_order_acquire)) return runtime;
  const Plugin& result = plugin();
  if (result.runtime == nullptr && device_pointer_seen.load(std::memory_order_relaxed)) {
    warn_once("the program uses GPU memory, which MPI calls cannot be given", result.why_unavailable);
  }
  return result.runtime;
}

std::string why_unavailable() { return plugin().why_unavailable; }

void* plugin_function(const char* name) noexcept {
  void* const library = plugin().library;
  return library != nullptr ? dlsym(library, name) : nullptr;
}

}  // namespace gapless::device

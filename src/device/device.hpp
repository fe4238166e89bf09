// What the layers above ask about GPUs: is there one, which memory does a pointer name, and what does its work.
//
// Core never links CUDA. Which kind of memory a pointer names is asked of the driver itself (libcuda, found at run
// time), once for each buffer of a call: lists of allocations go stale (UCX's wrong data). Only the heap, the stack and
// the program's data are known without a question (host_memory). The rest is done by a plugin, libgapless-cuda.so,
// loaded when the first device pointer is seen. GAPLESS_DEVICE_PLUGIN names another plugin; the tests use one whose
// "device" memory the CPU cannot touch, so that every GPU path runs, and every stray host access faults, without a GPU.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/runtime.hpp"

namespace gapless::device {

namespace internal {

/// Who knows what memory a pointer names.
enum class Oracle : std::uint8_t { not_looked, nobody, driver, plugin };

extern std::atomic<Oracle> oracle;

/// Finds out, once.
Oracle look() noexcept;

inline Oracle found_oracle() noexcept {
  const Oracle found = oracle.load(std::memory_order_acquire);
  return found != Oracle::not_looked ? found : look();
}

}  // namespace internal

/// Can any pointer of this process be a GPU's? False, in two loads, where no driver is in the process.
inline bool in_use() noexcept { return internal::found_oracle() != internal::Oracle::nobody; }

/// A quicker question, without a call: true also as long as nobody has asked in_use().
inline bool may_be_in_use() noexcept {
  return internal::oracle.load(std::memory_order_acquire) != internal::Oracle::nobody;
}

/// Has any pointer that was located been one to GPU memory? Until then a program on a machine with GPUs may be one that
/// uses none.
bool has_met_gpu_memory() noexcept;

/// Where the pointer's memory is. Never fails: what the driver does not know is host memory. Memory of the program's
/// own that it has page-locked (cudaHostRegister) may be called ordinary host memory, which is true and not all;
/// Runtime::locate says all.
Location locate(const void* pointer) noexcept;

/// From now on `watch` is told of each pointer to GPU memory that is located, before anybody else.
void watch_gpu_memory(void (*watch)(const void*) noexcept) noexcept;

/// Locates the pointers of one call of the program, or of several operations under way. It remembers for no longer than
/// that: what the program gives to them stays allocated until they end, so what the driver says of one pointer into an
/// allocation holds for all the others.
class Locator {
 public:
  /// What device::locate says.
  Location locate(const void* pointer) noexcept;
  /// The memory may be freed from now on.
  void forget() noexcept { found_ = 0; }

 private:
  struct Allocation {
    std::uintptr_t begin;
    std::size_t bytes;
    Location location;
  };
  static constexpr unsigned most_cached = 8;

  std::array<Allocation, most_cached> cached_{};  ///< the newest takes the oldest's place
  unsigned found_ = 0;                            ///< how many there were
};

/// By the locator, where there is one.
inline Location locate(const void* pointer, Locator* locator) noexcept {
  return locator != nullptr ? locator->locate(pointer) : locate(pointer);
}

/// The loaded plugin, or nullptr with the reason in why_unavailable(). Loads it on first call.
Runtime* runtime() noexcept;

/// Why runtime() is null: a sentence for `gapless info`; empty when it is not.
std::string why_unavailable();

/// A function that the loaded plugin exports; nullptr where there is none of that name, or no plugin. Slow.
void* plugin_function(const char* name) noexcept;

}  // namespace gapless::device

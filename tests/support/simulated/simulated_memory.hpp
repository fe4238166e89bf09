// Memory of a simulated GPU, and the page-locked host memory it may address.
//
// Device memory is pages the program may not touch, and an alias of them that the simulation reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "device/runtime.hpp"

namespace gapless::tests {

class SimulatedMemory {
 public:
  static constexpr int device_count = 2;
  static constexpr std::size_t bytes_per_device = std::size_t{8} << 30;

  SimulatedMemory();

  /// nullptr when the device is full.
  void* allocate(int device, std::size_t bytes) noexcept;
  bool release(void* pointer) noexcept;

  /// The device whose live allocation holds all of [address, address + bytes), or -1.
  int owner(std::uintptr_t address, std::size_t bytes) const noexcept;
  /// Is the address in the range of any simulated device, allocated or not, or in another process's memory?
  bool is_device_address(std::uintptr_t address) const noexcept {
    return is_own(address) || find_opened(address, 1) != nullptr;
  }
  /// Where the simulation reads and writes that address.
  std::uintptr_t alias(std::uintptr_t address) const noexcept {
    const Opened* const opened = is_own(address) ? nullptr : find_opened(address, 1);
    return opened != nullptr ? address - opened->view + opened->alias : address - view_ + alias_;
  }

  /// The number of the allocation that holds the address; 0 where there is none.
  std::uint64_t number(std::uintptr_t address) const noexcept;
  /// What another process needs to open() the allocation that holds the address. False where there is none.
  bool describe(std::uintptr_t address, device::MemoryHandle& handle) const noexcept;
  /// Where that allocation of another process is here, as memory of `device`; nullptr after a failure.
  void* open(const device::MemoryHandle& handle, int device) noexcept;
  void close(void* base) noexcept;

  /// Ordinary memory that the simulated GPUs may address too, for as long as `device` is not reset; nullptr when there
  /// is none.
  void* allocate_pinned(int device, std::size_t bytes) noexcept;
  void release_pinned(void* pointer) noexcept;
  /// The same of memory that somebody else has allocated.
  bool lock(int device, std::uintptr_t begin, std::size_t bytes) noexcept;
  void unlock(std::uintptr_t begin) noexcept;
  /// All of the device and all page-locked memory that is there for as long as it.
  void release_all(int device) noexcept;
  bool is_pinned(std::uintptr_t address, std::size_t bytes) const noexcept;

  std::size_t bytes_in_use() const noexcept;

 private:
  /// Another process's allocation, in whole pages.
  struct Opened {
    std::uintptr_t view, alias;
    std::size_t bytes;
    std::uintptr_t base;  ///< in the view
    int device;
  };

  bool is_own(std::uintptr_t address) const noexcept { return address - view_ < total; }
  const Opened* find_opened(std::uintptr_t address, std::size_t bytes) const noexcept;

  int device_of(std::uintptr_t address) const noexcept {
    return static_cast<int>((address - view_) / bytes_per_device);
  }

  static constexpr std::size_t total = bytes_per_device * device_count;
  static constexpr std::size_t guard = 4096;  ///< between allocations, so that running over an end is noticed

  std::uintptr_t view_ = 0;
  std::uintptr_t alias_ = 0;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> live_;
  std::map<std::uintptr_t, std::uint64_t> numbers_;  ///< of what is live
  std::uint64_t last_number_ = 0;
  mutable std::mutex opened_mutex_;
  std::deque<Opened> opened_;  ///< those that are closed have no bytes
  int file_ = -1;
  std::array<std::map<std::uintptr_t, std::size_t>, device_count> pinned_, locked_;
};

}  // namespace gapless::tests

#include "simulated_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gapless::tests {
namespace {

using Allocations = std::map<std::uintptr_t, std::size_t>;

/// The allocation that holds all of [address, address + bytes).
Allocations::const_iterator holder(const Allocations& allocations, std::uintptr_t address, std::size_t bytes) {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin()) return allocations.end();
  --it;
  return address + bytes <= it->first + it->second ? it : allocations.end();
}

/// So that long test runs do not keep all they ever touched.
void give_pages_back(std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t begin = (address + 4095) / 4096 * 4096, end = (address + bytes) / 4096 * 4096;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
}

/// None, as of a GPU's memory; or all, for MPI libraries that take themselves for GPU-aware.
int host_access() {
  return std::getenv("GAPLESS_TEST_SIMULATED_READABLE") != nullptr ? PROT_READ | PROT_WRITE : PROT_NONE;
}

std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

SimulatedMemory::SimulatedMemory() {
  file_ = memfd_create("simulated-device", MFD_CLOEXEC);
  if (file_ < 0) return;
  if (ftruncate(file_, static_cast<off_t>(total)) == 0) {
    void* view = mmap(nullptr, total, host_access(), MAP_SHARED | MAP_NORESERVE, file_, 0);
    void* alias = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (view != MAP_FAILED && alias != MAP_FAILED) {
      view_ = reinterpret_cast<std::uintptr_t>(view);
      alias_ = reinterpret_cast<std::uintptr_t>(alias);
    }
  }
}

void* SimulatedMemory::allocate(int device, std::size_t bytes) noexcept {
  if (view_ == 0 || bytes > bytes_per_device) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = view_ + static_cast<std::uintptr_t>(device) * bytes_per_device;
  const std::uintptr_t end = begin + bytes_per_device;
  const std::size_t size = rounded(bytes);
  std::uintptr_t candidate = begin;
  for (auto it = live_.lower_bound(begin); it != live_.end() && it->first < end; ++it) {
    if (candidate + size + guard <= it->first) break;
    candidate = it->first + rounded(it->second) + guard;
  }
  if (candidate + size > end) return nullptr;
  try {
    live_.emplace(candidate, bytes);
    numbers_.emplace(candidate, ++last_number_);
  } catch (...) {
    return nullptr;
  }
  std::memset(reinterpret_cast<void*>(alias(candidate)), 0xdb, bytes);
  return reinterpret_cast<void*>(candidate);
}

bool SimulatedMemory::release(void* pointer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (it == live_.end()) return false;
  give_pages_back(alias(it->first), it->second);
  numbers_.erase(it->first);
  live_.erase(it);
  return true;
}

void SimulatedMemory::release_all(int device) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(live_, [&](const auto& allocation) {
    if (device_of(allocation.first) != device) return false;
    give_pages_back(alias(allocation.first), allocation.second);
    numbers_.erase(allocation.first);
    return true;
  });
  Allocations& pinned = pinned_[static_cast<std::size_t>(device)];
  for (const auto& [begin, bytes] : pinned) std::free(reinterpret_cast<void*>(begin));
  pinned.clear();
  locked_[static_cast<std::size_t>(device)].clear();
}

int SimulatedMemory::owner(std::uintptr_t address, std::size_t bytes) const noexcept {
  if (!is_own(address)) {
    const Opened* const opened = find_opened(address, bytes);
    return opened != nullptr ? opened->device : -1;
  }
  const std::lock_guard lock(mutex_);
  const auto it = holder(live_, address, bytes);
  return it == live_.end() ? -1 : device_of(it->first);
}

std::uint64_t SimulatedMemory::number(std::uintptr_t address) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = holder(live_, address, 1);
  return it == live_.end() ? 0 : numbers_.at(it->first);
}

bool SimulatedMemory::describe(std::uintptr_t address, device::MemoryHandle& handle) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = holder(live_, address, 1);
  if (it == live_.end()) return false;
  const std::uint64_t offset = it->first - view_;
  handle.number = numbers_.at(it->first);
  handle.base = it->first;
  handle.bytes = it->second;
  handle.process = getpid();
  handle.free_bytes = bytes_per_device;
  for (const auto& [begin, bytes] : live_) handle.free_bytes -= device_of(begin) == device_of(it->first) ? bytes : 0;
  std::memcpy(handle.driver.data(), &offset, sizeof offset);
  std::memcpy(handle.driver.data() + sizeof offset, &file_, sizeof file_);
  return true;
}

void* SimulatedMemory::open(const device::MemoryHandle& handle, int device) noexcept {
  std::uint64_t offset = 0;
  int owners_file = -1;
  std::memcpy(&offset, handle.driver.data(), sizeof offset);
  std::memcpy(&owners_file, handle.driver.data() + sizeof offset, sizeof owners_file);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(handle.process), owners_file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const std::uint64_t begin = offset / 4096 * 4096, bytes = offset - begin + handle.bytes;
  void* const view = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, static_cast<off_t>(begin));
  void* const alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(begin));
  ::close(file);
  if (view == MAP_FAILED || alias == MAP_FAILED) return nullptr;
  const std::lock_guard lock(opened_mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(view);
  opened_.push_back({address, reinterpret_cast<std::uintptr_t>(alias), bytes, address + (offset - begin), device});
  return reinterpret_cast<void*>(opened_.back().base);
}

void SimulatedMemory::close(void* base) noexcept {
  const std::lock_guard lock(opened_mutex_);
  for (Opened& opened : opened_) {
    if (opened.bytes == 0 || opened.base != reinterpret_cast<std::uintptr_t>(base)) continue;
    munmap(reinterpret_cast<void*>(opened.view), opened.bytes);
    munmap(reinterpret_cast<void*>(opened.alias), opened.bytes);
    opened.bytes = 0;
  }
}

const SimulatedMemory::Opened* SimulatedMemory::find_opened(std::uintptr_t address, std::size_t bytes) const noexcept {
  const std::lock_guard lock(opened_mutex_);
  for (const Opened& opened : opened_) {
    if (address >= opened.base && address + bytes <= opened.view + opened.bytes) return &opened;
  }
  return nullptr;
}

void* SimulatedMemory::allocate_pinned(int device, std::size_t bytes) noexcept {
  void* pointer = std::aligned_alloc(256, rounded(bytes));
  if (pointer == nullptr) return nullptr;
  try {
    const std::lock_guard lock(mutex_);
    pinned_[static_cast<std::size_t>(device)].emplace(reinterpret_cast<std::uintptr_t>(pointer), bytes);
  } catch (...) {
    std::free(pointer);
    return nullptr;
  }
  return pointer;
}

void SimulatedMemory::release_pinned(void* pointer) noexcept {
  const std::lock_guard lock(mutex_);
  for (Allocations& pinned : pinned_) {
    if (pinned.erase(reinterpret_cast<std::uintptr_t>(pointer)) != 0) std::free(pointer);
  }
}

bool SimulatedMemory::is_pinned(std::uintptr_t address, std::size_t bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto holds = [&](const Allocations& pinned) { return holder(pinned, address, bytes) != pinned.end(); };
  return std::ranges::any_of(pinned_, holds) || std::ranges::any_of(locked_, holds);
}

bool SimulatedMemory::lock(int device, std::uintptr_t begin, std::size_t bytes) noexcept try {
  const std::lock_guard lock(mutex_);
  return locked_[static_cast<std::size_t>(device)].emplace(begin, bytes).second;
} catch (...) {
  return false;
}

void SimulatedMemory::unlock(std::uintptr_t begin) noexcept {
  const std::lock_guard lock(mutex_);
  for (Allocations& locked : locked_) locked.erase(begin);
}

std::size_t SimulatedMemory::bytes_in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [begin, size] : live_) bytes += size;
  for (const Allocations& pinned : pinned_) {
    for (const auto& [begin, size] : pinned) bytes += size;
  }
  return bytes;
}

}  // namespace gapless::tests

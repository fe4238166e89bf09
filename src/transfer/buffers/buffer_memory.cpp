#include "transfer/buffers/buffer_memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>

#include "device/device.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/buffers/long_buffers.hpp"

namespace gapless::transfer::buffer_memory {
namespace {

using device::MemoryKind;

constexpr std::uint64_t no_context = 0;

constinit std::atomic<std::size_t> page_locked{0};
constinit std::atomic<std::size_t> existing{0};

/// How far behind the beginning of its allocation a buffer begins. From buffers into memory of malloc libraries copy
/// long messages, by the kernel; from the beginning of a page, where long and page-locked memory is allocated, that
/// takes four times as long on AMD Zen 3, as memcpy does (pack/host/kernels/copies.hpp).
std::size_t place_in_allocation(MemoryKind kind, std::size_t capacity) noexcept {
  const bool begins_a_page = kind == MemoryKind::pinned || (kind == MemoryKind::host && capacity > longest_of_thread);
  return begins_a_page ? spare_bytes : 0;
}

std::size_t bytes_of_allocation(MemoryKind kind, std::size_t capacity) noexcept {
  return place_in_allocation(kind, capacity) + capacity + spare_bytes;
}

bool take_from_budget(std::size_t bytes) noexcept {
  const std::size_t others = page_locked.fetch_add(bytes, std::memory_order_relaxed);
  if (others + bytes <= page_locked_limit()) return true;
  page_locked.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

/// Takes from the budget once kept buffers are released: the process's long ones, then the thread's others.
bool take_from_kept(std::size_t bytes) noexcept {
  long_buffers::drop(MemoryKind::pinned);
  for (;;) {
    if (take_from_budget(bytes)) return true;
    if (!release_kept_page_locked()) return false;
  }
}

std::byte* allocate_on_host(std::size_t bytes) noexcept {
  if (bytes <= longest_of_thread + spare_bytes) {
    return static_cast<std::byte*>(std::aligned_alloc(spare_bytes, bytes));
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void release_on_host(std::byte* memory, std::size_t bytes) noexcept {
  if (bytes <= longest_of_thread + spare_bytes) {
    std::free(memory);
  } else {
    munmap(memory, bytes);
  }
}

std::byte* allocate_by_runtime(const MemoryPlace& place, std::size_t bytes) noexcept {
  device::Runtime* const runtime = device::runtime();
  void* memory = nullptr;
  if (runtime == nullptr || runtime->allocate(place.kind, place.device, bytes, &memory) != device::Status::ok) {
    return nullptr;
  }
  // The MPI library may be given it, as the program's memory is.
  if (place.kind == MemoryKind::device) static_cast<void>(device::locate(memory));
  return static_cast<std::byte*>(memory);
}

}  // namespace

MemoryPlace place_now(MemoryKind kind, int device) noexcept {
  if (kind == MemoryKind::host) return {kind, device, no_context};
  device::Runtime* const runtime = device::runtime();
  return {kind, device, runtime != nullptr ? runtime->context(device) : no_context};
}

bool is_there(const MemoryPlace& place) noexcept {
  if (place.kind == MemoryKind::host) return true;
  device::Runtime* const runtime = device::runtime();
  return runtime != nullptr && runtime->has_context(place.context);
}

namespace {

std::byte* allocate_uncounted(const MemoryPlace& place, std::size_t capacity, bool is_indispensable) noexcept {
  const std::size_t bytes = bytes_of_allocation(place.kind, capacity);
  if (place.kind == MemoryKind::host) return allocate_on_host(bytes);
  if (place.kind != MemoryKind::pinned) return allocate_by_runtime(place, bytes);
  if (!take_from_budget(capacity) && !take_from_kept(capacity)) {
    if (!is_indispensable) return nullptr;
    page_locked.fetch_add(capacity, std::memory_order_relaxed);
  }
  std::byte* const memory = allocate_by_runtime(place, bytes);
  if (memory == nullptr) page_locked.fetch_sub(capacity, std::memory_order_relaxed);
  return memory;
}

}  // namespace

std::byte* allocate(const MemoryPlace& place, std::size_t capacity, bool is_indispensable) noexcept {
  std::byte* const memory = allocate_uncounted(place, capacity, is_indispensable);
  if (memory == nullptr) return nullptr;
  existing.fetch_add(1, std::memory_order_relaxed);
  return memory + place_in_allocation(place.kind, capacity);
}

void release(const MemoryPlace& place, std::byte* memory, std::size_t capacity) noexcept {
  memory -= place_in_allocation(place.kind, capacity);
  if (place.kind == MemoryKind::host) {
    release_on_host(memory, bytes_of_allocation(place.kind, capacity));
  } else if (is_there(place)) {
    device::runtime()->release(place.kind, place.device, memory);
  }
  forget(place, 1, capacity);
}

bool offer_pages(std::byte* memory, std::size_t capacity) noexcept {
  // The kernel takes whole pages alone.
  return madvise(memory - place_in_allocation(MemoryKind::host, capacity), capacity, MADV_FREE) == 0;
}

void forget(const MemoryPlace& place, std::size_t buffers, std::size_t bytes) noexcept {
  existing.fetch_sub(buffers, std::memory_order_relaxed);
  if (place.kind == MemoryKind::pinned) page_locked.fetch_sub(bytes, std::memory_order_relaxed);
}

std::size_t existing_buffers() noexcept { return existing.load(std::memory_order_relaxed); }

std::size_t page_locked_bytes() noexcept { return page_locked.load(std::memory_order_relaxed); }

}  // namespace gapless::transfer::buffer_memory

// One small stack of buffers per size class and kind of memory, per thread.
#include "transfer/buffers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace gapless::transfer {
namespace {

using device::MemoryKind;

constexpr std::size_t smallest_class_log2 = 12;
constexpr std::size_t largest_class_log2 = 47;
constexpr std::size_t buffers_per_class = 8;
constexpr std::size_t default_limit = std::size_t{64} << 20;
// Two cache lines: adjacent-line prefetch never mixes two buffers.
constexpr std::size_t host_alignment = 128;

std::size_t limit_from_environment() noexcept {
  const char* text = std::getenv("GAPLESS_POOL_BYTES");
  if (text == nullptr || *text == '\0') return default_limit;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  return *end == '\0' ? static_cast<std::size_t>(value) : default_limit;
}

std::atomic<std::size_t>& limit() noexcept {
  static std::atomic<std::size_t> bytes{limit_from_environment()};
  return bytes;
}

std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t log2 = bytes <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1));
  return std::max(log2, smallest_class_log2);
}

std::byte* allocate(MemoryKind kind, int device, std::size_t bytes) noexcept {
  if (kind == MemoryKind::host) return static_cast<std::byte*>(std::aligned_alloc(host_alignment, bytes));
  device::Runtime* runtime = device::runtime();
  void* memory = nullptr;
  if (runtime == nullptr || runtime->allocate(kind, device, bytes, &memory) != device::Status::ok) return nullptr;
  return static_cast<std::byte*>(memory);
}

void release(MemoryKind kind, int device, std::byte* memory) noexcept {
  if (kind == MemoryKind::host) {
    std::free(memory);
  } else if (device::Runtime* runtime = device::runtime()) {
    runtime->release(kind, device, memory);
  }
}

struct SizeClass {
  std::array<std::byte*, buffers_per_class> free{};
  std::size_t count = 0;
};

struct Pool {
  MemoryKind kind;
  int device;
  std::array<SizeClass, largest_class_log2 - smallest_class_log2 + 1> classes{};
};

// Static destructors and functions that exit() calls may send messages, too, after the thread's objects are gone.
constinit thread_local bool have_ended = false;

struct ThreadPools {
  std::vector<Pool> pools;
  std::size_t bytes = 0;

  ~ThreadPools() {
    drain();
    have_ended = true;
  }

  Pool* find(MemoryKind kind, int device) noexcept {
    for (Pool& pool : pools) {
      if (pool.kind == kind && pool.device == device) return &pool;
    }
    return nullptr;
  }

  std::byte* take(MemoryKind kind, int device, std::size_t log2) noexcept {
    Pool* pool = find(kind, device);
    if (pool == nullptr) return nullptr;
    SizeClass& size_class = pool->classes[log2 - smallest_class_log2];
    if (size_class.count == 0) return nullptr;
    bytes -= std::size_t{1} << log2;
    return size_class.free[--size_class.count];
  }

  bool keep(MemoryKind kind, int device, std::byte* memory, std::size_t log2) noexcept {
    const std::size_t capacity = std::size_t{1} << log2;
    if (bytes + capacity > limit().load(std::memory_order_relaxed)) return false;
    Pool* pool = find(kind, device);
    if (pool == nullptr) {
      try {
        pool = &pools.emplace_back(Pool{kind, device, {}});
      } catch (const std::bad_alloc&) {
        return false;
      }
    }
    SizeClass& size_class = pool->classes[log2 - smallest_class_log2];
    if (size_class.count == buffers_per_class) return false;
    size_class.free[size_class.count++] = memory;
    bytes += capacity;
    return true;
  }

  void drain() noexcept {
    for (Pool& pool : pools) {
      for (SizeClass& size_class : pool.classes) {
        while (size_class.count > 0) release(pool.kind, pool.device, size_class.free[--size_class.count]);
      }
    }
    bytes = 0;
  }
};

/// Null once the thread's objects are gone.
ThreadPools* thread_pools() noexcept {
  if (have_ended) [[unlikely]]
    return nullptr;
  thread_local ThreadPools pools;
  return &pools;
}

}  // namespace

Wire::Wire(MemoryKind kind, int device, std::size_t bytes) noexcept : kind_(kind), device_(device) {
  const std::size_t log2 = class_of(bytes);
  if (log2 > largest_class_log2) return;
  capacity_ = std::size_t{1} << log2;
  if (ThreadPools* pools = thread_pools()) data_ = pools->take(kind, device, log2);
  if (data_ == nullptr) data_ = allocate(kind, device, capacity_);
}

Wire::~Wire() {
  if (data_ == nullptr) return;
  const auto log2 = static_cast<std::size_t>(std::countr_zero(capacity_));
  ThreadPools* pools = thread_pools();
  if (pools == nullptr || !pools->keep(kind_, device_, data_, log2)) release(kind_, device_, data_);
}

Wire::Wire(Wire&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(other.capacity_),
      kind_(other.kind_),
      device_(other.device_) {}

Wire& Wire::operator=(Wire&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(kind_, other.kind_);
  std::swap(device_, other.device_);
  return *this;
}

std::size_t pooled_bytes() noexcept {
  const ThreadPools* pools = thread_pools();
  return pools == nullptr ? 0 : pools->bytes;
}
std::size_t pool_limit() noexcept { return limit().load(std::memory_order_relaxed); }
void set_pool_limit(std::size_t bytes) noexcept { limit().store(bytes, std::memory_order_relaxed); }
void drain_pools() noexcept {
  if (ThreadPools* pools = thread_pools()) pools->drain();
}

}  // namespace gapless::transfer

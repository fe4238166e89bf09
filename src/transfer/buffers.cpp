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

#include "base/settings.hpp"

namespace gapless::transfer {
namespace {

using device::MemoryKind;

constexpr std::size_t smallest_class_log2 = 12;
constexpr std::size_t largest_class_log2 = 47;
constexpr std::size_t buffers_per_class = 8;
constexpr std::size_t default_limit = std::size_t{64} << 20;
// Two cache lines: adjacent-line prefetch never mixes two buffers.
constexpr std::size_t host_alignment = 128;
// Behind every buffer, so that one byte more than a power of two does not double it.
constexpr std::size_t spare_bytes = host_alignment;

std::atomic<std::size_t>& limit() noexcept {
  static std::atomic<std::size_t> bytes{settings().pool_bytes.value_or(default_limit)};
  return bytes;
}

std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t log2 = bytes <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1));
  return std::max(log2, smallest_class_log2);
}

// In use, or kept by a thread.
constinit std::atomic<std::size_t> existing{0};

void* allocate_uncounted(MemoryKind kind, int device, std::size_t bytes) noexcept {
  if (kind == MemoryKind::host) return std::aligned_alloc(host_alignment, bytes);
  device::Runtime* runtime = device::runtime();
  void* memory = nullptr;
  if (runtime == nullptr || runtime->allocate(kind, device, bytes, &memory) != device::Status::ok) return nullptr;
  return memory;
}

std::byte* allocate(MemoryKind kind, int device, std::size_t capacity) noexcept {
  void* memory = allocate_uncounted(kind, device, capacity + spare_bytes);
  if (memory != nullptr) existing.fetch_add(1, std::memory_order_relaxed);
  return static_cast<std::byte*>(memory);
}

/// Host memory belongs to no context.
constexpr std::uint64_t no_context = 0;

/// What memory of that kind belongs to now; see device::Runtime.
std::uint64_t context_of(MemoryKind kind, int device) noexcept {
  if (kind == MemoryKind::host) return no_context;
  device::Runtime* runtime = device::runtime();
  return runtime != nullptr ? runtime->context(device) : no_context;
}

bool is_there(MemoryKind kind, std::uint64_t context) noexcept {
  if (kind == MemoryKind::host) return true;
  device::Runtime* runtime = device::runtime();
  return runtime != nullptr && runtime->has_context(context);
}

/// Memory whose context is gone is gone with it, and its address may be another's.
void release(MemoryKind kind, int device, std::uint64_t context, std::byte* memory) noexcept {
  existing.fetch_sub(1, std::memory_order_relaxed);
  if (kind == MemoryKind::host) {
    std::free(memory);
  } else if (is_there(kind, context)) {
    device::runtime()->release(kind, device, memory);
  }
}

struct SizeClass {
  std::array<std::byte*, buffers_per_class> free{};
  std::size_t count = 0;
};

struct Pool {
  MemoryKind kind;
  int device;
  std::uint64_t context;
  std::array<SizeClass, largest_class_log2 - smallest_class_log2 + 1> classes{};

  std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) sum += classes[i].count << (smallest_class_log2 + i);
    return sum;
  }
  std::size_t buffers() const noexcept {
    std::size_t sum = 0;
    for (const SizeClass& size_class : classes) sum += size_class.count;
    return sum;
  }
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

  Pool* find(MemoryKind kind, int device, std::uint64_t context) noexcept {
    for (Pool& pool : pools) {
      if (pool.kind == kind && pool.device == device && pool.context == context) return &pool;
    }
    return nullptr;
  }

  std::byte* take(MemoryKind kind, int device, std::uint64_t context, std::size_t log2) noexcept {
    Pool* pool = find(kind, device, context);
    if (pool == nullptr) return nullptr;
    SizeClass& size_class = pool->classes[log2 - smallest_class_log2];
    if (size_class.count == 0) return nullptr;
    bytes -= std::size_t{1} << log2;
    return size_class.free[--size_class.count];
  }

  bool keep(MemoryKind kind, int device, std::uint64_t context, std::byte* memory, std::size_t log2) noexcept {
    Pool* pool = find(kind, device, context);
    if (pool == nullptr) pool = add(kind, device, context);
    if (pool == nullptr) return false;
    const std::size_t capacity = std::size_t{1} << log2;
    if (bytes + capacity > limit().load(std::memory_order_relaxed)) return false;
    SizeClass& size_class = pool->classes[log2 - smallest_class_log2];
    if (size_class.count == buffers_per_class) return false;
    size_class.free[size_class.count++] = memory;
    bytes += capacity;
    return true;
  }

  /// Drops the pools of contexts that are gone. nullptr if the new one's is, too, or there is no memory for it.
  Pool* add(MemoryKind kind, int device, std::uint64_t context) noexcept {
    std::erase_if(pools, [this](const Pool& pool) {
      if (is_there(pool.kind, pool.context)) return false;
      bytes -= pool.bytes();
      existing.fetch_sub(pool.buffers(), std::memory_order_relaxed);
      return true;
    });
    if (!is_there(kind, context)) return nullptr;
    try {
      return &pools.emplace_back(Pool{kind, device, context, {}});
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void drain() noexcept {
    for (Pool& pool : pools) {
      for (SizeClass& size_class : pool.classes) {
        while (size_class.count > 0) {
          release(pool.kind, pool.device, pool.context, size_class.free[--size_class.count]);
        }
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

PoolBuffer::PoolBuffer(MemoryKind kind, int device, std::size_t bytes) noexcept : kind_(kind), device_(device) {
  const std::size_t log2 = class_of(bytes);
  if (log2 > largest_class_log2) return;
  capacity_ = std::size_t{1} << log2;
  context_ = context_of(kind, device);
  if (ThreadPools* pools = thread_pools()) data_ = pools->take(kind, device, context_, log2);
  if (data_ == nullptr) data_ = allocate(kind, device, capacity_);
}

PoolBuffer::~PoolBuffer() {
  if (data_ == nullptr) return;
  const auto log2 = static_cast<std::size_t>(std::countr_zero(capacity_));
  ThreadPools* pools = thread_pools();
  if (pools == nullptr || !pools->keep(kind_, device_, context_, data_, log2)) {
    release(kind_, device_, context_, data_);
  }
}

PoolBuffer::PoolBuffer(PoolBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(other.capacity_),
      context_(other.context_),
      kind_(other.kind_),
      device_(other.device_) {}

PoolBuffer& PoolBuffer::operator=(PoolBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(context_, other.context_);
  std::swap(kind_, other.kind_);
  std::swap(device_, other.device_);
  return *this;
}

std::size_t existing_buffers() noexcept { return existing.load(std::memory_order_relaxed); }
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

// One small stack of buffers per size class and kind of memory, per thread.
#include "transfer/buffers/buffers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/own_stack.hpp"
#include "base/settings.hpp"
#include "transfer/buffers/long_buffers.hpp"

namespace gapless::transfer {
namespace {

using buffer_memory::MemoryPlace;
using device::MemoryKind;

constexpr std::size_t smallest_class_log2 = 12;
constexpr std::size_t largest_class_log2 = 24;
static_assert(std::size_t{1} << largest_class_log2 == buffer_memory::longest_of_thread);
constexpr std::size_t default_limit = std::size_t{64} << 20;

std::atomic<std::size_t>& limit() noexcept {
  static std::atomic<std::size_t> bytes{settings().pool_bytes.value_or(default_limit)};
  return bytes;
}

/// Bytes of unused buffers in the pools of all threads, by kind of memory.
constinit std::array<std::atomic<std::size_t>, static_cast<std::size_t>(MemoryKind::device) + 1> kept_by_threads{};

std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t log2 = bytes <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1));
  return std::max(log2, smallest_class_log2);
}

struct SizeClass {
  std::vector<std::byte*> free;
  std::uint64_t last_use = 0;  ///< in the order of the thread's uses
};

struct Pool {
  MemoryPlace place;
  std::array<SizeClass, largest_class_log2 - smallest_class_log2 + 1> classes;

  SizeClass& of(std::size_t log2) noexcept { return classes[log2 - smallest_class_log2]; }
  std::size_t capacity_of(const SizeClass& size_class) const noexcept {
    return std::size_t{1} << (smallest_class_log2 + static_cast<std::size_t>(&size_class - classes.data()));
  }
  std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (const SizeClass& size_class : classes) sum += size_class.free.size() * capacity_of(size_class);
    return sum;
  }
  std::size_t buffers() const noexcept {
    std::size_t sum = 0;
    for (const SizeClass& size_class : classes) sum += size_class.free.size();
    return sum;
  }
};

// Static destructors and functions that exit() calls may send messages, too, after the thread's objects are gone.
constinit thread_local bool have_ended = false;

/// A host buffer of an object on the thread's stack. A call has two at most. A buffer whose frame an error handler has
/// left by longjmp is taken back once the thread is above that frame, or has another object in the same place. So there
/// are no more watched buffers than places.
struct Watched {
  const void* owner;
  std::byte* data;
  std::size_t capacity;
};
/// A pointer and numbers alone, because room in the static block of thread-local storage is scarce.
struct WatchList {
  Watched* entries;
  std::uint32_t count, room;

  bool add(const Watched& entry) noexcept {
    if (count == room && !grow()) return false;
    entries[count++] = entry;
    return true;
  }
  void remove(std::uint32_t i) noexcept { entries[i] = entries[--count]; }

 private:
  [[gnu::noinline, gnu::cold]] bool grow() noexcept {
    const std::uint32_t larger = room == 0 ? 8 : 2 * room;
    auto* const moved = have_ended ? nullptr : new (std::nothrow) Watched[larger];
    if (moved == nullptr) return false;
    std::copy_n(entries, count, moved);
    delete[] entries;
    entries = moved;
    room = larger;
    return true;
  }
};
[[gnu::tls_model("initial-exec")]] constinit thread_local WatchList watched{};

struct ThreadPools {
  std::vector<Pool> pools;
  std::size_t bytes = 0;
  std::uint64_t uses = 0;  ///< of any length

  ~ThreadPools() {
    drain();
    delete[] std::exchange(watched, {}).entries;
    have_ended = true;
  }

  Pool* find(const MemoryPlace& place) noexcept {
    for (Pool& pool : pools) {
      if (pool.place == place) return &pool;
    }
    return nullptr;
  }

  std::byte* take(const MemoryPlace& place, std::size_t log2) noexcept {
    Pool* pool = find(place);
    if (pool == nullptr) return nullptr;
    SizeClass& size_class = pool->of(log2);
    size_class.last_use = ++uses;
    if (size_class.free.empty()) return nullptr;
    count_less(place.kind, std::size_t{1} << log2);
    std::byte* const memory = size_class.free.back();
    size_class.free.pop_back();
    return memory;
  }

  /// Buffers of lengths that the thread has not used for longer make room where there is none.
  bool keep(const MemoryPlace& place, std::byte* memory, std::size_t log2) noexcept {
    Pool* pool = find(place);
    if (pool == nullptr) pool = add(place);
    if (pool == nullptr) return false;
    const std::size_t capacity = std::size_t{1} << log2;
    if (capacity > kept_limit(place.kind)) return false;  // no room can be made for it
    SizeClass& size_class = pool->of(log2);
    size_class.last_use = ++uses;
    while (!count_more(place.kind, capacity)) {
      if (!release_least_used(place.kind, &size_class)) return false;
    }
    try {
      size_class.free.push_back(memory);
    } catch (const std::bad_alloc&) {
      count_less(place.kind, capacity);
      return false;
    }
    return true;
  }

  /// Releases a kept buffer of that kind, of the length that the thread has not used for longest. False if the thread
  /// keeps none but of the length to be spared.
  bool release_least_used(MemoryKind kind, const SizeClass* spared) noexcept {
    Pool* of_least_used = nullptr;
    SizeClass* least_used = nullptr;
    for (Pool& pool : pools) {
      if (pool.place.kind != kind) continue;
      for (SizeClass& size_class : pool.classes) {
        if (size_class.free.empty() || &size_class == spared) continue;
        if (least_used != nullptr && least_used->last_use <= size_class.last_use) continue;
        of_least_used = &pool;
        least_used = &size_class;
      }
    }
    if (least_used == nullptr) return false;
    release_one(*of_least_used, *least_used);
    return true;
  }

  /// Drops the pools of contexts that are gone, and adds a pool. Null if the new pool's context is gone as well, or
  /// there is no memory.
  Pool* add(const MemoryPlace& place) noexcept {
    std::erase_if(pools, [this](const Pool& pool) {
      if (buffer_memory::is_there(pool.place)) return false;
      const std::size_t gone = pool.bytes();
      count_less(pool.place.kind, gone);
      buffer_memory::forget(pool.place, pool.buffers(), gone);
      return true;
    });
    if (!buffer_memory::is_there(place)) return nullptr;
    try {
      return &pools.emplace_back(Pool{.place = place, .classes = {}});
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void drain() noexcept {
    for (; watched.count != 0; --watched.count) {
      const Watched& last = watched.entries[watched.count - 1];
      buffer_memory::release({}, last.data, last.capacity);
    }
    for (Pool& pool : pools) {
      for (SizeClass& size_class : pool.classes) {
        while (!size_class.free.empty()) release_one(pool, size_class);
      }
    }
  }

 private:
  void release_one(const Pool& pool, SizeClass& size_class) noexcept {
    const std::size_t capacity = pool.capacity_of(size_class);
    std::byte* const memory = size_class.free.back();
    size_class.free.pop_back();
    count_less(pool.place.kind, capacity);
    buffer_memory::release(pool.place, memory, capacity);
  }
  /// False if so many bytes more may not be kept.
  bool count_more(MemoryKind kind, std::size_t more) noexcept {
    std::atomic<std::size_t>& kept = kept_by_threads[static_cast<std::size_t>(kind)];
    if (kept.fetch_add(more, std::memory_order_relaxed) + more > kept_limit(kind)) {
      kept.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    bytes += more;
    return true;
  }
  void count_less(MemoryKind kind, std::size_t less) noexcept {
    bytes -= less;
    kept_by_threads[static_cast<std::size_t>(kind)].fetch_sub(less, std::memory_order_relaxed);
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

PoolBuffer::PoolBuffer(MemoryKind kind, int device, std::size_t bytes, bool is_indispensable) noexcept {
  place_ = buffer_memory::place_now(kind, device);
  if (bytes > buffer_memory::longest_of_thread) {
    const auto [memory, capacity] = long_buffers::take(place_, bytes, is_indispensable);
    data_ = memory;
    capacity_ = capacity;
    return;
  }
  const std::size_t log2 = class_of(bytes);
  capacity_ = std::size_t{1} << log2;
  if (ThreadPools* pools = thread_pools()) data_ = pools->take(place_, log2);
  if (data_ == nullptr) data_ = buffer_memory::allocate(place_, capacity_, is_indispensable);
}

void PoolBuffer::give_back() noexcept {
  if (capacity_ > buffer_memory::longest_of_thread) {
    long_buffers::give(place_, {data_, capacity_});
    return;
  }
  ThreadPools* pools = thread_pools();
  if (pools == nullptr || !pools->keep(place_, data_, static_cast<std::size_t>(std::countr_zero(capacity_)))) {
    buffer_memory::release(place_, data_, capacity_);
  }
}

[[gnu::always_inline]] inline void PoolBuffer::take_back_lost(const void* frame, const void* place) noexcept {
  for (std::uint32_t i = watched.count; i-- > 0;) {
    const Watched entry = watched.entries[i];
    if (entry.owner >= frame && entry.owner != place) continue;
    watched.remove(i);
    PoolBuffer lost;
    lost.data_ = entry.data;
    lost.capacity_ = entry.capacity;
    lost.give_back();
    lost.data_ = nullptr;
  }
}

[[gnu::always_inline]] inline void PoolBuffer::watch() noexcept {
  const void* const frame = __builtin_frame_address(0);
  if (data_ == nullptr || place_.kind != MemoryKind::host || !is_on_own_stack(this, frame)) return;
  take_back_lost(frame, this);
  is_watched_ = watched.add({this, data_, capacity_});
}

[[gnu::always_inline]] inline bool PoolBuffer::stop_watching() noexcept {
  if (!is_watched_) return true;
  is_watched_ = false;
  for (std::uint32_t i = watched.count; i-- > 0;) {
    if (watched.entries[i].owner != this) continue;
    watched.remove(i);
    return true;
  }
  return false;
}

PoolBuffer::~PoolBuffer() {
  if (data_ != nullptr && stop_watching()) give_back();
}

// The address of its object names a watched buffer, so a move changes the watching of both objects.

PoolBuffer::PoolBuffer(PoolBuffer&& other) noexcept {
  if (!other.stop_watching()) other.data_ = nullptr;
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = other.capacity_;
  place_ = other.place_;
}

PoolBuffer& PoolBuffer::operator=(PoolBuffer&& other) noexcept {
  if (!stop_watching()) data_ = nullptr;
  if (!other.stop_watching()) other.data_ = nullptr;
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(place_, other.place_);
  watch();
  return *this;
}

std::size_t existing_buffers() noexcept { return buffer_memory::existing_buffers(); }
std::size_t pooled_bytes() noexcept {
  const ThreadPools* pools = thread_pools();
  return pools == nullptr ? 0 : pools->bytes;
}
std::size_t pool_limit() noexcept { return limit().load(std::memory_order_relaxed); }
void set_pool_limit(std::size_t bytes) noexcept { limit().store(bytes, std::memory_order_relaxed); }

namespace {

std::size_t pool_limits(std::size_t times) noexcept {
  std::size_t product = 0;
  return __builtin_mul_overflow(pool_limit(), times, &product) ? SIZE_MAX : product;
}

}  // namespace

// The bound leaves room for a long buffer in each direction of an exchange, and for short buffers beside them.
std::size_t longest_kept_page_locked() noexcept { return pool_limits(2); }
std::size_t page_locked_limit() noexcept {
  // Some segments at least, whatever GAPLESS_POOL_BYTES is.
  constexpr std::size_t least = std::size_t{8} << 20;
  return std::max(pool_limits(5), least);
}
std::size_t kept_limit(MemoryKind kind) noexcept { return pool_limits(kind == MemoryKind::host ? 1 : 4); }
std::size_t long_limit(MemoryKind kind) noexcept { return pool_limits(kind == MemoryKind::host ? 16 : 4); }
bool release_kept_page_locked() noexcept {
  ThreadPools* const pools = thread_pools();
  return pools != nullptr && pools->release_least_used(MemoryKind::pinned, nullptr);
}
void drain_pools_of_thread() noexcept {
  if (ThreadPools* pools = thread_pools()) pools->drain();
}
void drain_pools() noexcept {
  drain_pools_of_thread();
  long_buffers::drop_all();
}

}  // namespace gapless::transfer

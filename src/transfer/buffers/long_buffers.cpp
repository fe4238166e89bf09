#include "transfer/buffers/long_buffers.hpp"

#include <array>
#include <mutex>
#include <utility>

#include "transfer/buffers/buffers.hpp"

namespace gapless::transfer::long_buffers {
namespace {

using buffer_memory::MemoryPlace;
using device::MemoryKind;

struct Kept {
  MemoryPlace place;
  Buffer buffer;
};

/// Kept buffers, from the oldest to the newest.
struct Cache {
  static constexpr std::size_t most = 16;

  std::mutex mutex;
  std::array<Kept, most> kept;
  std::size_t count = 0;
  std::size_t bytes_without = 0;  ///< of messages that have done without new memory since one has got it

  std::size_t bytes(MemoryKind kind) const noexcept {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += kept[i].place.kind == kind ? kept[i].buffer.capacity : 0;
    return sum;
  }
  Kept remove(std::size_t at) noexcept {
    const Kept removed = kept[at];
    std::move(kept.begin() + static_cast<std::ptrdiff_t>(at) + 1, kept.begin() + static_cast<std::ptrdiff_t>(count),
              kept.begin() + static_cast<std::ptrdiff_t>(at));
    --count;
    return removed;
  }
};

// Trivially destructible, for messages may end after static objects have.
constinit Cache cache;

constexpr std::size_t step = std::size_t{2} << 20;  // a huge page

/// Where the shortest kept buffer is that is long enough and wastes no more than the message needs; else cache.count.
/// Precondition: the lock is held.
std::size_t place_of(const MemoryPlace& place, std::size_t bytes) noexcept {
  std::size_t best = cache.count;
  for (std::size_t i = 0; i < cache.count; ++i) {
    const auto& [at, buffer] = cache.kept[i];
    if (at != place || buffer.capacity < bytes || buffer.capacity / 2 > bytes) continue;
    if (best == cache.count || buffer.capacity < cache.kept[best].buffer.capacity) best = i;
  }
  return best;
}

Buffer find(const MemoryPlace& place, std::size_t bytes) noexcept {
  const std::lock_guard lock(cache.mutex);
  const std::size_t found = place_of(place, bytes);
  return found < cache.count ? cache.remove(found).buffer : Buffer{};
}

/// Takes the oldest kept buffer of that kind; of any kind where none is named.
template <class... Kind>
bool take_oldest(Kept& oldest, Kind... kind) noexcept {
  for (std::size_t i = 0; i < cache.count; ++i) {
    if (((cache.kept[i].place.kind != kind) || ...)) continue;
    oldest = cache.remove(i);
    return true;
  }
  return false;
}

template <class... Kind>
void release_all(Kind... kind) noexcept {
  for (;;) {
    Kept oldest;
    {
      const std::lock_guard lock(cache.mutex);
      if (!take_oldest(oldest, kind...)) return;
    }
    buffer_memory::release(oldest.place, oldest.buffer.memory, oldest.buffer.capacity);
  }
}

/// Puts a buffer among the kept ones. False: the caller is to release `excess`, if that has memory, and to try again.
bool put(const MemoryPlace& place, const Buffer& buffer, Kept& excess) noexcept {
  const std::lock_guard lock(cache.mutex);
  const bool fits = cache.bytes(place.kind) + buffer.capacity <= long_limit(place.kind);
  if (fits && cache.count < Cache::most) {
    cache.kept[cache.count++] = {place, buffer};
    return true;
  }
  if (fits) {
    static_cast<void>(take_oldest(excess));
  } else {
    static_cast<void>(take_oldest(excess, place.kind));
  }
  return false;
}

}  // namespace

Buffer take(const MemoryPlace& place, std::size_t bytes, bool is_indispensable) noexcept {
  if (bytes > SIZE_MAX - 2 * step) return {};
  if (const Buffer kept = find(place, bytes); kept.memory != nullptr) return kept;
  const std::size_t capacity = (bytes + step - 1) / step * step;
  return {buffer_memory::allocate(place, capacity, is_indispensable), capacity};
}

bool is_worth_taking(const MemoryPlace& place, std::size_t bytes) noexcept {
  const std::lock_guard lock(cache.mutex);
  if (place_of(place, bytes) < cache.count) return true;
  const bool is_worth_it = cache.bytes_without / 2 >= bytes;
  cache.bytes_without = is_worth_it ? 0 : cache.bytes_without + bytes;
  return is_worth_it;
}

void give(const MemoryPlace& place, const Buffer& buffer) noexcept {
  const bool may_be_kept = buffer.capacity <= long_limit(place.kind) && buffer_memory::is_there(place);
  if (may_be_kept && place.kind == MemoryKind::host)
    static_cast<void>(buffer_memory::offer_pages(buffer.memory, buffer.capacity));
  while (may_be_kept) {
    Kept excess;
    if (put(place, buffer, excess)) return;
    if (excess.buffer.memory == nullptr) break;
    buffer_memory::release(excess.place, excess.buffer.memory, excess.buffer.capacity);
  }
  buffer_memory::release(place, buffer.memory, buffer.capacity);
}

void drop(MemoryKind kind) noexcept { release_all(kind); }
void drop_all() noexcept { release_all(); }

}  // namespace gapless::transfer::long_buffers

#include "transfer/pulls/allocations.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "device/device.hpp"
#include "device/exported_memory.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::pulls {

using headers::Answer;
using headers::FreedAllocations;
using headers::Inbox;
using headers::ToldAllocation;

namespace {

/// A program that allocates anew for each message gains nothing.
constexpr unsigned sends_before = 3;

// Never destroyed: messages may be sent while the process ends.
device::ExportedMemory& exported() noexcept {
  static device::ExportedMemory& instance = *new device::ExportedMemory(*device::runtime());
  return instance;
}

/// Tells all peers what the program has freed.
void tell_of_freed() noexcept {
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  std::array<std::uint64_t, FreedAllocations::kept> numbers;
  FreedAllocations& told = headers::own_inbox().head().freed;
  for (std::size_t found = numbers.size(); found == numbers.size();) {
    found = exported().take_freed(numbers);
    for (const std::uint64_t number : std::span(numbers).first(found)) {
      const std::uint32_t count = told.count.load(std::memory_order_relaxed);
      told.numbers[count % FreedAllocations::kept].store(number, std::memory_order_relaxed);
      told.count.store(count + 1, std::memory_order_release);
    }
  }
}

/// The number of the allocation that the address lies in. The driver is not asked about one that cannot have been
/// freed, for messages are still read there.
std::uint64_t number_of(const headers::ToldAllocations& told, const void* address) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  for (const ToldAllocation& each : told.all) {
    if (each.offers.load(std::memory_order_relaxed) != 0 && each.handle.contains(place)) return each.number;
  }
  return device::runtime()->allocation_number(address);
}

/// Its entry, or that of another that has not been sent from for longest; null where all are in use.
ToldAllocation* entry_of(headers::ToldAllocations& told, std::uint64_t number) noexcept {
  ToldAllocation* oldest = nullptr;
  for (ToldAllocation& each : told.all) {
    if (each.number == number) return &each;
    if (each.offers.load(std::memory_order_relaxed) != 0) continue;
    if (oldest == nullptr || each.last_send < oldest->last_send) oldest = &each;
  }
  if (oldest == nullptr) return nullptr;
  oldest->number = number;
  oldest->sends = 0;
  oldest->is_told = oldest->is_refused = false;
  return oldest;
}

/// False where the peer is not to be told of it.
bool can_be_told(ToldAllocation& allocation, const void* address) noexcept {
  tell_of_freed();
  return exported().handle_of(address, allocation.handle) == device::Status::ok &&
         device::OpenedMemory::keeps(allocation.handle);
}

}  // namespace

std::optional<MappedAllocation> mapped_by(Inbox& peer, const void* address) noexcept {
  const std::lock_guard lock(peer.told.mutex);
  const std::uint64_t number = number_of(peer.told, address);
  ToldAllocation* const entry = number != 0 ? entry_of(peer.told, number) : nullptr;
  if (entry == nullptr) return {};
  ToldAllocation& allocation = *entry;
  allocation.last_send = ++peer.told.sends;
  if (allocation.is_refused) return {};
  if (!allocation.is_told) {
    if (++allocation.sends < sends_before) return {};
    allocation.is_told = can_be_told(allocation, address);
    allocation.is_refused = !allocation.is_told;
    if (allocation.is_refused) return {};
  }
  const Answer answer = headers::introduce(peer, allocation.introduction, allocation.handle);
  allocation.is_refused = answer.kind == Answer::Kind::refused;
  if (answer.kind != Answer::Kind::accepted) return {};
  return MappedAllocation{allocation.handle, answer.pair, entry};
}

void unmap_freed(Inbox& owner) noexcept {
  const FreedAllocations& freed = owner.head().freed;
  const std::uint32_t count = freed.count.load(std::memory_order_acquire);
  const std::uint32_t seen = owner.freed_seen.exchange(count, std::memory_order_relaxed);
  if (seen == count) return;
  std::array<std::uint64_t, FreedAllocations::kept> numbers;
  const std::uint32_t found = std::min(count - seen, FreedAllocations::kept);
  for (std::uint32_t i = 0; i < found; ++i)
    numbers[i] = freed.numbers[(count - 1 - i) % FreedAllocations::kept].load(std::memory_order_relaxed);
  headers::opened_memory().owner_has_freed(owner.speaker().process, std::span(numbers).first(found));
}

}  // namespace gapless::transfer::pulls

std::uint64_t gapless_pulls_mapped() {
  namespace headers = gapless::transfer::headers;
  return headers::accepting_device() < 0 ? 0 : headers::opened_memory().counts().open;
}

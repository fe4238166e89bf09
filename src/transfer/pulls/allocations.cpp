#include "transfer/pulls/allocations.hpp"

#include <atomic>
#include <mutex>

#include "device/device.hpp"
#include "transfer/headers/exported/freed.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::pulls {

using headers::Answer;
using headers::Inbox;
using headers::ToldAllocation;

namespace {

/// The message out of an allocation by which the peer is told of the allocation. A program that allocates anew for each
/// message gains nothing by a mapping.
constexpr unsigned sends_before = 3;

/// The number of the allocation that the address lies in. An allocation that a peer may still read messages in cannot
/// have been freed, so the driver is not asked about it.
std::uint64_t number_of(const headers::ToldAllocations& told, const void* address) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  for (const ToldAllocation& each : told.all) {
    if (each.offers.load(std::memory_order_relaxed) != 0 && each.handle.contains(place)) return each.number;
  }
  return device::runtime()->allocation_number(address);
}

/// The entry of the allocation. An allocation without an entry takes the one whose allocation has sent nothing for
/// longest. Null where peers may still read messages in all of them.
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

/// Gets the allocation's handle. False where the peer is not to be told of the allocation.
bool can_be_told(Inbox& peer, ToldAllocation& allocation, const void* address) noexcept {
  headers::tell_of_freed();
  const bool can = headers::exported_memory().handle_of(address, allocation.handle) == device::Status::ok &&
                   device::OpenedMemory::keeps(allocation.handle);
  if (can) headers::expect_mapping_by(peer);
  return can;
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
    allocation.is_told = can_be_told(peer, allocation, address);
    allocation.is_refused = !allocation.is_told;
    if (allocation.is_refused) return {};
  }
  const Answer answer = headers::introduce(peer, allocation.introduction, allocation.handle);
  allocation.is_refused = answer.kind == Answer::Kind::refused;
  if (answer.kind != Answer::Kind::accepted) return {};
  // Before other threads can look for an entry whose allocation has sent nothing for long.
  allocation.offers.fetch_add(1, std::memory_order_relaxed);
  return MappedAllocation{allocation.handle, answer.pair, OfferedAllocation(entry)};
}

}  // namespace gapless::transfer::pulls

std::uint64_t gapless_pulls_mapped() {
  namespace headers = gapless::transfer::headers;
  return headers::accepting_device() < 0 ? 0 : headers::opened_memory().counts().open;
}

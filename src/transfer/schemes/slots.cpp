#include "transfer/schemes/slots.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/pause.hpp"
#include "fabric/registry.hpp"
#include "pack/host/engine.hpp"
#include "transfer/blocking.hpp"
#include "transfer/filling.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

using headers::Inbox;
using headers::slot_bytes;
using headers::slot_count;
using headers::SlotWords;

constexpr std::uint64_t bit(unsigned slot) noexcept { return std::uint64_t{1} << slot; }

/// With so few slots left, lost slots are looked for.
constexpr unsigned few_slots = slot_count / 8;

void note_shortage(headers::InboxHead& head) noexcept {
  if (!head.are_slots_short.load(std::memory_order_relaxed))
    head.are_slots_short.store(true, std::memory_order_relaxed);
}

/// Takes `count` free slots, beginning with the next in turn: slots that are used in turn have left both sides' caches
/// when they are used again, and so are written sooner. Sequentially consistent, as transfer/headers/attention.hpp
/// needs it.
bool take(Inbox& inbox, unsigned count, SlotsWay& way) noexcept {
  auto& free_slots = inbox.head().free_slots;
  std::uint64_t free = free_slots.load(std::memory_order_acquire);
  const unsigned first = inbox.head().next.load(std::memory_order_relaxed) % slot_count;
  std::uint64_t taken = 0;
  do {
    const auto left = static_cast<unsigned>(std::popcount(free));
    if (left < count + few_slots) note_shortage(inbox.head());
    if (left < count) return false;
    taken = 0;
    std::uint64_t rest = std::rotr(free, static_cast<int>(first));
    for (way.count = 0; way.count < count; rest &= rest - 1) {
      const unsigned slot = (static_cast<unsigned>(std::countr_zero(rest)) + first) % slot_count;
      way.slots[way.count++] = static_cast<std::uint8_t>(slot);
      taken |= bit(slot);
    }
  } while (!free_slots.compare_exchange_weak(free, free & ~taken, std::memory_order_seq_cst));
  inbox.head().next.store(way.slots[count - 1] + 1u, std::memory_order_relaxed);
  return true;
}

/// Its slots, a bit each. What another process has written is believed only within bounds.
std::uint64_t all_of(const SlotsWay& way) noexcept {
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(way.count, most_slots); ++i)
    all |= bit(way.slots[i] % slot_count);
  return all;
}

/// Waits until the sender has filled more than `index` slots. False if it never will.
bool wait_for(const SlotWords& words, std::uint32_t index, pid_t sender) noexcept {
  constexpr unsigned spins = 2000, looks = 1024;
  for (unsigned times = 0;; ++times) {
    const std::uint32_t packed = words.packed.load(std::memory_order_acquire);
    if (packed == SlotWords::has_failed) return false;
    if (packed > index) return true;
    if (times < spins) {
      pause();
      continue;
    }
    ::sched_yield();
    if (times % looks == 0 && fabric::registry::is_gone(sender)) return false;
  }
}

/// Calls move(packed bytes, begin, end) for each slot's part of the first `bytes` bytes. What a header says was written
/// by another process, and is believed only within bounds.
template <class Move>
Result fetch(const headers::Header& header, const SlotsWay& way, std::size_t bytes, Move move) noexcept {
  Inbox& inbox = headers::own_inbox();
  SlotWords& words = inbox.head().words[way.slots[0] % slot_count];
  const std::uint32_t count = std::min<std::uint32_t>(way.count, most_slots);
  Result result = count * slot_bytes < bytes ? Result::peer_failed : Result::ok;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t begin = i * slot_bytes, end = std::min(begin + slot_bytes, bytes);
    // Waits for each slot, also for one that is not unpacked: until then the sender writes to the slot.
    if (result != Result::peer_failed && !wait_for(words, i, header.sender())) result = Result::peer_failed;
    if (result == Result::ok && begin < end) result = move(inbox.slot(way.slots[i] % slot_count), begin, end);
  }
  // Frees all slots together, because the words of the first slot are read until the last one is packed.
  const bool has_sender_stopped = words.packed.load(std::memory_order_acquire) == SlotWords::has_failed;
  if (result != Result::peer_failed || has_sender_stopped) {
    headers::note_arrival(inbox.head(), words);
    inbox.head().free_slots.fetch_or(all_of(way), std::memory_order_release);
  }
  if (result == Result::ok) record(Scheme::slots, bytes);
  return result;
}

}  // namespace

bool SlotsOffer::secure(const Buffer& buffer, Inbox& inbox, headers::Header& header,
                        const headers::Envelope& envelope) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  if (!may_take_slots(bytes)) return false;
  const auto count = static_cast<unsigned>((bytes + slot_bytes - 1) / slot_bytes);
  if (!take(inbox, count, way_)) return false;
  inbox_ = &inbox;
  buffer_ = buffer;
  packed_ = 0;
  filling_ = filling_of(inbox);
  packing_ns_ = 0;
  SlotWords& words = inbox.head().words[way_.slots[0]];
  words.packed.store(0, std::memory_order_relaxed);
  if (pack_next() && header.add(way_)) {
    headers::note_departure(words, envelope, all_of(way_), headers::own_rank());
    return true;
  }
  withdraw();
  return false;
}

bool SlotsOffer::pack_next() noexcept {
  MovementClock clock;
  clock.begin();
  const auto begin = static_cast<layout::Offset>(packed_ * slot_bytes);
  const layout::Offset end = std::min(begin + static_cast<layout::Offset>(slot_bytes), buffer_.size());
  std::byte* const slot = inbox_->slot(way_.slots[packed_]);
  const Result result = fill(buffer_.job(pack::Direction::pack, begin, end, slot), filling_);
  if (report_wanted()) packing_ns_ += clock.ns();
  auto& words = inbox_->head().words[way_.slots[0]];
  if (result != Result::ok) {
    words.packed.store(SlotWords::has_failed, std::memory_order_release);
    return false;
  }
  words.packed.store(++packed_, std::memory_order_release);
  return true;
}

void SlotsOffer::pack() noexcept {
  while (packed_ < way_.count && pack_next()) {
  }
}

void SlotsOffer::hand_over() noexcept {
  if (inbox_ == nullptr) return;
  pack();
  inbox_ = nullptr;
  const auto bytes = static_cast<std::size_t>(buffer_.size());
  record(Scheme::slots, bytes);
  if (report_wanted()) report_moved(buffer_, Side::sender, Scheme::slots, bytes, packing_ns_);
}

void SlotsOffer::withdraw() noexcept {
  if (inbox_ == nullptr) return;
  inbox_->head().words[way_.slots[0]].message.store(0, std::memory_order_relaxed);
  inbox_->head().free_slots.fetch_or(all_of(way_), std::memory_order_release);
  inbox_ = nullptr;
}

Result fetch_from_slots(const headers::Header& header, const SlotsWay& way, const Buffer& into,
                        std::size_t bytes) noexcept {
  // Without the time of waiting for the sender.
  double unpacking_ns = 0;
  const Result result = fetch(header, way, bytes, [&](std::byte* packed, std::size_t begin, std::size_t end) {
    MovementClock clock;
    clock.begin();
    const Result unpacked = run_on_host(into.job(pack::Direction::unpack, static_cast<layout::Offset>(begin),
                                                 static_cast<layout::Offset>(end), packed));
    if (report_wanted()) unpacking_ns += clock.ns();
    return unpacked;
  });
  if (result == Result::ok && report_wanted())
    report_moved(into, transfer::Side::receiver, Scheme::slots, bytes, unpacking_ns);
  return result;
}

Result fetch_from_slots(const headers::Header& header, const SlotsWay& way, std::byte* into,
                        std::size_t bytes) noexcept {
  return fetch(header, way, bytes, [&](const std::byte* packed, std::size_t begin, std::size_t end) {
    pack::host::copy_bytes(into + begin, packed, end - begin);
    return Result::ok;
  });
}

}  // namespace gapless::transfer::schemes

#include "transfer/headers/lost_slots.hpp"

#include <mutex>

namespace gapless::transfer::headers {

constinit std::atomic<bool> internal::proof{false};

namespace {

/// A message's number is the sender's number, and in the lower bits the count of the sender's earlier messages.
constexpr unsigned bits_of_count = 40;

struct Arrival {
  std::uint64_t message = 0;
  Envelope envelope;
};

/// The last message that has come.
struct Arrived {
  std::mutex mutex;
  Arrival arrival;
};

// Never destroyed: messages may be received while the process ends.
Arrived& arrived() noexcept {
  static Arrived& instance = *new Arrived;
  return instance;
}

Envelope envelope_of(const SlotWords& words) noexcept {
  return {words.communicator.load(std::memory_order_relaxed), words.tag.load(std::memory_order_relaxed)};
}

bool is_before(std::uint64_t message, const Arrival& arrival) noexcept {
  return message != 0 && message >> bits_of_count == arrival.message >> bits_of_count && message < arrival.message;
}

}  // namespace

void internal::note_arrival(const SlotWords& words) noexcept {
  const Arrival last{words.message.load(std::memory_order_relaxed), envelope_of(words)};
  if (last.message == 0) return;
  const std::lock_guard lock(arrived().mutex);
  arrived().arrival = last;
  proof.store(true, std::memory_order_relaxed);
}

void note_departure(SlotWords& words, const Envelope& envelope, std::uint64_t slots, int rank) noexcept {
  static std::atomic<std::uint64_t> departures{1};
  if (envelope.communicator == 0) return;
  words.communicator.store(envelope.communicator, std::memory_order_relaxed);
  words.tag.store(envelope.tag, std::memory_order_relaxed);
  words.slots.store(slots, std::memory_order_relaxed);
  const std::uint64_t sender = static_cast<std::uint64_t>(rank) + 1;
  const std::uint64_t count = departures.fetch_add(1, std::memory_order_relaxed);
  words.message.store(sender << bits_of_count | count, std::memory_order_release);
}

void take_back_lost_slots(InboxHead& head) noexcept {
  const std::lock_guard lock(arrived().mutex);
  internal::proof.store(false, std::memory_order_relaxed);
  head.are_slots_short.store(false, std::memory_order_relaxed);
  const Arrival& last = arrived().arrival;
  std::uint64_t lost = 0;
  for (SlotWords& words : head.words) {
    std::uint64_t message = words.message.load(std::memory_order_acquire);
    if (!is_before(message, last)) continue;
    const Envelope envelope = envelope_of(words);
    if (envelope.communicator != last.envelope.communicator || envelope.tag != last.envelope.tag) continue;
    const std::uint64_t slots = words.slots.load(std::memory_order_relaxed);
    // No other message ever has that number, so the slots that were read are the lost message's.
    if (words.message.compare_exchange_strong(message, 0, std::memory_order_acq_rel)) lost |= slots;
  }
  if (lost != 0) head.free_slots.fetch_or(lost, std::memory_order_release);
}

}  // namespace gapless::transfer::headers

// Slots of messages that nobody will fetch, because a receive was too short for the header, or the send was cancelled.
// No call tells of lost messages, but the order of messages does. Messages of one sender, communicator and tag are
// matched in the order of sending, so a header that arrives proves that all earlier messages have been matched. If this
// process then has no matched message that is still to be fetched, earlier messages that hold slots are lost, and their
// slots are taken back. Lost messages are looked for while slots are short; else the cost is a load.
#pragma once

#include <atomic>
#include <cstdint>

#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

/// Messages of a sender with equal envelopes are matched in order. The communicator is the sender's number for the
/// communicator, which the sender never gives again; 0 where the order of messages is not known, as with several
/// threads.
struct Envelope {
  std::uint32_t communicator = 0;
  std::int32_t tag = 0;
};

namespace internal {
extern std::atomic<bool> proof;
void note_arrival(const SlotWords& words) noexcept;
}  // namespace internal

/// To be called before the header leaves of a message of this process that has those slots. `rank` is this process's.
void note_departure(SlotWords& words, const Envelope& envelope, std::uint64_t slots, int rank) noexcept;

/// To be called when a message has come to this process, before its slots are freed. Any thread.
inline void note_arrival(const InboxHead& head, SlotWords& words) noexcept {
  if (head.are_slots_short.load(std::memory_order_relaxed)) [[unlikely]]
    internal::note_arrival(words);
  words.message.store(0, std::memory_order_relaxed);
}

/// Since slots have become short, has a message come that proves others lost?
inline bool may_be_lost() noexcept { return internal::proof.load(std::memory_order_relaxed); }

/// Takes back the slots of lost messages. Precondition: this process has no matched message that is still to be
/// fetched.
void take_back_lost_slots(InboxHead& head) noexcept;

}  // namespace gapless::transfer::headers

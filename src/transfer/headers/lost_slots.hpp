// Slots of messages that nobody will fetch: a receive was too short for the header, or its send was cancelled. No call
// tells of that, but the order does. Messages of one sender, communicator and tag are matched in the order that they
// are sent in, so that a header that arrives proves that those before it have been matched. If this process has
// nothing then that is matched and not yet fetched, those that still hold slots are lost, and their slots are taken
// back. That is looked at while slots are short, and costs a load else.
#pragma once

#include <atomic>
#include <cstdint>

#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

/// What a sender's messages are matched in order by. The communicator is a number that the sender has for it, and never
/// gives to another one; 0 where the order of messages is not known, as with several threads.
struct Envelope {
  std::uint32_t communicator = 0;
  std::int32_t tag = 0;
};

namespace internal {
extern std::atomic<bool> proof;
void note_arrival(const SlotWords& words) noexcept;
}  // namespace internal

/// Of a message of this process that has those slots: to be called before its header leaves. `rank` is this process's.
void note_departure(SlotWords& words, const Envelope& envelope, std::uint64_t slots, int rank) noexcept;

/// A message has come to this process, and its slots are about to be freed. Any thread.
inline void note_arrival(const InboxHead& head, SlotWords& words) noexcept {
  if (head.are_slots_short.load(std::memory_order_relaxed)) [[unlikely]]
    internal::note_arrival(words);
  words.message.store(0, std::memory_order_relaxed);
}

/// Has a message come that proves something of others, since slots have become short?
inline bool may_be_lost() noexcept { return internal::proof.load(std::memory_order_relaxed); }

/// Precondition: this process has no message that is matched and not yet fetched.
void take_back_lost_slots(InboxHead& head) noexcept;

}  // namespace gapless::transfer::headers

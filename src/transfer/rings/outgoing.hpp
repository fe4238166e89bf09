// The sender's side of messages that are too long to lie in exported memory as a whole.
//
// A message has a ring from before its header leaves until its receiver has fetched the last section. A thread that
// waits for the message packs the sections that the ring has room for. Where no thread waits, the helper packs: a
// thread of gapless's own, which calls no MPI, and looks the more seldom the longer nothing has moved. So the receiver
// gets the bytes whatever MPI call the sender is in, or none. A message that nobody fetches for a while is copied out:
// its send is complete, and the copy waits for the receiver. So no sender waits for a receiver that waits for something
// else.
//
// All functions are thread-safe; nothing throws. The copy of a message in host memory has its memory, of the thread's
// pools, before the header leaves: later there might be none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transfer/headers/exported/exported_pool.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/rings/sections.hpp"

namespace gapless::transfer::rings {

/// One message under way.
class Outgoing;
struct EndOutgoing {
  /// Copies out a message that is not over. Such a message ends by itself.
  void operator()(Outgoing* outgoing) const noexcept;
};
using OwnedOutgoing = std::unique_ptr<Outgoing, EndOutgoing>;

/// Takes a ring from the pool, of four sections of about `section_bytes` bytes each, for a message to the process of
/// the inbox. The inbox stays; nothing is packed yet. Null if the pool has no ring now, and where there is no memory to
/// copy a message in host memory out to. Precondition: pool.is_there(buffer.gpu()).
OwnedOutgoing begin(const Buffer& buffer, headers::Inbox& receiver, headers::ExportedPool& pool,
                    std::size_t section_bytes) noexcept;
/// What the receiver is told of the ring, and the segments of the pool that the ring lies in.
const Ring& ring_of(const Outgoing& outgoing) noexcept;
headers::SegmentRun run_of(const Outgoing& outgoing) noexcept;
/// From now on the message is packed as far as the ring has room.
void start(Outgoing& outgoing) noexcept;
/// Ends a message whose header is not sent.
void withdraw(OwnedOutgoing& outgoing) noexcept;

/// Packs what the ring has room for, without waiting for the receiver. `under_way` while the program's memory is
/// needed, then ok or a failure. A message that nobody has begun to fetch for a while is copied out.
Result poll(Outgoing& outgoing) noexcept;
/// Polls until the program's memory is not needed any more.
Result wait(Outgoing& outgoing) noexcept;
/// As wait(), for a caller that must not wait for a receiver that has not begun to fetch: copies such a message out at
/// once.
Result complete_alone(Outgoing& outgoing) noexcept;

/// Packs for all outgoing messages of this process. Costs a load where there is none.
void drive_all() noexcept;
/// Waits until all messages are fetched. `has_ended(rank)` says which receivers cannot fetch any more.
void drain(bool (*has_ended)(int rank)) noexcept;

}  // namespace gapless::transfer::rings

/// For tests: how many messages have been copied out, and how often the helper has looked at messages.
extern "C" std::uint64_t gapless_rings_copied_out();
extern "C" std::uint64_t gapless_rings_helpers_looks();

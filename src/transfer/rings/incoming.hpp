// The receiver's side of messages that come through a ring.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/rings/sections.hpp"

namespace gapless::transfer::rings {

/// A message that comes through a ring, which is mapped here at `memory`.
struct Incoming {
  const Ring& ring;
  headers::RingWords& words;
  std::byte* memory;
  device::MemoryKind kind;  ///< of that memory: device or pinned
  pid_t sender;
};

/// Is that a ring, and are its sections those of memory of so many bytes? Another process has said so.
bool is_right(const Ring& ring, std::uint64_t room) noexcept;

/// Unpacks the first `wanted` bytes into the buffer, by its GPU or, where it is the host's, by the CPU, and waits for
/// the sender meanwhile; peer_failed if that has ended. Afterwards the ring is the sender's again, however that went.
Result fetch(const Incoming& incoming, const Buffer& into, std::size_t wanted) noexcept;
/// Copies them into contiguous memory that the CPU reaches, by that GPU where the ring is not on the host.
Result fetch(const Incoming& incoming, std::byte* into, std::size_t wanted, int device) noexcept;
/// Nothing, or nothing more, is wanted.
void refuse(headers::RingWords& words) noexcept;

}  // namespace gapless::transfer::rings

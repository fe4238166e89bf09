// The receiver's side of messages that come through a ring.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/rings/sections.hpp"

namespace gapless::transfer::rings {

/// A message that comes through a ring. This process has mapped the ring at `memory`.
struct Incoming {
  const Ring& ring;
  headers::RingWords& words;
  std::byte* memory;
  device::MemoryKind kind;  ///< of that memory: device or pinned
  pid_t sender;
};

/// Does the ring have sections, and does it fit into `room` bytes? Another process has described the ring.
bool is_right(const Ring& ring, std::uint64_t room) noexcept;

/// Unpacks the first `wanted` bytes into the buffer: a GPU into its own memory, the CPU into host memory. Waits for the
/// sender meanwhile; peer_failed if the sender has ended. Afterwards the ring is the sender's again, also after a
/// failure.
Result fetch(const Incoming& incoming, const Buffer& into, std::size_t wanted) noexcept;
/// Copies the first `wanted` bytes into contiguous memory that the CPU reaches. GPU `device` copies where the ring is
/// in GPU memory.
Result fetch(const Incoming& incoming, std::byte* into, std::size_t wanted, int device) noexcept;
/// Tells the sender that this process wants no more bytes.
void refuse(headers::RingWords& words) noexcept;

}  // namespace gapless::transfer::rings

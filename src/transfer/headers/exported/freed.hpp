// Memory that the program has freed, and that peers have mapped. The driver keeps such memory until all peers have
// unmapped it. So peers are told, and unmap when they next read a message of this process.
//
// The next message is too late where the MPI library maps peers' memory itself. A new allocation may lie at the
// addresses of a freed one, and the driver does not map the new allocation in a process that still has the old one
// mapped. A library that is refused sends by a slower way, or ends the process. So before such a library gets memory of
// a new allocation, this process calls its peers, and waits until they have unmapped all freed memory. A thread of each
// peer answers, because the peer may be in the library, or in no MPI call.
#pragma once

#include <cstdint>

#include "device/exported_memory.hpp"
#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

/// What this process tells peers of the program's allocations.
device::ExportedMemory& exported_memory() noexcept;

/// Tells all peers what the program has freed.
void tell_of_freed() noexcept;

/// Unmaps what the process of the inbox has freed since the last call. Two loads where it has freed nothing.
void unmap_freed(Inbox& owner) noexcept;

/// To be called before a peer is told of an allocation: from now on the peer is called when memory is freed, if the MPI
/// library maps memory as well.
void expect_mapping_by(Inbox& peer) noexcept;
/// To be called before memory of that owner is mapped here: from now on this process answers the owner's calls. False
/// where this process cannot answer, and must map nothing.
bool answer_calls_of(Inbox& owner) noexcept;

}  // namespace gapless::transfer::headers

/// For tests: how often this process has called its peers.
extern "C" std::uint64_t gapless_freed_calls();

// What the program has freed of the memory that peers have mapped. The driver keeps it until they have unmapped it, so
// they are told, and look when they next read a message of this process.
//
// That is too late where the MPI library maps peers' memory itself. Once an allocation is freed, another may lie at the
// same addresses, and the driver maps it in no process that has the old one mapped still; a library that is refused
// sends by a slower way, or ends the process. So before such a library is given memory that lies in an allocation that
// nobody has met, peers are called, and this process waits until they have unmapped what is freed. A thread of each
// peer answers, for the peer may be in the library, or in none.
#pragma once

#include <cstdint>

#include "device/exported_memory.hpp"
#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

/// What this process tells peers of the program's allocations.
device::ExportedMemory& exported_memory() noexcept;

/// Tells all peers what the program has freed.
void tell_of_freed() noexcept;

/// Unmaps what the process of that inbox has freed since the last time. Two loads where there is nothing.
void unmap_freed(Inbox& owner) noexcept;

/// The peer is about to be told of an allocation: from now on it is called where something is freed, if the MPI library
/// maps memory as well.
void expect_mapping_by(Inbox& peer) noexcept;
/// The same of memory of that peer's which is mapped here: from now on this process answers calls. False where it
/// cannot, and is to map nothing.
bool answer_calls_of(Inbox& owner) noexcept;

}  // namespace gapless::transfer::headers

/// For tests: how often this process has called its peers.
extern "C" std::uint64_t gapless_freed_calls();

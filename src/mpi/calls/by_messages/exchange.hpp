// Exchanges among all ranks, and with neighbours, by messages: all parts that one process has for another combined,
// from GPU to GPU, or each part a message of its own, by a fabric. They are MPI_Alltoall and the forms of MPI_Alltoall
// and MPI_Neighbor_alltoall with lengths or datatypes for each part; from GPU to GPU also MPI_Neighbor_alltoall itself,
// and MPI_Allgather and MPI_Allgatherv, in which all parts that a process sends are one.
#pragma once

#include <cstdint>

#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/staged/memory_argument.hpp"

namespace gapless::mpi::by_messages {

/// What this rank wants of an exchange. `other`: the rank has much GPU memory to send, or a scheme of a fabric is
/// forced. `sooner`: most bytes for other nodes are predicted to arrive sooner by a fabric than packed. `are_combined`:
/// as far as is known, peers map the allocations that they are told of.
Wish wish_of(const CallFacts& call, const MemoryArgument& out, bool are_combined) noexcept;

/// Gets the memory for exchanges of that communicator and kind, before any rank counts on this one. False if there is
/// none.
bool reserve(const CallFacts& call, const MemoryArgument& out, Exchanged& exchanged) noexcept;

/// Makes the exchange. MPI_SUCCESS, or the error that is to be raised. Precondition: the exchange has a lane.
int exchange(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in,
             const AgreedExchange& agreed) noexcept;

}  // namespace gapless::mpi::by_messages

/// For tests: how many exchanges of this process have gone by messages.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_exchanges_by_messages();

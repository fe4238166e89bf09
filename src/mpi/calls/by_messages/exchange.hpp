// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and MPI_Neighbor_alltoallw by messages, each part a message of its own,
// which goes from GPU to GPU, or by a fabric.
#pragma once

#include <cstdint>

#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/staged/memory_argument.hpp"

namespace gapless::mpi::by_messages {

/// What this rank wants of an exchange. `other`: it has so much GPU memory to send, or a scheme of a fabric is forced;
/// `sooner`: most of what it has to send to other nodes is predicted to arrive sooner by a fabric than packed.
Wish wish_of(const CallFacts& call, const MemoryArgument& out) noexcept;

/// The exchange, on a communicator of the same ranks: MPI_SUCCESS, or the error that is to be raised.
int exchange(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in, MPI_Comm lane) noexcept;

}  // namespace gapless::mpi::by_messages

/// For tests: how many exchanges of this process went so.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_exchanges_by_messages();

// Exchanges among all ranks, and with neighbours, by messages: all parts that one process has for another combined,
// from GPU to GPU, or each part a message of its own, by a fabric. They are MPI_Alltoall and the forms of MPI_Alltoall
// and MPI_Neighbor_alltoall with lengths or datatypes for each part. From GPU to GPU they are also
// MPI_Neighbor_alltoall itself, the forms of MPI_Allgather and MPI_Neighbor_allgather, in which all parts that a
// process sends are one, and MPI_Bcast, MPI_Gather and MPI_Scatter, in which a root has a part for, or of, each
// process.
#pragma once

#include <cstdint>

#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/by_messages/parts.hpp"

namespace gapless::mpi::by_messages {

/// What this rank wants of an exchange. `other`: the rank has much GPU memory to send, or peers are still to map less
/// of it, or a scheme of a fabric is forced. `sooner`: the rank has less of it, or most bytes for other nodes are
/// predicted to arrive sooner by a fabric than packed. Where there is a root, its wish alone counts: from many GPUs
/// into host memory, packed bytes take many ways at once, and messages to the root one after the other.
Wish wish_of(const CallFacts& call, const Sides& sides, Mapping mapping) noexcept;

/// What a rank wants that has so many bytes of GPU memory to send. Short exchanges are tried both ways: where processes
/// share a GPU, which serves one after the other, host memory may be sooner.
Wish wish_for_gpu_memory(layout::Offset bytes, Mapping mapping) noexcept;
/// The same where both ways must not take turns.
Wish wish_for_gpu_memory() noexcept;

/// Gets the memory for exchanges of that communicator and kind, before any rank counts on this one. False if there is
/// none.
bool reserve(const CallFacts& call, const Sides& sides, Exchanged& exchanged) noexcept;

/// The same memory for exchanges of parts among all ranks.
bool reserve_for_all(const CallFacts& call, Exchanged& exchanged) noexcept;

/// Makes the exchange. MPI_SUCCESS, or the error that is to be raised. Precondition: the exchange has a lane.
int exchange(const CallFacts& call, const Sides& sides, const AgreedExchange& agreed) noexcept;

}  // namespace gapless::mpi::by_messages

/// For tests: how many exchanges of this process have gone by messages.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_exchanges_by_messages();

// Blocking collectives in two levels: the endpoints of a process combine or hand on what they have in their common
// memory, and one of them, the leader, calls the library's collective on a communicator with one rank a process.
//
// Which way a collective goes must be the same on every rank, so it depends only on what MPI wants to be the same
// there: how many bytes there are, which MPI_Op it is, where the ranks are. What `serves...` refuses is a schedule
// of messages, as the nonblocking and persistent forms are.
//
// Functions return an error code that is not raised. Buffers are described as in MPI.
#pragma once

#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints::together {

int barrier(Endpoint& endpoint);

/// `bytes` are those of one rank's data; an error code if it is no valid buffer.
int size_of(Endpoint& endpoint, const Data& data, MPI_Count& bytes) noexcept;

bool serves_broadcast(const Communicator& communicator, MPI_Count bytes) noexcept;
int broadcast(Endpoint& endpoint, const Data& data, int root);

/// `bytes` go from each rank to each.
bool serves_exchange(const Communicator& communicator, MPI_Count bytes) noexcept;
/// Elements for each rank, one rank's behind the other's.
struct Rows {
  const void* memory;
  MPI_Count each;
  MPI_Datatype datatype;
};
/// `mine` is a rank's part of `all` if the call is in place.
int gather_to_all(Endpoint& endpoint, const Data& mine, bool in_place, const Rows& all, MPI_Count bytes);
/// Not in place.
int all_to_all(Endpoint& endpoint, const Rows& out, const Rows& in, MPI_Count bytes);

/// Of each MPI_Op that the library has from the start, on its own datatypes, where ranks follow each other in the order
/// of the processes: the order of operands is then that of the ranks.
bool serves_reduction(const Communicator& communicator, MPI_Count count, MPI_Datatype datatype, MPI_Op op);
inline constexpr int everyone = -1;
/// `root`: the rank that gets the result, or `everyone`. Operands that are in place are in the result's buffer.
int reduce(Endpoint& endpoint, const void* operand, void* result, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
           int root);

}  // namespace gapless::mpi::endpoints::together

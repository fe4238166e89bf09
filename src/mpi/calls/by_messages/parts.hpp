// The parts that a rank sends and receives in an exchange, whatever form the call has: one for each peer, or the one
// that a root has for all, or all have for a root.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/calls/staged/memory_argument.hpp"

namespace gapless::mpi::by_messages {

/// What a call sends from, and what the call receives into. Those of MPI_Bcast are one. An argument that means nothing
/// on this rank has no bytes.
struct Sides {
  MemoryArgument out, in;

  /// Is each part for a neighbour?
  bool is_of_neighbors() const noexcept { return mpi::is_of_neighbors(in.kind); }
  /// Does a rank have one part for all others, or, where there is a root, for the root?
  bool has_one_part() const noexcept { return out.kind == table::RoleKind::send; }
};

/// `first` and `last` are the call's memory arguments. MPI_IN_PLACE becomes this rank's part of the other argument.
/// Precondition: the call has a kind (agreement.hpp).
Sides sides_of(const CallFacts& call, const MemoryArgument& first, const MemoryArgument& last) noexcept;

/// All ranks of a call's communicator. Throws std::bad_alloc.
Neighbors::Ranks all_ranks_of(const CallFacts& call);

/// The ranks that this rank exchanges parts with, whether or not the parts of a call have bytes.
Neighbors::Ranks peers_of(const CallFacts& call, const Sides& sides);

/// Lists a part for each of so many peers, replacing the contents of `parts`. Parts that nobody sends have no bytes.
/// Throws std::bad_alloc where `parts` has no room for that many.
void list_sent(const CallFacts& call, const Sides& sides, std::size_t peers, std::vector<Part>& parts);
void list_received(const CallFacts& call, const Sides& sides, std::size_t peers, std::vector<Part>& parts);

}  // namespace gapless::mpi::by_messages

// How many entries the count arrays of a collective have, and whose they are.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

enum class CountsOf {
  processes,     ///< of the group, or of the remote group of an intercommunicator
  sources,       ///< neighbours that this process receives from
  destinations,  ///< neighbours that it sends to
  results,       ///< processes of the own group, over which a reduction's result is scattered
};

/// 0 where the communicator has no neighbours or is none: the call will say so.
int count_entries(MPI_Comm communicator, CountsOf what) noexcept;

/// Which entry is this process's own, or -1: between groups nobody has one.
int own_rank(MPI_Comm communicator) noexcept;

/// Is there no process at that end of an edge, beyond the border of a grid? Nothing moves then, whatever is counted.
bool is_neighbor_missing(MPI_Comm communicator, int neighbor) noexcept;

/// Is this process the one for which a buffer that matters at the root only matters?
bool is_root(MPI_Comm communicator, int root) noexcept;

}  // namespace gapless::mpi

// How many entries the count arrays of a collective have. Asked only where GPU memory is given to a call that is not
// served.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

enum class CountsOf {
  processes,     ///< of the group, or of the remote group of an intercommunicator
  sources,       ///< neighbours that this process receives from
  destinations,  ///< neighbours that it sends to
};

/// 0 where the communicator has no neighbours or is none: the call will say so.
int count_entries(MPI_Comm communicator, CountsOf what) noexcept;

/// Is this process the one for which a buffer that matters at the root only matters?
bool is_root(MPI_Comm communicator, int root) noexcept;

}  // namespace gapless::mpi

// What this layer does through a session of its own in programs that have sessions and no world: a session of theirs
// may end before another, which goes on using what was made from the first.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::session {

/// Opens the session and makes a communicator of this process alone, whose errors are returned.
bool open(MPI_Comm& alone) noexcept;
/// Frees the communicator and closes the session. Precondition: open() was true.
void close(MPI_Comm& alone) noexcept;

/// This process among all that were started with it, and how many these are; left alone if that cannot be told.
/// Precondition: open() was true.
void find_place(int& rank, int& ranks) noexcept;

}  // namespace gapless::mpi::session

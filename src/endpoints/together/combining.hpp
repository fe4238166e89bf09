// What combines short operands of built-in reductions in place of MPI_Reduce_local, with which the threads of a process
// write one count of an operation's uses (Open MPI 5.0.11), each time.
#pragma once

#include <cstddef>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints::together {

/// into = with op into, as MPI_Reduce_local does, for so many numbers. They need not be aligned.
using Combine = void (*)(const std::byte* with, std::byte* into, MPI_Count count) noexcept;

/// Null where the library has to. MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX of the usual numbers are ours.
Combine combining(MPI_Op operation, MPI_Datatype datatype) noexcept;

}  // namespace gapless::mpi::endpoints::together

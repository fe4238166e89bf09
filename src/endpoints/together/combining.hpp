// Combines short operands of built-in reductions. MPI_Reduce_local of Open MPI 5.0.11 counts an MPI_Op's uses, in
// one place that all threads of a process write.
#pragma once

#include <cstddef>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints::together {

/// into = with op into, as MPI_Reduce_local does, for so many numbers. They need not be aligned.
using Combine = void (*)(const std::byte* with, std::byte* into, MPI_Count count) noexcept;

/// Null where the library has to. MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX of the usual numbers are ours.
Combine combining(MPI_Op op, MPI_Datatype datatype) noexcept;

}  // namespace gapless::mpi::endpoints::together

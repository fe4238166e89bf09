// How many endpoints are of use to a process.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// MPIX_Query_endpoints.
int query(MPI_Comm parent, int* count) noexcept;

}  // namespace gapless::mpi::endpoints

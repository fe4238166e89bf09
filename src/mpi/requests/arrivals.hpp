// How MPI_Waitall waits where several messages are unpacked into host memory: each is unpacked when it arrives, while
// the peer packs the next one. MPI_Waitall of the library says nothing until the last has arrived.
#pragma once

#include "mpi/requests/claims.hpp"

namespace gapless::mpi::requests {

/// native.Waitall: statuses, code and handlers are the library's. What is unpacked stays to be completed by the caller.
int wait_for_arrivals(Claims& claims, Statuses& statuses, int count, MPI_Request* requests) noexcept;

}  // namespace gapless::mpi::requests

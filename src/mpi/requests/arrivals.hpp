// How MPI_Waitall waits for several messages that are unpacked into host memory: each message is unpacked when it
// arrives, while the peer packs the next one. The library's MPI_Waitall says nothing until the last message has
// arrived.
#pragma once

#include "mpi/requests/claims.hpp"

namespace gapless::mpi::requests {

/// Does what native.Waitall does: statuses, code and handlers are the library's. The caller completes the claims, of
/// unpacked messages too.
int wait_for_arrivals(Claims& claims, Statuses& statuses, int count, MPI_Request* requests) noexcept;

}  // namespace gapless::mpi::requests

// Sends whose packing waits, so that those of one exchange are packed by one launch.
//
// A small message out of GPU memory does not leave in MPI_Isend, but in the next call that is not the start of another
// operation, or once there are enough of them. Its handle is that of the library's persistent request on the packed
// buffer, which is started when the buffer is packed. Sends to one destination in a communicator leave in program
// order: a send that needs no packing queues behind deferred ones.
//
// Every call that may wait for another process, or looks whether something is complete, starts what is deferred first:
// one load while nothing is. That is enough where one thread at a time calls MPI. With MPI_THREAD_MULTIPLE nothing is
// deferred: another thread may be waiting inside the library already, for an answer to the message.
#pragma once

#include <cstddef>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::requests {

class Pending;

/// Larger messages start at once, and so do all once they are more together.
inline constexpr std::size_t most_deferred_bytes = std::size_t{256} << 10;

namespace internal {
extern std::size_t deferred;
void start_deferred() noexcept;
}  // namespace internal

inline bool are_none_deferred() noexcept { return internal::deferred == 0; }

/// May sends be deferred in this program?
bool may_defer() noexcept;

/// Packs and starts all that is deferred. A failure is told by the call that completes its request.
inline void start_deferred() noexcept {
  if (!are_none_deferred()) [[unlikely]]
    internal::start_deferred();
}

/// Is a send to that destination deferred?
bool is_deferred_to(MPI_Comm communicator, int destination) noexcept;

/// Defers the send of an outstanding message, of `bytes` to be packed.
void defer(Pending* pending, MPI_Comm communicator, int destination, std::size_t bytes) noexcept;

}  // namespace gapless::mpi::requests

// The nonblocking messages of ours that the program has not completed, by the handles of their requests.
//
// Every call that completes requests asks here first. While nothing is outstanding the answer is one load. A call that
// completes a request claims what is pending for it *before* it asks the library: once the library has completed the
// request, another thread may be given the same handle.
#pragma once

#include <atomic>
#include <cstddef>

#include "mpi/requests/pending.hpp"

namespace gapless::mpi::requests {

namespace internal {
extern std::atomic<std::size_t> outstanding;
}

/// Is nothing outstanding, freed requests included?
inline bool are_none() noexcept { return internal::outstanding.load(std::memory_order_relaxed) == 0; }

/// Messages and persistent requests that are outstanding, freed ones included.
inline std::size_t how_many() noexcept { return internal::outstanding.load(std::memory_order_relaxed); }

/// So many more have a place of their own (requests/looked_at.hpp).
void count_outstanding(std::ptrdiff_t more) noexcept;

/// Is that an error for which a call that completes an array of requests, or looks at one, names no communicator? MPICH
/// 5.0.2 names none for a message that is too long.
inline bool names_no_communicator([[maybe_unused]] int error) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  return false;
#else
  return error != MPI_SUCCESS && error == truncated_message();
#endif
}

/// A place for one message, not yet outstanding. Null if there is no memory for it.
Pending* acquire() noexcept;
/// Gives back a place that is not outstanding.
void release(Pending* pending) noexcept;

/// The message is outstanding under `handle` from now on. One that is complete already never is: libraries give the
/// same handle to all of those.
void add(Pending* pending, MPI_Request handle) noexcept;

/// The persistent message may go under that request as well, which leaves it to the library: it is tried both ways, as
/// one of that kind (mpi/calls/burst.hpp).
void have_as_native(Pending* pending, MPI_Request handle, std::uint64_t kind) noexcept;

/// It is not outstanding any more.
void remove(Pending* pending) noexcept;

/// The message of that handle, claimed or not; null if none of ours has it.
Pending* find(MPI_Request handle) noexcept;
/// The unclaimed message that is in use under that handle, claimed; null if none of ours has it. Its own handle is the
/// one that the library knows of.
Pending* claim(MPI_Request handle) noexcept;
/// Its request is not complete.
void unclaim(Pending* pending) noexcept;
/// Its request is complete: ends a claimed message, and gives back its place.
void end(Pending* pending) noexcept;

/// The program has freed the request of a claimed message, which goes on if it is under way: its handle is kept here
/// instead.
void adopt(Pending* pending) noexcept;
/// The same of a message that the program has never had a request for.
void add_freed(Pending* pending, MPI_Request handle) noexcept;
/// Completes the freed requests that are complete.
void complete_freed() noexcept;
/// Ends all freed requests, for MPI ends: sends wait for their receivers, and a receive that nothing has matched is
/// cancelled, for libraries wait for none.
void end_freed() noexcept;
/// Waits for those of a communicator.
void complete_freed_of(MPI_Comm communicator) noexcept;

/// The program frees that communicator: errors of its outstanding messages go to no object's handler.
void forget_communicator(MPI_Comm communicator) noexcept;

}  // namespace gapless::mpi::requests

// The nonblocking messages that gapless serves and the program has not completed, by the handles of their requests.
//
// Every call that completes requests asks here first. While nothing is outstanding the answer is one load. A call that
// completes a request claims the pending message *before* it asks the library: once the library has completed the
// request, another thread may be given the same handle.
#pragma once

#include <atomic>
#include <cstddef>

#include "mpi/requests/pending.hpp"
#include "mpi/table/library_traits.hpp"

namespace gapless::mpi::requests {

namespace internal {
extern std::atomic<std::size_t> outstanding;
}

/// Is nothing outstanding, freed requests included?
inline bool are_none() noexcept { return internal::outstanding.load(std::memory_order_relaxed) == 0; }

/// Messages and persistent requests that are outstanding, freed ones included.
inline std::size_t how_many() noexcept { return internal::outstanding.load(std::memory_order_relaxed); }

/// Counts receives that are kept elsewhere (mpi/requests/receives/looked_at.hpp): `more` of them, or fewer if negative.
void count_outstanding(std::ptrdiff_t more) noexcept;

/// Does a call that completes an array of requests, or that looks at a request, raise the error without naming a
/// communicator?
inline bool names_no_communicator(int error) noexcept {
  return !library_names_communicators_of_truncation && error != MPI_SUCCESS && error == truncated_message();
}

/// Does a call that completes several requests say by that code that their statuses tell what has happened?
inline bool tells_in_statuses(int code) noexcept { return code != MPI_SUCCESS && class_of(code) == MPI_ERR_IN_STATUS; }

/// A place for one message, not yet outstanding. Null if there is no memory.
Pending* acquire() noexcept;
/// Gives back a place that is not outstanding.
void release(Pending* pending) noexcept;

/// From now on the message is outstanding under `handle`. Precondition: the request is not complete. (Libraries give
/// one handle to all requests that are complete when they are made.)
void add(Pending* pending, MPI_Request handle) noexcept;

/// Gives a persistent message a second request, which leaves the message to the library. Each start tries one of the
/// two requests, as messages of that kind are tried (mpi/calls/tried/burst.hpp).
void have_as_native(Pending* pending, MPI_Request handle, std::uint64_t kind) noexcept;

/// The message is not outstanding any more.
void remove(Pending* pending) noexcept;

/// Need these requests nobody's attention but the library's, and that of mpi/requests/receives/looked_at.hpp? True
/// where no message of them is outstanding here, and no freed request waits to be completed.
bool are_native(int count, const MPI_Request* requests) noexcept;
/// The message of that handle; null if no message of ours has the handle, or a call is completing the message and no
/// other can.
Pending* find(MPI_Request handle) noexcept;
/// Claims the message that is in use under that handle; null if no unclaimed one is. The library may know the message
/// by another request (Pending::as_native), which the result's `handle` names.
Pending* claim(MPI_Request handle) noexcept;
/// The same for a call that looks at the request, and does not complete it. Null, and `is_busy`, where another thread's
/// call has claimed the message: what the library says of the request is then not the whole answer.
Pending* claim_to_look(MPI_Request handle, bool& is_busy) noexcept;
/// The request of a claimed message is not complete: another call may claim the message.
void unclaim(Pending* pending) noexcept;
/// The request of a claimed message is complete: ends the message, and gives back its place.
void end(Pending* pending) noexcept;

/// The program has freed the request of a claimed message: gapless keeps the handle from now on, and completes the
/// message (complete_freed).
void adopt(Pending* pending) noexcept;
/// The same for a message whose request the program never has had.
void add_freed(Pending* pending, MPI_Request handle) noexcept;
/// Completes the freed receives that are complete. Looks at some of the freed sends, other ones each time.
void complete_freed() noexcept;
/// Ends all that is left when MPI ends: messages whose completing call an error handler has left by longjmp, and freed
/// requests. Waits until freed sends have been received. Cancels freed receives that no message has matched, because
/// libraries do not wait for such receives.
void end_all() noexcept;
/// Completes, by waiting, the freed requests of a communicator.
void complete_freed_of(MPI_Comm communicator) noexcept;

/// To be called when the program frees the communicator: from now on errors of its outstanding messages go to no
/// object's handler, and are returned where the communicator's handler has returned them.
void forget_communicator(MPI_Comm communicator) noexcept;

}  // namespace gapless::mpi::requests

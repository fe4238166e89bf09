// Headers as MPI sees them: when this process begins to listen, and to which peers a send may send a header.
// transfer/headers has the headers themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/scoped_value.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::mpi::headers {

/// Called at the end of MPI_Init, before the program can have posted a receive. The process does not listen where
/// headers are not wanted, where gapless does not work (`works`), or where the process has been spawned. Where
/// GAPLESS_ALL_RANKS vouches for all ranks, the job runs on several nodes, and a fabric is asked for, all ranks tell
/// each other how they are spoken to. MPI_SUCCESS, or the library's error.
int start(bool works) noexcept;
/// Called before MPI_Finalize: waits for messages that others have still to fetch.
void finish() noexcept;
/// Frees what start() has made. Precondition: the library still works.
void end() noexcept;

/// The process that a message may go to by header.
struct Listener {
  transfer::headers::Inbox* inbox = nullptr;  ///< null: the message may not go by header
  std::uint32_t communicator = 0;             ///< for transfer::headers::Envelope
};

/// The ranks in MPI_COMM_WORLD of a communicator's processes, MPI_UNDEFINED for processes outside MPI_COMM_WORLD; empty
/// where the library refuses. Throws std::bad_alloc.
std::vector<int> world_ranks_of(MPI_Comm communicator);
/// Are all of a communicator's processes in MPI_COMM_WORLD? False where the library refuses. Allocates nothing.
bool is_within_world(MPI_Comm communicator) noexcept;

/// The process behind a rank of a communicator.
struct Peer {
  int rank = -1;                   ///< in MPI_COMM_WORLD; negative for a process outside
  std::uint32_t communicator = 0;  ///< a number that no other communicator of this process ever has
};
/// The peer behind a rank of a communicator. The answer holds for good, also when the communicator is freed.
Peer find_peer(MPI_Comm communicator, int rank) noexcept;
/// Which processes a message may go to by header. Within a process the library passes host memory best.
enum class Speaks : std::uint8_t { to_others, to_itself_too };
/// As find_listener(), for a peer that find_peer() has found.
Listener listener_of(const Peer& peer, Speaks speaks) noexcept;

/// The result is to live while this thread frees the communicator. Meanwhile this thread does not learn its ranks: the
/// program's delete callbacks may send on it when they are forgotten already. Where the library refuses, the program's
/// error handler may leave the call by longjmp, and the result never ends: the predefined communicators, which live on,
/// are known all the same.
ScopedValue<std::uintptr_t> freeing(MPI_Comm communicator) noexcept;

/// To be called for each communicator that is made, and that messages may go by header on: forgets the one that had the
/// handle before, and need not ask whether the new one's handle is right.
void note_made(MPI_Comm communicator) noexcept;

/// Is that rank of the communicator a process of this node that takes headers, and so may send them?
bool is_neighbour(MPI_Comm communicator, int rank) noexcept;

/// The listener behind that rank of the communicator. None on intercommunicators, for processes outside MPI_COMM_WORLD,
/// without gapless or out of reach, and while the process is not attentive. The ranks of a communicator are translated
/// once.
Listener find_listener(MPI_Comm communicator, int destination, Speaks speaks) noexcept;

}  // namespace gapless::mpi::headers

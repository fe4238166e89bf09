// Headers as MPI sees them: when this process begins to listen, and to which peers a send may send a header. What
// headers are: transfer/headers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/scoped_value.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::mpi::headers {

/// Called at the end of MPI_Init, before the program can have posted a receive. The process does not listen where
/// headers are not wanted, gapless does not work, or the process was spawned. Where GAPLESS_ALL_RANKS vouches for all
/// ranks, the job runs on several nodes, and a fabric is asked for, all ranks tell each other how they are spoken to.
/// MPI_SUCCESS, or how that failed.
int start(bool works) noexcept;
/// Called before MPI_Finalize: waits for messages that others have still to fetch.
void finish() noexcept;
/// The world ends. Precondition: the library works.
void end() noexcept;

/// May a receive of this process take a header?
inline bool are_looked_for() noexcept { return transfer::headers::is_listening(); }

/// Where a message may go by header.
struct Listener {
  transfer::headers::Inbox* inbox = nullptr;  ///< null where it may not
  std::uint32_t communicator = 0;             ///< for transfer::headers::Envelope
};

/// The ranks in MPI_COMM_WORLD of a communicator's processes, MPI_UNDEFINED for those that are not there; none where
/// the library refuses. Throws std::bad_alloc.
std::vector<int> world_ranks_of(MPI_Comm communicator);
/// Are all of a communicator's processes in MPI_COMM_WORLD? Not where the library refuses. Asks for no memory.
bool is_within_world(MPI_Comm communicator) noexcept;

/// The process behind a rank of a communicator.
struct Peer {
  int rank = -1;                   ///< in MPI_COMM_WORLD, negative if it has none
  std::uint32_t communicator = 0;  ///< its number, that no other communicator of this process ever has
};
/// Holds for good, also when the communicator is freed.
Peer find_peer(MPI_Comm communicator, int rank) noexcept;
/// Whom a message may speak to: what is in host memory is passed best by the library within a process.
enum class Speaks : std::uint8_t { to_others, to_itself_too };
/// The listener that the peer is, as find_listener() has it.
Listener listener_of(const Peer& peer, Speaks speaks) noexcept;

/// To live while this thread frees a communicator. No other one becomes known to it meanwhile: delete callbacks of the
/// program may send on the communicator whose ranks are forgotten already.
ScopedValue<bool> freeing() noexcept;

/// Is that rank of the communicator a process of this node that takes headers, and so may send them?
bool is_neighbour(MPI_Comm communicator, int rank) noexcept;

/// The listener behind that rank of the communicator. None on intercommunicators, outside MPI_COMM_WORLD, without
/// gapless or elsewhere, or while that process is not attentive. The ranks of a communicator are translated once.
Listener find_listener(MPI_Comm communicator, int destination, Speaks speaks) noexcept;

}  // namespace gapless::mpi::headers

// Which endpoints of a communicator share memory: all of a process, and those of its node where the system allows it.
#pragma once

namespace gapless::mpi::endpoints {

struct Communicator;

/// Makes the communicator's inboxes, and says of every rank which is its own. Collective over the processes of the
/// communicator, whose ranks and lanes are known. An error code, not raised.
int share_inboxes(Communicator& communicator);

}  // namespace gapless::mpi::endpoints

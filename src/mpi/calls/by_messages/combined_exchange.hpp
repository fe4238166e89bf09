// An exchange between processes of one node in which all that one process has for another is one message.
//
// Each process sends each of its destinations one description of all parts that it has for it
// (transfer/pulls/combined.hpp). A receiver that has all descriptions copies everything by one launch, what the process
// exchanges with itself included. Where parts cannot be read in their sender's memory, or not yet, the description is
// empty, and they follow as messages of their own.
#pragma once

#include "mpi/calls/by_messages/messages.hpp"

namespace gapless::mpi::by_messages {

/// `lane` has all ranks of the exchange, which `exchanged` describes. `unmapped` counts exchanges in a row in which
/// parts of GPU memory that could be read in one pass were sent as messages of their own, for no peer has mapped them.
/// MPI_SUCCESS, or the error that is to be raised. A process without memory for it sends its parts all the same.
int exchange_combined(const char* function, MPI_Comm lane, Exchanged& exchanged, unsigned& unmapped) noexcept;

}  // namespace gapless::mpi::by_messages

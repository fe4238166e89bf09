// An exchange between processes of one node, in which all parts that one process has for another are one message.
//
// Each process sends each of its destinations one description of all parts for that destination
// (transfer/pulls/combined.hpp). A receiver that has all descriptions copies all parts by one launch, with the parts
// that it exchanges with itself. Where the receiver cannot read the parts in the sender's memory, or not yet, the
// description is empty, and the parts follow as messages of their own.
#pragma once

#include "mpi/calls/by_messages/messages.hpp"

namespace gapless::mpi::by_messages {

/// `lane` has all ranks of the exchange, which `exchanged` describes. The exchange is counted in
/// `unmapped`. MPI_SUCCESS, or the error that is to be raised. A process without memory for the exchange sends its
/// parts all the same.
int exchange_combined(const char* function, MPI_Comm lane, Exchanged& exchanged, Unmapped& unmapped) noexcept;

}  // namespace gapless::mpi::by_messages

// Messages that a matched probe of an endpoint has handed out. Their handles are the library's: each is that of an
// empty message which the endpoint's own communicator has sent to itself.
#pragma once

#include <memory>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints::messages {

/// Makes the handle of a message that was taken out, which belongs to it from then on. An error code, not raised.
int make(Endpoint& endpoint, Message* message, MPI_Message* handle);

/// The endpoint of the message of that handle; null if it is none of an endpoint's.
std::shared_ptr<Endpoint> endpoint_of(const MPI_Message* handle);

/// The message of that handle, which is of its endpoint's pool. The handle ends. Precondition: it is an endpoint's.
Message& take(MPI_Message* handle);

}  // namespace gapless::mpi::endpoints::messages

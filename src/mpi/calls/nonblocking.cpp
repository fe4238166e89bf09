// Messages that return a request. Packed bytes are made in the call; what arrives is unpacked by the call that
// completes the request (requests/completion.cpp).
#include "mpi/calls/message_call.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::entry {

#define GAPLESS_NONBLOCKING(name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = NonblockingCall<table::rows::name>::call;)
#define GAPLESS_NONBLOCKING_BOTH(name) GAPLESS_NONBLOCKING(name) GAPLESS_NONBLOCKING(name##_c)

GAPLESS_NONBLOCKING_BOTH(Isend)
GAPLESS_NONBLOCKING_BOTH(Issend)
GAPLESS_NONBLOCKING_BOTH(Irsend)
GAPLESS_NONBLOCKING_BOTH(Ibsend)
GAPLESS_NONBLOCKING_BOTH(Irecv)
GAPLESS_NONBLOCKING_BOTH(Imrecv)

}  // namespace gapless::mpi::entry

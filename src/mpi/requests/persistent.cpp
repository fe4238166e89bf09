// Persistent messages. The program's handle is the library's own persistent request on a packed buffer that lives as
// long as the request: each start packs into it what the memory then holds, each completion unpacks what came.
#include "mpi/requests/request_call.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace requests {
namespace {

/// Packs what request `handle` sends, if it is one of ours. MPI_SUCCESS, or an error that has been raised.
int pack(MPI_Request handle) noexcept {
  Pending* pending = find(handle);
  if (pending == nullptr || !pending->is_persistent) return MPI_SUCCESS;
  const int code = pending->start();
  return code == MPI_SUCCESS ? code : pending->raise(code);
}

int start(MPI_Request* request) {
  if (!are_none() && request != nullptr) {
    if (const int code = pack(*request); code != MPI_SUCCESS) return code;
  }
  return native.Start(request);
}

// After a failure none is started.
int start_all(int count, MPI_Request* requests) {
  for (int i = 0; !are_none() && requests != nullptr && i < count; ++i) {
    if (const int code = pack(requests[i]); code != MPI_SUCCESS) return code;
  }
  return native.Startall(count, requests);
}

}  // namespace
}  // namespace requests

namespace entry {

#define GAPLESS_PERSISTENT(name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = PersistentCall<table::rows::name>::call;)
#define GAPLESS_PERSISTENT_BOTH(name) GAPLESS_PERSISTENT(name) GAPLESS_PERSISTENT(name##_c)

GAPLESS_PERSISTENT_BOTH(Send_init)
GAPLESS_PERSISTENT_BOTH(Ssend_init)
GAPLESS_PERSISTENT_BOTH(Bsend_init)
GAPLESS_PERSISTENT_BOTH(Rsend_init)
GAPLESS_PERSISTENT_BOTH(Recv_init)

const decltype(Native::Start) Start = requests::start;
const decltype(Native::Startall) Startall = requests::start_all;

}  // namespace entry
}  // namespace gapless::mpi

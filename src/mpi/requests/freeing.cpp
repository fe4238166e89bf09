// The calls that give requests up, and communicators with requests on them: what gapless keeps for these is adopted,
// completed or forgotten before the library is asked.
#include <cstdint>
#include <limits>

#include "mpi/headers/matched.hpp"
#include "mpi/requests/claims.hpp"
#include "mpi/requests/receives/short_persistent.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace requests {
namespace {

int free_request(MPI_Request* request) {
  start_deferred();
  if (request == nullptr) return native.Request_free(request);
  if (short_persistent::are_any()) short_persistent::forget(*request);
  Pending* pending = are_none() ? nullptr : claim(*request);
  if (pending == nullptr) return native.Request_free(request);
  adopt(pending);
  *request = MPI_REQUEST_NULL;
  complete_freed();
  return MPI_SUCCESS;
}

/// A send by header is not cancelled, which MPI permits: the header would be lost, with what it offers. The send
/// completes alone, so that the program does not wait for the receiver. A receive whose message has been matched is not
/// cancelled either.
int cancel(MPI_Request* request) {
  if (are_none() || request == nullptr) {
    start_deferred();
    return native.Cancel(request);
  }
  Claims claims(request);
  claims.complete_alone();
  return claims.are_by_header() || claims.settled() != MPI_UNDEFINED ? MPI_SUCCESS : native.Cancel(request);
}

template <auto function>
int free_communicator(MPI_Comm* communicator) {
  start_deferred();
  if (communicator == nullptr) return (native.*function)(communicator);
  if (!are_none()) {
    // The library may wait until the communicator has no request any more, and freed requests are kept here.
    if (function == &Native::Comm_disconnect) complete_freed_of(*communicator);
    forget_communicator(*communicator);
  }
  // The program's delete callbacks may receive probed messages, and where a callback fails the communicator stays.
  const MPI_Comm handle = *communicator;
  const auto meanwhile = headers::freeing(handle);
  const std::uint64_t last = runtime::is_multithreaded() && headers::are_stashed() ? headers::last_stashed() : 0;
  const int code = (native.*function)(communicator);
  if (code == MPI_SUCCESS && short_persistent::are_any()) short_persistent::forget_communicator(handle);
  if (code == MPI_SUCCESS && headers::are_stashed()) {
    headers::forget_messages(handle, runtime::is_multithreaded() ? last : std::numeric_limits<std::uint64_t>::max());
  }
  return code;
}

}  // namespace
}  // namespace requests

namespace entry {

const decltype(Native::Request_free) Request_free = requests::free_request;
const decltype(Native::Cancel) Cancel = requests::cancel;
const decltype(Native::Comm_free) Comm_free = requests::free_communicator<&Native::Comm_free>;
const decltype(Native::Comm_disconnect) Comm_disconnect = requests::free_communicator<&Native::Comm_disconnect>;

}  // namespace entry
}  // namespace gapless::mpi

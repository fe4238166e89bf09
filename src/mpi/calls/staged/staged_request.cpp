#include "mpi/calls/staged/staged_request.hpp"

#include <utility>

#include "mpi/requests/new_request.hpp"
#include "mpi/requests/outstanding.hpp"

namespace gapless::mpi {
namespace {

bool is_complete(MPI_Request request, ReceivedStatus& status) noexcept {
  int flag = 0;
  return native.Request_get_status(request, &flag, status.get()) == MPI_SUCCESS && flag != 0;
}

}  // namespace

int place_under_request(std::unique_ptr<requests::Work> work, Life life, const char* function,
                        const ErrorObject& object, MPI_Request* request, int (*call)(const void* arguments),
                        const void* arguments) noexcept {
  requests::Pending* pending = requests::acquire();
  if (pending == nullptr) return raise_on(object, transfer_failure(function, transfer::Result::out_of_memory));
  pending->make<std::unique_ptr<requests::Work>>(std::move(work));
  pending->function = function;
  pending->error_object = object;
  pending->is_persistent = life == Life::persistent;
  pending->needs_no_unpacking = pending->is_persistent;  // nothing arrives before it is started
  int code = MPI_SUCCESS;
  if (!requests::call_makes_request(request, code, [&] { return call(arguments); })) {
    requests::release(pending);
    return code;
  }
  // Libraries give one handle to all requests that are complete at once, but not to file access. MPICH 5.0.2 must not
  // be asked about file access: the next call would be told of an error.
  const bool may_share = !pending->is_persistent && object.kind != ErrorObject::Kind::file;
  ReceivedStatus status(MPI_STATUS_IGNORE);
  if (may_share && is_complete(*request, status)) {
    const int ours = pending->finish(status);
    requests::release(pending);
    if (ours == MPI_SUCCESS) return code;
    native.Wait(request, MPI_STATUS_IGNORE);
    return raise_on(object, ours);
  }
  requests::add(pending, *request);
  return code;
}

}  // namespace gapless::mpi

// Persistent messages. The program's handle is the library's own persistent request on a packed buffer that lives as
// long as the request: each start packs what the memory then holds, and each completion unpacks what has come.
//
// A send that may go by header has a second persistent request, of the header. Each start offers the message, and where
// the offer succeeds starts the second request in place of the first. The program waits for the first, which is
// inactive, and so complete to the library: gapless waits for what is left.
//
// A message in host memory that gapless packs has another request beside its own, of the program's memory as it is.
// Messages that are started in a row are tried together (mpi/calls/tried/burst.hpp): each start takes one of the two
// requests. Calls that complete the message have the request in use in their list while they ask the library
// (mpi/requests/claims.hpp).
#include <algorithm>
#include <optional>

#include "mpi/calls/tried/burst.hpp"
#include "mpi/requests/claims.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/receives/short_persistent.hpp"
#include "mpi/requests/request_call.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace requests {
namespace {

/// The persistent message in use under that handle; null without one.
Pending* persistent_of(MPI_Request handle) noexcept {
  Pending* pending = find(handle);
  return pending != nullptr && pending->is_persistent ? pending->in_use() : nullptr;
}

/// Chooses the way of the next message under that handle, and puts its packing into the batch. Returns what is in use
/// from then on; null where the request is none of ours.
Pending* begin_to_start(MPI_Request handle, transfer::Batch& batch) noexcept {
  Pending* pending = find(handle);
  if (pending == nullptr || !pending->is_persistent) return nullptr;
  pending = pending->programs_own();
  std::optional<burst::Message> message;
  // Starting a request that is under way is a mistake, which the library finds.
  if (pending->as_native != nullptr && !pending->in_use()->is_started) {
    message.emplace(pending->kind);
    pending->goes_as_native = transfer::host_way() == transfer::HostWay::native;
    if (!pending->goes_as_native) burst::Message::note_chosen();
  }
  pending->in_use()->start_in(batch);
  return pending->in_use();
}

/// Starts the message that begin_to_start() has made ready. Open MPI changes the program's handle where the library
/// still needs the request for the last message. With several threads another one may be given the old handle, so the
/// request leaves the table before the call. With one thread it leaves after the call, because an error handler may
/// leave the call by longjmp.
int start_begun(Pending* pending, MPI_Request* request) noexcept {
  MPI_Request own = pending->handle;
  if (*request != own) request = &own;
  if (pending->receives() && headers::are_stashed()) {
    if (const auto matched = headers::take_stashed(pending->source, pending->tag, pending->error_object.communicator))
      return pending->start_matched(*matched);
  }
  if (int code = MPI_SUCCESS; pending->start_header(code)) return code;
  const bool is_multithreaded = runtime::is_multithreaded();
  if (is_multithreaded) remove(pending);
  const int code = native.Start(request);
  if (!is_multithreaded) remove(pending);
  add(pending, *request);
  if (code != MPI_SUCCESS) pending->stop();
  return code;
}

/// Starts a request that is none of ours.
int start_by_library(MPI_Request* request) {
  if (!short_persistent::are_any() || request == nullptr) return native.Start(request);
  const MPI_Request before = *request;
  const int code = native.Start(request);
  if (*request != before) short_persistent::rename(before, *request);
  return code;
}

/// Starts requests of which none is ours.
int start_all_by_library(int count, MPI_Request* requests) {
  if (!short_persistent::are_any() || requests == nullptr || count <= 0) return native.Startall(count, requests);
  Scratch<MPI_Request> before(count);
  if (!before.is_there()) return raise_without_object(MPI_ERR_NO_MEM);
  std::copy_n(requests, count, before.data());
  const int code = native.Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    if (requests[i] != before[i]) short_persistent::rename(before[i], requests[i]);
  }
  return code;
}

/// While anything is stashed, a start of any receive may match it.
int promote_short(int count, const MPI_Request* requests) noexcept {
  if (!headers::are_stashed() || !short_persistent::are_any() || requests == nullptr) return MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (const int code = short_persistent::promote(requests[i]); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int start(MPI_Request* request) {
  start_deferred();
  const headers::Posting posting([&] { return request == nullptr || *request == MPI_REQUEST_NULL; });
  if (const int code = promote_short(1, request); code != MPI_SUCCESS) return code;
  transfer::Batch batch;
  Pending* pending = are_none() || request == nullptr ? nullptr : begin_to_start(*request, batch);
  if (pending == nullptr) return start_by_library(request);
  const int code = pending->started(batch.run());
  if (code == MPI_SUCCESS) return start_begun(pending, request);
  pending->stop();
  return pending->raise(code);
}

/// Is the request a mistake for which the library starts none of a list? Requests that are not ours the library alone
/// can judge.
bool is_mistake(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL) return true;
  const Pending* const pending = find(request);
  return pending != nullptr && !pending->is_persistent;
}

/// Stops all of ours: the call has started none of these requests.
void stop_all(int count, const MPI_Request* requests) noexcept {
  for (int i = 0; i < count; ++i) {
    if (Pending* pending = persistent_of(requests[i])) pending->stop();
  }
}

/// Packs for all requests that are ours. MPI_SUCCESS, or an error that has been raised. `any`: is any request ours?
int pack_all(int count, const MPI_Request* requests, bool& any) noexcept {
  transfer::Batch batch;
  for (int i = 0; i < count; ++i) {
    if (begin_to_start(requests[i], batch) != nullptr) any = true;
  }
  const transfer::Result result = batch.run();
  for (int i = 0; any && i < count; ++i) {
    Pending* pending = persistent_of(requests[i]);
    const int code = pending != nullptr ? pending->started(result) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) continue;
    stop_all(count, requests);
    return pending->raise(code);
  }
  return MPI_SUCCESS;
}

// Where packing fails, no request is started.
[[gnu::noinline]] int start_all_slowly(int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (is_mistake(requests[i])) return native.Startall(count, requests);
  }
  bool any = false;
  if (const int code = pack_all(count, requests, any); code != MPI_SUCCESS) return code;
  if (!any) return start_all_by_library(count, requests);
  for (int i = 0; i < count; ++i) {
    Pending* pending = persistent_of(requests[i]);
    const int code = pending != nullptr ? start_begun(pending, &requests[i]) : start_by_library(&requests[i]);
    if (code == MPI_SUCCESS) continue;
    stop_all(count - i, requests + i);
    return code;
  }
  return MPI_SUCCESS;
}

int start_all(int count, MPI_Request* requests) {
  start_deferred();
  const headers::Posting posting([&] {
    return requests == nullptr || count < 0 || std::count(requests, requests + count, MPI_REQUEST_NULL) != 0;
  });
  if (const int code = promote_short(count, requests); code != MPI_SUCCESS) return code;
  if (are_none() || requests == nullptr) return start_all_by_library(count, requests);
  return start_all_slowly(count, requests);
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

// Persistent requests. The program's handle is the library's own persistent request on a packed buffer that lives as
// long as the request: each start packs into it what the memory then holds, each completion unpacks what came.
#include "mpi/requests/outstanding.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace requests {
namespace {

Pending* persistent_of(MPI_Request handle) noexcept {
  Pending* pending = find(handle);
  return pending != nullptr && pending->is_persistent ? pending : nullptr;
}

/// Packs what a persistent request of ours sends. MPI_SUCCESS, or an error that has been raised.
int pack(Pending& pending) noexcept {
  const int code = pending.start();
  return code == MPI_SUCCESS ? code : pending.raise(code);
}

// Open MPI gives the program another handle where it still uses the last one's request for what was sent with it.
int start_packed(Pending* pending, MPI_Request* request) noexcept {
  remove(pending);
  const int code = native.Start(request);
  add(pending, *request);
  return code;
}

int start(MPI_Request* request) {
  Pending* pending = are_none() || request == nullptr ? nullptr : persistent_of(*request);
  if (pending == nullptr) return native.Start(request);
  const int code = pack(*pending);
  return code == MPI_SUCCESS ? start_packed(pending, request) : code;
}

// Where packing fails none is started.
[[gnu::noinline]] int start_all_slowly(int count, MPI_Request* requests) {
  bool any = false;
  for (int i = 0; i < count; ++i) {
    Pending* pending = persistent_of(requests[i]);
    if (pending == nullptr) continue;
    any = true;
    if (const int code = pack(*pending); code != MPI_SUCCESS) return code;
  }
  if (!any) return native.Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    Pending* pending = persistent_of(requests[i]);
    const int code = pending != nullptr ? start_packed(pending, &requests[i]) : native.Start(&requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int start_all(int count, MPI_Request* requests) {
  return are_none() || requests == nullptr ? native.Startall(count, requests) : start_all_slowly(count, requests);
}

}  // namespace
}  // namespace requests

namespace entry {

const decltype(Native::Start) Start = requests::start;
const decltype(Native::Startall) Startall = requests::start_all;

}  // namespace entry
}  // namespace gapless::mpi

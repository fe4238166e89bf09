// The calls that complete requests. Each call lets the library complete its requests, errors included, and then ends
// what is pending for the requests that are ours: messages are unpacked, packed buffers let go.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "mpi/calls/tried/burst.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/requests/arrivals.hpp"
#include "mpi/requests/claims.hpp"
#include "mpi/requests/receives/looked_at.hpp"
#include "mpi/requests/receives/short_persistent.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace requests {
namespace {

// A call without a place for its result goes to the library, which refuses the call, before anything is claimed.

/// The error of a call that has completed nothing.
int no_memory() noexcept { return raise_without_object(MPI_ERR_NO_MEM); }

/// The end of a call whose library has answered with `code` and `completed` statuses; status k is of request
/// index_of(k).
template <class IndexOf>
int complete_several(Claims& claims, Statuses& statuses, int completed, int code, IndexOf index_of) noexcept {
  const bool in_statuses = statuses.have_errors(code, completed);
  if (in_statuses || code == MPI_SUCCESS) claims.unpack(statuses, completed, in_statuses, index_of);
  int first_of_ours = MPI_SUCCESS;
  for (int k = 0; k < completed; ++k) {
    if (!claims.is_ours(index_of(k))) {
      statuses.of(k).deliver();
      continue;
    }
    ReceivedStatus status = statuses.of(k);
    const int library_says = in_statuses ? statuses.error_of(k) : code;
    const int result = claims.complete(index_of(k), library_says, status);
    if (result == library_says) continue;
    if (first_of_ours == MPI_SUCCESS && !in_statuses) {
      for (int other = 0; other < completed; ++other) statuses.set_error(other, MPI_SUCCESS);
    }
    if (first_of_ours == MPI_SUCCESS || first_of_ours == raised_already) first_of_ours = result;
    statuses.set_error(k, result);
  }
  if (first_of_ours == MPI_SUCCESS || in_statuses) return code;
  return first_of_ours == raised_already ? MPI_ERR_IN_STATUS : claims.raise(MPI_ERR_IN_STATUS);
}

[[gnu::noinline]] int wait_slowly(MPI_Request* request, MPI_Status* wanted) {
  Claims claims(request);
  if (!claims.are_any()) return native.Wait(request, wanted);
  ReceivedStatus status(wanted);
  const int code = native.Wait(request, status.get());
  return claims.raised(code, claims.complete(0, code, status));
}

[[gnu::noinline]] int test_slowly(MPI_Request* request, int* flag, MPI_Status* wanted) {
  if (flag == nullptr) return native.Test(request, flag, wanted);
  Claims claims(request);
  if (!claims.are_any()) return native.Test(request, flag, wanted);
  *flag = 0;
  if (claims.are_under_way()) return MPI_SUCCESS;
  ReceivedStatus status(wanted);
  const int code = native.Test(request, flag, status.get());
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return claims.raised(code, claims.complete(0, code, status));
}

[[gnu::noinline]] int wait_all_slowly(int count, MPI_Request* requests, MPI_Status* wanted) {
  looked_at::InPlace in_place;
  Claims claims(count, requests, looked_at::are_any() ? &in_place : nullptr);
  if (!claims.have_memory()) return no_memory();
  if (!claims.are_any() && !in_place.are_any()) return native.Waitall(count, requests, wanted);
  Statuses statuses(count, wanted);
  if (!statuses.have_memory()) return no_memory();
  in_place.hold();
  const int code = wait_for_arrivals(claims, statuses, count, requests);
  // Before any send is waited for: the send's receiver may wait for messages that are fetched here.
  in_place.end(requests, statuses.get());
  return in_place.add_errors(wanted, count, complete_several(claims, statuses, count, code, [](int k) { return k; }));
}

[[gnu::noinline]] int test_all_slowly(int count, MPI_Request* requests, int* flag, MPI_Status* wanted) {
  if (flag == nullptr) return native.Testall(count, requests, flag, wanted);
  Claims claims(count, requests);
  if (!claims.have_memory()) return no_memory();
  if (!claims.are_any()) return native.Testall(count, requests, flag, wanted);
  Statuses statuses(count, wanted);
  if (!statuses.have_memory()) return no_memory();
  *flag = 0;
  if (claims.are_under_way()) return MPI_SUCCESS;
  const int code = native.Testall(count, requests, flag, statuses.get());
  if (code == MPI_SUCCESS && *flag == 0 && !statuses.have_errors(code, count)) return code;
  return complete_several(claims, statuses, count, code, [](int k) { return k; });
}

/// MPI_Waitany. The library does not know of headers that are under way, so beside these it is asked again and again.
int wait_for_any(Claims& claims, int count, MPI_Request* requests, int* index, ReceivedStatus& status) noexcept {
  for (;;) {
    const bool waits_here = claims.await_headers();
    *index = claims.settled();
    if (*index != MPI_UNDEFINED) return native.Wait(&requests[*index], status.get());
    if (!waits_here) return native.Waitany(count, requests, index, status.get());
    int flag = 0;
    const int code = native.Testany(count, requests, index, &flag, status.get());
    if (code != MPI_SUCCESS || *index != MPI_UNDEFINED) return code;
    ::sched_yield();
  }
}

[[gnu::noinline]] int wait_any_slowly(int count, MPI_Request* requests, int* index, MPI_Status* wanted) {
  if (index == nullptr) return native.Waitany(count, requests, index, wanted);
  Claims claims(count, requests);
  if (!claims.have_memory()) return no_memory();
  if (!claims.are_any()) return native.Waitany(count, requests, index, wanted);
  claims.complete_alone();
  ReceivedStatus status(wanted);
  const int code = wait_for_any(claims, count, requests, index, status);
  if (*index == MPI_UNDEFINED) {
    status.deliver();
    return code;
  }
  return claims.raised(code, claims.complete(*index, code, status));
}

[[gnu::noinline]] int test_any_slowly(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* wanted) {
  if (index == nullptr || flag == nullptr) return native.Testany(count, requests, index, flag, wanted);
  Claims claims(count, requests);
  if (!claims.have_memory()) return no_memory();
  if (!claims.are_any()) return native.Testany(count, requests, index, flag, wanted);
  claims.complete_alone();
  ReceivedStatus status(wanted);
  const bool are_under_way = claims.await_headers();
  *index = claims.settled();
  const int code = *index != MPI_UNDEFINED ? native.Test(&requests[*index], flag, status.get())
                                           : native.Testany(count, requests, index, flag, status.get());
  if (*index == MPI_UNDEFINED) {
    if (are_under_way) *flag = 0;
    status.deliver();
    return code;
  }
  return claims.raised(code, claims.complete(*index, code, status));
}

template <auto function>
[[gnu::noinline]] int complete_some_slowly(int count, MPI_Request* requests, int* completed, int* indices,
                                           MPI_Status* wanted) {
  if (completed == nullptr || indices == nullptr)
    return (native.*function)(count, requests, completed, indices, wanted);
  Claims claims(count, requests);
  if (!claims.have_memory()) return no_memory();
  if (!claims.are_any()) return (native.*function)(count, requests, completed, indices, wanted);
  Statuses statuses(count, wanted);
  if (!statuses.have_memory()) return no_memory();
  claims.complete_alone();
  for (;;) {
    *completed = 0;
    const bool are_under_way = claims.await_headers();
    if (const int settled = claims.settled(); settled != MPI_UNDEFINED) {
      indices[0] = settled;
      *completed = 1;
      const int settled_code = native.Wait(&requests[settled], statuses.get());
      return complete_several(claims, statuses, 1, settled_code, [settled](int) { return settled; });
    }
    // The library does not know of headers that are under way, and waits for none.
    const auto complete = are_under_way ? native.Testsome : native.*function;
    const int code = complete(count, requests, completed, indices, statuses.get());
    if (*completed == MPI_UNDEFINED && are_under_way) *completed = 0;
    const int number = *completed == MPI_UNDEFINED ? 0 : *completed;
    const bool waits = are_under_way && function == &Native::Waitsome;
    if (!waits || number != 0 || code != MPI_SUCCESS)
      return complete_several(claims, statuses, number, code, [indices](int k) { return indices[k]; });
    ::sched_yield();
  }
}

[[gnu::noinline]] int get_status_slowly(MPI_Request request, int* flag, MPI_Status* wanted) {
  if (flag == nullptr) return native.Request_get_status(request, flag, wanted);
  Claims claims(Claims::Look{}, 1, &request);
  if (claims.are_busy()) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  if (!claims.are_any()) return native.Request_get_status(request, flag, wanted);
  claims.complete_alone();
  *flag = 0;
  if (claims.await_headers()) return MPI_SUCCESS;
  ReceivedStatus status(wanted);
  const int code = native.Request_get_status(request, flag, status.get());
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return claims.raised(code, claims.look(0, code, status));
}

#if GAPLESS_DECLARED_Request_get_status_all
template <class IndexOf>
int look_at_several(Claims& claims, Statuses& statuses, int completed, int code, IndexOf index_of) noexcept {
  int first = code;
  for (int k = 0; k < completed; ++k) {
    ReceivedStatus status = statuses.of(k);
    const int result = claims.look(index_of(k), code, status);
    if (first == code) first = claims.raised(code, result);
  }
  return first;
}

/// A copy of the requests of a call that must not change them, for Claims, which changes its list.
class Copy {
 public:
  Copy(int count, const MPI_Request* requests) noexcept
      : count_(are_none() || requests == nullptr ? 0 : std::max(count, 0)), copy_(count_) {
    if (is_there()) std::copy_n(requests, count_, copy_.data());
  }
  bool is_there() const noexcept { return copy_.is_there(); }
  int count() const noexcept { return count_; }
  MPI_Request* data() noexcept { return copy_.data(); }

 private:
  int count_;
  Scratch<MPI_Request> copy_;
};

int get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* wanted) {
  Copy copy(count, requests);
  Claims claims(Claims::Look{}, copy.count(), copy.data());
  if (!copy.is_there() || !claims.have_memory()) return no_memory();
  if (flag != nullptr && claims.are_busy()) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  if (!claims.are_any() || flag == nullptr) return native.Request_get_status_all(count, requests, flag, wanted);
  Statuses statuses(count, wanted);
  if (!statuses.have_memory()) return no_memory();
  claims.complete_alone();
  *flag = 0;
  if (claims.await_headers()) return MPI_SUCCESS;
  const int code = native.Request_get_status_all(count, copy.data(), flag, statuses.get());
  return look_at_several(claims, statuses, code == MPI_SUCCESS && *flag != 0 ? count : 0, code,
                         [](int k) { return k; });
}

int get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* wanted) {
  Copy copy(count, requests);
  Claims claims(Claims::Look{}, copy.count(), copy.data());
  if (!copy.is_there() || !claims.have_memory()) return no_memory();
  const bool are_ours = claims.are_any() || claims.are_busy();
  if (!are_ours || index == nullptr || flag == nullptr)
    return native.Request_get_status_any(count, requests, index, flag, wanted);
  claims.complete_alone();
  ReceivedStatus status(wanted);
  const bool are_under_way = claims.are_busy() || claims.await_headers();
  *index = claims.settled();
  const int code = *index != MPI_UNDEFINED
                       ? native.Request_get_status(copy.data()[*index], flag, status.get())
                       : native.Request_get_status_any(count, copy.data(), index, flag, status.get());
  if (*index == MPI_UNDEFINED) {
    if (are_under_way) *flag = 0;
    status.deliver();
    return code;
  }
  return claims.raised(code, claims.look(*index, code, status));
}

int get_status_some(int count, const MPI_Request* requests, int* completed, int* indices, MPI_Status* wanted) {
  Copy copy(count, requests);
  Claims claims(Claims::Look{}, copy.count(), copy.data());
  if (!copy.is_there() || !claims.have_memory()) return no_memory();
  const bool are_ours = claims.are_any() || claims.are_busy();
  if (!are_ours || completed == nullptr || indices == nullptr)
    return native.Request_get_status_some(count, requests, completed, indices, wanted);
  Statuses statuses(count, wanted);
  if (!statuses.have_memory()) return no_memory();
  claims.complete_alone();
  *completed = 0;
  const bool are_under_way = claims.are_busy() || claims.await_headers();
  if (const int settled = claims.settled(); settled != MPI_UNDEFINED) {
    int flag = 0;
    indices[0] = settled;
    *completed = 1;
    const int settled_code = native.Request_get_status(copy.data()[settled], &flag, statuses.get());
    return look_at_several(claims, statuses, 1, settled_code, [settled](int) { return settled; });
  }
  const int code = native.Request_get_status_some(count, copy.data(), completed, indices, statuses.get());
  if (*completed == MPI_UNDEFINED && are_under_way) *completed = 0;
  const int number = *completed == MPI_UNDEFINED ? 0 : *completed;
  return look_at_several(claims, statuses, number, code, [indices](int k) { return indices[k]; });
}
#endif

/// The receive of a request that needs a look alone (mpi/requests/receives/looked_at.hpp); null for any other request.
looked_at::Receive* look_at(const MPI_Request* request) noexcept {
  return looked_at::are_any() && request != nullptr ? looked_at::find(*request) : nullptr;
}

/// The entry point of a call that may complete some requests of a burst.
template <auto function>
struct InBurst;
template <class... Arguments, int (*function)(Arguments...)>
struct InBurst<function> {
  static int call(Arguments... arguments) {
    if (!burst::is_open()) [[likely]]
      return function(arguments...);
    const int code = function(arguments...);
    burst::note_completing(code);
    return code;
  }
};

// Entry points: while nothing is outstanding, three loads and a jump. A request that completes may be the library's
// own, whose memory the program may then free: start_deferred() forgets locations in any case.

int wait(MPI_Request* request, MPI_Status* status) {
  start_deferred();
  if (are_none()) return native.Wait(request, status);
  if (looked_at::Receive* receive = look_at(request)) return looked_at::wait(*receive, request, status);
  return wait_slowly(request, status);
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  start_deferred();
  if (are_none()) return native.Test(request, flag, status);
  if (looked_at::Receive* receive = look_at(request)) return looked_at::test(*receive, request, flag, status);
  return test_slowly(request, flag, status);
}

int wait_for_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  start_deferred();
  if (are_none()) return native.Waitall(count, requests, statuses);
  if (looked_at::can_serve(count, requests)) return looked_at::wait_all(count, requests, statuses);
  return wait_all_slowly(count, requests, statuses);
}

int wait_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!burst::is_open()) [[likely]]
    return wait_for_all(count, requests, statuses);
  const int code = wait_for_all(count, requests, statuses);
  burst::end(count, code);
  return code;
}

int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  start_deferred();
  if (are_none()) return native.Testall(count, requests, flag, statuses);
  if (looked_at::can_serve(count, requests)) return looked_at::test_all(count, requests, flag, statuses);
  return test_all_slowly(count, requests, flag, statuses);
}

int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  start_deferred();
  if (are_none()) return native.Waitany(count, requests, index, status);
  if (looked_at::can_serve(count, requests)) return looked_at::wait_any(count, requests, index, status);
  return wait_any_slowly(count, requests, index, status);
}

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  start_deferred();
  if (are_none()) return native.Testany(count, requests, index, flag, status);
  if (looked_at::can_serve(count, requests)) return looked_at::test_any(count, requests, index, flag, status);
  return test_any_slowly(count, requests, index, flag, status);
}

template <auto function, auto looked_at_function>
int complete_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  start_deferred();
  if (are_none()) return (native.*function)(count, requests, completed, indices, statuses);
  if (looked_at::can_serve(count, requests)) return looked_at_function(count, requests, completed, indices, statuses);
  return complete_some_slowly<function>(count, requests, completed, indices, statuses);
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  start_deferred();
  return are_none() ? native.Request_get_status(request, flag, status) : get_status_slowly(request, flag, status);
}

}  // namespace
}  // namespace requests

namespace entry {

const decltype(Native::Wait) Wait = requests::InBurst<requests::wait>::call;
const decltype(Native::Test) Test = requests::InBurst<requests::test>::call;
const decltype(Native::Waitall) Waitall = requests::wait_all;
const decltype(Native::Testall) Testall = requests::InBurst<requests::test_all>::call;
const decltype(Native::Waitany) Waitany = requests::InBurst<requests::wait_any>::call;
const decltype(Native::Testany) Testany = requests::InBurst<requests::test_any>::call;
const decltype(Native::Waitsome) Waitsome =
    requests::InBurst<requests::complete_some<&Native::Waitsome, requests::looked_at::wait_some>>::call;
const decltype(Native::Testsome) Testsome =
    requests::InBurst<requests::complete_some<&Native::Testsome, requests::looked_at::test_some>>::call;
const decltype(Native::Request_get_status) Request_get_status = requests::get_status;
#if GAPLESS_DECLARED_Request_get_status_all
const decltype(Native::Request_get_status_all) Request_get_status_all = requests::get_status_all;
const decltype(Native::Request_get_status_any) Request_get_status_any = requests::get_status_any;
const decltype(Native::Request_get_status_some) Request_get_status_some = requests::get_status_some;
#endif

}  // namespace entry
}  // namespace gapless::mpi

// What a program asks requests without completing them, and taking them back.
#include <vector>

#include "endpoints/calls/involved.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {

int Request_get_status(MPI_Request handle, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    const Request* const request = requests::find(handle);
    if (request == nullptr) return look_at_others(flag, inner.Request_get_status(handle, flag, status));
    if (request->task == nullptr) return raise_without_object(MPI_ERR_REQUEST);
    if (request->is_active && !request->is_done()) progress(*request->endpoint);
    *flag = !request->is_active || request->is_done() ? 1 : 0;
    if (*flag == 0) return MPI_SUCCESS;
    request->is_active ? set_status(status, *request->task) : set_empty(status);
    return MPI_SUCCESS;
  });
}

#if GAPLESS_DECLARED_Request_get_status_all
namespace {

/// The array as the library is to see it: nothing in it changes.
int ask_library(Involved& involved, int count, const MPI_Request* requests, auto call) {
  std::vector<MPI_Request> all(requests, requests + count);
  return involved.ask_library(all.data(), call);
}

void tell(const Involved::Ours& one, MPI_Status* status) noexcept {
  one.is_active() ? set_status(status, *one.request->task) : set_empty(status);
}

}  // namespace

int Request_get_status_all(int count, const MPI_Request requests[], int* flag, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) return look_at_others(flag, inner.Request_get_status_all(count, requests, flag, statuses));
    involved.drive();
    *flag = 0;
    if (!involved.are_done()) return MPI_SUCCESS;
    int code = MPI_SUCCESS;
    if (involved.has_others()) {
      code = ask_library(involved, count, requests,
                         [&](MPI_Request* all) { return inner.Request_get_status_all(count, all, flag, statuses); });
      if (*flag == 0) return look_at_others(flag, code);
    } else {
      involved.set_empty_statuses(statuses);
      *flag = 1;
    }
    for (const auto& one : involved.all()) tell(one, at(statuses, one.place));
    return code;
  });
}

int Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any())
      return look_at_others(flag, inner.Request_get_status_any(count, requests, index, flag, status));
    involved.drive();
    for (const auto& one : involved.all()) {
      if (!one.is_active() || !one.is_done()) continue;
      *index = one.place;
      *flag = 1;
      tell(one, status);
      return MPI_SUCCESS;
    }
    *index = MPI_UNDEFINED;
    *flag = involved.any_active() ? 0 : 1;
    if (!involved.has_others()) {
      if (*flag != 0) set_empty(status);
      return MPI_SUCCESS;
    }
    const bool are_active = involved.any_active();
    const int code = ask_library(involved, count, requests, [&](MPI_Request* all) {
      return inner.Request_get_status_any(count, all, index, flag, status);
    });
    if (*index == MPI_UNDEFINED && are_active) *flag = 0;
    return code;
  });
}

int Request_get_status_some(int count, const MPI_Request requests[], int* completed, int* indices,
                            MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any())
      return look_at_others(completed, inner.Request_get_status_some(count, requests, completed, indices, statuses));
    involved.drive();
    int some = involved.any_active() ? 0 : MPI_UNDEFINED;
    int code = MPI_SUCCESS;
    if (involved.has_others()) {
      code = ask_library(involved, count, requests, [&](MPI_Request* all) {
        return inner.Request_get_status_some(count, all, &some, indices, statuses);
      });
      if (some == MPI_UNDEFINED && involved.any_active()) some = 0;
    }
    for (const auto& one : involved.all()) {
      if (!one.is_active() || !one.is_done()) continue;
      some = how_many(some);
      indices[some] = one.place;
      tell(one, at(statuses, some++));
    }
    *completed = some;
    return code;
  });
}
#endif

int Cancel(MPI_Request* handle) {
  return guarded([&]() -> int {
    const Request* const request = handle == nullptr ? nullptr : requests::find(*handle);
    if (request == nullptr) return inner.Cancel(handle);
    if (request->task == nullptr) return raise_without_object(MPI_ERR_REQUEST);
    request->task->cancel();
    return MPI_SUCCESS;
  });
}

}  // namespace gapless::mpi::endpoints::calls

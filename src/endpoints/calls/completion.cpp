// Calls that complete requests, those of endpoints and all others.
//
// Those of endpoints are completed here, once their endpoints have been driven that far.
#include <algorithm>

#include "endpoints/calls/involved.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

/// Completed requests of endpoints; the first failure is raised when all are.
class Finished {
 public:
  Finished() = default;
  ~Finished() { let_go(); }
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;

  /// Ends the request, or the activity of a persistent one.
  int add(Request& request, MPI_Request* handle, MPI_Status* status) {
    if (!request.is_active) {
      set_empty(status);
      return MPI_SUCCESS;
    }
    set_status(status, *request.task);
    const int code = request.task->code;
    if (code != MPI_SUCCESS && endpoint_ == nullptr) {
      endpoint_ = share(*request.endpoint);
      code_ = code;
    }
    if (request.is_persistent) {
      request.is_active = false;
    } else {
      *handle = MPI_REQUEST_NULL;
      if (request.endpoint != last_) let_go();
      last_ = requests::release_alone(request);
      ++released_;
    }
    return code;
  }
  /// Of a call that completes at most one request: the failure's own code.
  int raise_one() const { return endpoint_ == nullptr ? MPI_SUCCESS : raise(*endpoint_, code_); }
  int raise_in_status() const { return endpoint_ == nullptr ? MPI_SUCCESS : raise(*endpoint_, MPI_ERR_IN_STATUS); }

 private:
  /// The requests of one endpoint mostly stand together, and let it go together.
  void let_go() noexcept {
    if (last_ != nullptr) last_->let_go(released_);
    last_ = nullptr;
    released_ = 0;
  }

  std::shared_ptr<Endpoint> endpoint_;
  int code_ = MPI_SUCCESS;
  Endpoint* last_ = nullptr;
  int released_ = 0;  ///< requests that still keep it
};

/// Statuses tell of errors only where one of them has one.
void note_error(MPI_Status* statuses, int place, int code) noexcept {
  if (statuses != MPI_STATUSES_IGNORE) statuses[place].MPI_ERROR = code;
}

int finish_all(int code, const Involved& involved, int count, MPI_Request* requests, MPI_Status* statuses) {
  Finished finished;
  const bool are_told = code == MPI_ERR_IN_STATUS;
  const bool fails = std::any_of(involved.all().begin(), involved.all().end(), [](const auto& one) {
    return one.is_active() && one.request->task->code != MPI_SUCCESS;
  });
  if (fails && !are_told) {
    for (int i = 0; i < count; ++i) note_error(statuses, i, MPI_SUCCESS);
  }
  for (const auto& one : involved.all()) {
    const int of_one = finished.add(*one.request, requests + one.place, at(statuses, one.place));
    if (fails || are_told) note_error(statuses, one.place, of_one);
  }
  return fails ? finished.raise_in_status() : code;
}

int wait_for_one(MPI_Request* handle, Request& request, MPI_Status* status) {
  if (request.is_active && request.endpoint != nullptr)
    drive_until(*request.endpoint, [&] { return request.is_done(); });
  Finished finished;
  finished.add(request, handle, status);
  return finished.raise_one();
}

}  // namespace

int Wait(MPI_Request* handle, MPI_Status* status) {
  return guarded([&]() -> int {
    Request* const request = handle == nullptr ? nullptr : requests::find(*handle);
    if (request == nullptr) {
      const InLibrary meanwhile;
      return inner.Wait(handle, status);
    }
    return request->task == nullptr ? raise_without_object(MPI_ERR_REQUEST) : wait_for_one(handle, *request, status);
  });
}

int Test(MPI_Request* handle, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    Request* const request = handle == nullptr ? nullptr : requests::find(*handle);
    if (request == nullptr) return look_at_others(flag, inner.Test(handle, flag, status));
    if (request->task == nullptr) return raise_without_object(MPI_ERR_REQUEST);
    if (request->is_active && !request->is_done()) progress(*request->endpoint);
    *flag = !request->is_active || request->is_done() ? 1 : 0;
    return *flag != 0 ? wait_for_one(handle, *request, status) : MPI_SUCCESS;
  });
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    involved.wait();
    int code = MPI_SUCCESS;
    if (involved.has_others() || !involved.any()) {
      code = involved.ask_library(requests, [&](MPI_Request* all) { return inner.Waitall(count, all, statuses); });
    } else {
      involved.set_empty_statuses(statuses);
    }
    return involved.any() ? finish_all(code, involved, count, requests, statuses) : code;
  });
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.are_done()) involved.drive();
    *flag = 0;
    if (!involved.are_done()) return MPI_SUCCESS;
    int code = MPI_SUCCESS;
    if (involved.has_others() || !involved.any()) {
      code =
          involved.ask_library(requests, [&](MPI_Request* all) { return inner.Testall(count, all, flag, statuses); });
      if (*flag == 0) return look_at_others(flag, code);
    } else {
      involved.set_empty_statuses(statuses);
      *flag = 1;
    }
    return involved.any() ? finish_all(code, involved, count, requests, statuses) : code;
  });
}

namespace {

/// One look for a request that is complete. True if there is one, or none that could be.
bool look_for_any(Involved& involved, int count, MPI_Request* requests, int* index, MPI_Status* status, int& code) {
  for (const auto& one : involved.all()) {
    if (!one.is_active() || !one.is_done()) continue;
    Finished finished;
    *index = one.place;
    finished.add(*one.request, requests + one.place, status);
    code = finished.raise_one();
    return true;
  }
  if (involved.any_active() && !involved.has_others()) return false;
  int flag = 0;
  code =
      involved.ask_library(requests, [&](MPI_Request* all) { return inner.Testany(count, all, index, &flag, status); });
  const bool none_is_active = flag != 0 && *index == MPI_UNDEFINED;
  return code != MPI_SUCCESS || (flag != 0 && !(none_is_active && involved.any_active()));
}

}  // namespace

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) {
      const InLibrary meanwhile;
      return inner.Waitany(count, requests, index, status);
    }
    int code = MPI_SUCCESS;
    involved.wait_until([&] { return look_for_any(involved, count, requests, index, status, code); });
    return code;
  });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) return look_at_others(flag, inner.Testany(count, requests, index, flag, status));
    involved.drive();
    int code = MPI_SUCCESS;
    *flag = look_for_any(involved, count, requests, index, status, code) ? 1 : 0;
    if (*flag == 0) *index = MPI_UNDEFINED;
    return code;
  });
}

namespace {

/// One look for requests that are complete. True if there are any, or none that could be.
bool look_for_some(Involved& involved, int count, MPI_Request* requests, int* completed, int* indices,
                   MPI_Status* statuses, int& code) {
  int some = 0;
  code = MPI_SUCCESS;
  if (involved.has_others() || !involved.any_active()) {
    code = involved.ask_library(requests,
                                [&](MPI_Request* all) { return inner.Testsome(count, all, &some, indices, statuses); });
    if (some == MPI_UNDEFINED && !involved.any_active()) {
      *completed = MPI_UNDEFINED;
      return true;
    }
    some = how_many(some);
  }
  const int of_library = some;
  const bool are_told = code == MPI_ERR_IN_STATUS;
  Finished finished;
  bool fails = false;
  for (const auto& one : involved.all()) {
    if (!one.is_active() || !one.is_done()) continue;
    indices[some] = one.place;
    const int of_one = finished.add(*one.request, requests + one.place, at(statuses, some));
    note_error(statuses, some++, of_one);
    fails = fails || of_one != MPI_SUCCESS;
  }
  if (fails && !are_told) {
    for (int i = 0; i < of_library; ++i) note_error(statuses, i, MPI_SUCCESS);
  }
  *completed = some;
  if (fails) code = finished.raise_in_status();
  return some > 0 || code != MPI_SUCCESS;
}

}  // namespace

int Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) {
      const InLibrary meanwhile;
      return inner.Waitsome(count, requests, completed, indices, statuses);
    }
    int code = MPI_SUCCESS;
    involved.wait_until([&] { return look_for_some(involved, count, requests, completed, indices, statuses, code); });
    return code;
  });
}

int Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any())
      return look_at_others(completed, inner.Testsome(count, requests, completed, indices, statuses));
    involved.drive();
    int code = MPI_SUCCESS;
    look_for_some(involved, count, requests, completed, indices, statuses, code);
    return code;
  });
}

}  // namespace gapless::mpi::endpoints::calls

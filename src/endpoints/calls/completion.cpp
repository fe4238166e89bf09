// Calls that complete requests and messages, for those of endpoints and all others.
//
// Those of endpoints are completed here, once their endpoints have been driven that far. The library gets the array
// with null requests in their places, if there are others at all.
#include <algorithm>
#include <functional>

#include "endpoints/calls/calls.hpp"
#include "endpoints/delivery/messages.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/delivery/requests.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/static_world.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

using requests::Request;

void set_empty(MPI_Status* status) noexcept { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }

MPI_Status* at(MPI_Status* statuses, int place) noexcept {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + place;
}

/// MPI_UNDEFINED, where all requests are null or inactive, is none.
int how_many(int completed) noexcept { return completed > 0 ? completed : 0; }

/// Those of a call's requests that are of endpoints, and what the library is to see.
class Involved {
 public:
  Involved(int count, const MPI_Request* requests) : count_(count), ours_(scratch().ours), others_(scratch().others) {
    ours_.clear();
    scratch().endpoints.clear();
    if (requests::are_none() || requests == nullptr) return;
    for (int i = 0; i < count; ++i) look_at(i, requests[i]);
  }

  struct Ours {
    int place;
    Request* request;

    bool is_active() const noexcept { return request->is_active; }
    bool is_done() const noexcept { return !is_active() || request->is_done(); }
  };
  const std::vector<Ours>& all() const noexcept { return ours_; }
  bool any() const noexcept { return !ours_.empty(); }
  bool any_active() const noexcept { return std::any_of(ours_.begin(), ours_.end(), std::mem_fn(&Ours::is_active)); }
  bool has_others() const noexcept { return has_others_; }
  /// A handle that stands for nothing (any more).
  bool is_mistaken() const noexcept { return is_mistaken_; }

  void drive() const {
    for (Endpoint* endpoint : scratch().endpoints) progress(*endpoint);
  }
  bool are_done() const noexcept { return std::all_of(ours_.begin(), ours_.end(), std::mem_fn(&Ours::is_done)); }
  void wait() const {
    std::size_t done = 0;
    for (Patience patience;; patience.wait()) {
      while (done < ours_.size() && ours_[done].is_done()) ++done;
      if (done == ours_.size()) return;
      drive();
    }
  }
  /// The library's part, as `call(requests)`; what became of them is the program's.
  template <class Call>
  int ask_library(MPI_Request* requests, Call call) {
    const InLibrary meanwhile;
    if (ours_.empty()) return call(requests);
    others_.assign(requests, requests + count_);
    for (const Ours& one : ours_) others_[static_cast<std::size_t>(one.place)] = MPI_REQUEST_NULL;
    const int code = call(others_.data());
    std::size_t next = 0;
    for (int i = 0; i < count_; ++i) {
      if (next < ours_.size() && ours_[next].place == i) {
        ++next;
      } else {
        requests[i] = others_[static_cast<std::size_t>(i)];
      }
    }
    return code;
  }
  /// Only nulls are left for the library, and it need not be asked what their statuses are.
  void set_empty_statuses(MPI_Status* statuses) const noexcept {
    if (statuses == MPI_STATUSES_IGNORE || static_cast<int>(ours_.size()) == count_) return;
    for (int i = 0; i < count_; ++i) set_empty(statuses + i);
  }

 private:
  void look_at(int place, MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL) return;
    Request* const request = requests::find(handle);
    has_others_ = has_others_ || request == nullptr;
    if (request == nullptr) return;
    is_mistaken_ = is_mistaken_ || request->task == nullptr;
    if (request->task == nullptr) return;
    ours_.push_back({place, request});
    auto& endpoints = scratch().endpoints;
    Endpoint* const endpoint = request->endpoint.get();
    if (endpoint != nullptr && std::find(endpoints.rbegin(), endpoints.rend(), endpoint) == endpoints.rend())
      endpoints.push_back(endpoint);
  }

  /// Kept by the thread, so that a call costs no allocation.
  struct Scratch {
    std::vector<Ours> ours;
    std::vector<MPI_Request> others;
    std::vector<Endpoint*> endpoints;
  };
  static Scratch& scratch() {
    static thread_local Scratch one;
    return one;
  }
  int count_;
  std::vector<Ours>& ours_;
  std::vector<MPI_Request>& others_;
  bool has_others_ = false;
  bool is_mistaken_ = false;
};

/// Completed requests of endpoints; the first failure is raised when all are.
class Finished {
 public:
  /// Ends the request, or the activity of a persistent one.
  int add(Request& request, MPI_Request* handle, MPI_Status* status) {
    if (!request.is_active) {
      set_empty(status);
      return MPI_SUCCESS;
    }
    set_status(status, *request.task);
    const int code = request.task->code;
    if (code != MPI_SUCCESS && endpoint_ == nullptr) {
      endpoint_ = request.endpoint;
      code_ = code;
    }
    if (request.is_persistent) {
      request.is_active = false;
    } else {
      *handle = MPI_REQUEST_NULL;
      requests::release(request);
    }
    return code;
  }
  /// Of a call that completes at most one request: the failure's own code.
  int raise_one() const { return endpoint_ == nullptr ? MPI_SUCCESS : raise(*endpoint_, code_); }
  int raise_in_status() const { return endpoint_ == nullptr ? MPI_SUCCESS : raise(*endpoint_, MPI_ERR_IN_STATUS); }

 private:
  std::shared_ptr<Endpoint> endpoint_;
  int code_ = MPI_SUCCESS;
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
    if (request == nullptr) return inner.Test(handle, flag, status);
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
      if (*flag == 0) return code;
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
    for (Patience patience; !look_for_any(involved, count, requests, index, status, code); patience.wait())
      involved.drive();
    return code;
  });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) return inner.Testany(count, requests, index, flag, status);
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
    for (Patience patience; !look_for_some(involved, count, requests, completed, indices, statuses, code);
         patience.wait())
      involved.drive();
    return code;
  });
}

int Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return guarded([&]() -> int {
    Involved involved(count, requests);
    if (involved.is_mistaken()) return raise_without_object(MPI_ERR_REQUEST);
    if (!involved.any()) return inner.Testsome(count, requests, completed, indices, statuses);
    involved.drive();
    int code = MPI_SUCCESS;
    look_for_some(involved, count, requests, completed, indices, statuses, code);
    return code;
  });
}

int Request_get_status(MPI_Request handle, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    const Request* const request = requests::find(handle);
    if (request == nullptr) return inner.Request_get_status(handle, flag, status);
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
    if (!involved.any()) return inner.Request_get_status_all(count, requests, flag, statuses);
    involved.drive();
    *flag = 0;
    if (!involved.are_done()) return MPI_SUCCESS;
    int code = MPI_SUCCESS;
    if (involved.has_others()) {
      code = ask_library(involved, count, requests,
                         [&](MPI_Request* all) { return inner.Request_get_status_all(count, all, flag, statuses); });
      if (*flag == 0) return code;
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
    if (!involved.any()) return inner.Request_get_status_any(count, requests, index, flag, status);
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
    if (!involved.any()) return inner.Request_get_status_some(count, requests, completed, indices, statuses);
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

namespace {

template <class Inner, class Count>
int receive_taken(Inner library, void* memory, Count count, MPI_Datatype datatype, MPI_Message* message,
                  MPI_Status* status) {
  return guarded([&]() -> int {
    messages::Taken taken = messages::take(message);
    if (taken.message == nullptr) {
      const InLibrary meanwhile;
      return library(memory, count, datatype, message, status);
    }
    Operation operation;
    operation.receives = true;
    int code = set_buffer(operation, *taken.endpoint, {memory, count, datatype});
    if (code != MPI_SUCCESS) return raise(*taken.endpoint, code);
    start_matched_receive(operation, *taken.message);
    drive_until_done(operation);
    set_status(status, operation);
    return raise(*taken.endpoint, operation.code);
  });
}

template <class Inner, class Count>
int start_taken(Inner library, void* memory, Count count, MPI_Datatype datatype, MPI_Message* message,
                MPI_Request* request) {
  return guarded([&]() -> int {
    messages::Taken taken = messages::take(message);
    if (taken.message == nullptr) return library(memory, count, datatype, message, request);
    Request* const made = requests::acquire(taken.endpoint);
    if (made == nullptr) return raise(*taken.endpoint, MPI_ERR_NO_MEM);
    Operation& operation = *made->operation;
    operation.receives = true;
    if (const int code = set_buffer(operation, *taken.endpoint, {memory, count, datatype}); code != MPI_SUCCESS) {
      requests::release(*made);
      return raise(*taken.endpoint, code);
    }
    *request = made->handle;
    start_matched_receive(operation, *taken.message);
    return MPI_SUCCESS;
  });
}

}  // namespace

int Mrecv(void* memory, int count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  return receive_taken(inner.Mrecv, memory, count, datatype, message, status);
}
int Imrecv(void* memory, int count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request) {
  return start_taken(inner.Imrecv, memory, count, datatype, message, request);
}
#if GAPLESS_DECLARED_Mrecv_c
int Mrecv_c(void* memory, MPI_Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  return receive_taken(inner.Mrecv_c, memory, count, datatype, message, status);
}
int Imrecv_c(void* memory, MPI_Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request) {
  return start_taken(inner.Imrecv_c, memory, count, datatype, message, request);
}
#endif

int Finalize() {
  if (endpoint_count() != static_endpoint_count()) {
    const int code = code_with_text(MPI_ERR_OTHER, "MPI_Finalize", "an endpoints communicator has not been freed");
    return raise_without_object(code);
  }
  free_static_world();
  end_progress();
  requests::end();
  return inner.Finalize();
}

}  // namespace gapless::mpi::endpoints::calls

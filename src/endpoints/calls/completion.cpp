// Calls that complete requests and messages, for those of endpoints and all others.
//
// The library completes the requests; here endpoints are driven until it can. Errors of endpoints' operations are
// raised here, through the endpoint's handler.
#include <algorithm>

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

/// Those of some requests that are of endpoints, as they were before the library completes them.
class Involved {
 public:
  Involved(int count, const MPI_Request* requests) {
    if (requests::are_none() || requests == nullptr) return;
    for (int i = 0; i < count; ++i) {
      Task* const task = requests::find(requests[i]);
      if (task == nullptr) continue;
      if (std::find(endpoints_.begin(), endpoints_.end(), task->endpoint) == endpoints_.end())
        endpoints_.push_back(task->endpoint);
      ours_.push_back({i, task, task->notice == Notice::persistent});
    }
    if (!ours_.empty()) before_.assign(requests, requests + count);
  }

  bool any() const noexcept { return !ours_.empty(); }
  void drive() const {
    for (const auto& endpoint : endpoints_) progress(*endpoint);
  }
  bool are_done() const noexcept {
    return std::all_of(ours_.begin(), ours_.end(), [](const Ours& ours) {
      return is_idle(ours) || ours.task->done.load(std::memory_order_acquire);
    });
  }
  /// The library has completed the request in that place. What it knows of persistent ones is not their outcome.
  void finish(int place, MPI_Status* status) const noexcept {
    for (const Ours& ours : ours_) {
      if (ours.place == place && ours.is_persistent && ours.task->active)
        requests::finish_persistent(*ours.task, status);
    }
  }
  void finish_all(MPI_Status* statuses) const noexcept {
    for (const Ours& ours : ours_)
      finish(ours.place, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + ours.place);
  }
  void finish_some(int completed, const int* indices, MPI_Status* statuses) const noexcept {
    for (int i = 0; i < completed; ++i)
      finish(indices[i], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i);
  }
  /// The request in that place is complete, and stays the program's.
  void tell(int place, MPI_Status* status) const noexcept {
    for (const Ours& ours : ours_) {
      if (ours.place == place && ours.is_persistent && ours.task->active) set_status(status, *ours.task);
    }
  }
  int size() const noexcept { return static_cast<int>(before_.size()); }
  MPI_Request before(int i) const noexcept { return before_[static_cast<std::size_t>(i)]; }

 private:
  /// A task that is not persistent is gone once its request is complete.
  struct Ours {
    int place;
    Task* task;
    bool is_persistent;
  };
  static bool is_idle(const Ours& ours) noexcept { return ours.is_persistent && !ours.task->active; }
  std::vector<std::shared_ptr<Endpoint>> endpoints_;
  std::vector<Ours> ours_;
  std::vector<MPI_Request> before_;
};

/// Of a call that completes at most one request: the failure's own code.
int raise_failure(int code) {
  const auto failures = requests::take_failures();
  return code != MPI_SUCCESS || failures.empty() ? code : raise(*failures.front().endpoint, failures.front().code);
}

/// Of a call with statuses: `place_of(i)` is the status of the i-th request that was given.
template <class PlaceOf>
int raise_failures(int code, const Involved& involved, int completed, MPI_Status* statuses, PlaceOf place_of) {
  const auto failures = requests::take_failures();
  if (failures.empty()) return code;
  if (statuses != MPI_STATUSES_IGNORE) {
    if (code != MPI_ERR_IN_STATUS) {
      for (int i = 0; i < completed; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    for (const auto& failure : failures) {
      for (int i = 0; i < involved.size(); ++i) {
        if (involved.before(i) == failure.request)
          if (const int place = place_of(i); place >= 0) statuses[place].MPI_ERROR = failure.code;
      }
    }
  }
  return raise(*failures.front().endpoint, MPI_ERR_IN_STATUS);
}

int same_place(int i) noexcept { return i; }

/// MPI_UNDEFINED, where all requests are null or inactive, is none.
int how_many(int completed) noexcept { return completed > 0 ? completed : 0; }
bool is_place(int index) noexcept { return index != MPI_UNDEFINED; }

/// Calls the library's testing function until it says that something is complete.
template <class Test>
int drive_until_tested(const Involved& involved, Test test) {
  for (Patience patience;; patience.wait()) {
    involved.drive();
    bool complete = false;
    const int code = test(complete);
    if (code != MPI_SUCCESS || complete) return code;
  }
}

template <class Call>
int guarded(Call call) noexcept {
  try {
    return call();
  } catch (const std::exception&) {
    return raise_without_object(MPI_ERR_NO_MEM);
  }
}

}  // namespace

int Wait(MPI_Request* request, MPI_Status* status) {
  return guarded([&]() -> int {
    Task* const task = request == nullptr ? nullptr : requests::find(*request);
    if (task == nullptr) {
      const InLibrary meanwhile;
      return inner.Wait(request, status);
    }
    const bool is_persistent = task->notice == Notice::persistent;
    if (is_persistent && !task->active) return inner.Wait(request, status);
    const std::shared_ptr<Endpoint> endpoint = task->endpoint;
    drive_until_done(*task);
    const int code = inner.Wait(request, status);
    if (is_persistent) requests::finish_persistent(*task, status);
    return raise_failure(code);
  });
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    if (involved.any()) {
      for (Patience patience; !involved.are_done(); patience.wait()) involved.drive();
    }
    const InLibrary meanwhile;
    const int code = inner.Waitall(count, requests, statuses);
    if (!involved.any()) return code;
    involved.finish_all(statuses);
    return raise_failures(code, involved, count, statuses, same_place);
  });
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    if (!involved.any()) {
      const InLibrary meanwhile;
      return inner.Waitany(count, requests, index, status);
    }
    const int code = drive_until_tested(involved, [&](bool& complete) {
      int flag = 0;
      const int result = inner.Testany(count, requests, index, &flag, status);
      complete = flag != 0;
      return result;
    });
    if (is_place(*index)) involved.finish(*index, status);
    return raise_failure(code);
  });
}

namespace {

/// After the library has completed some requests.
int finish_some(int code, const Involved& involved, int completed, const int* indices, MPI_Status* statuses) {
  completed = how_many(completed);
  involved.finish_some(completed, indices, statuses);
  return raise_failures(code, involved, completed, statuses, [&](int i) {
    const int* place = std::find(indices, indices + completed, i);
    return place == indices + completed ? -1 : static_cast<int>(place - indices);
  });
}

}  // namespace

int Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    if (!involved.any()) {
      const InLibrary meanwhile;
      return inner.Waitsome(count, requests, completed, indices, statuses);
    }
    const int code = drive_until_tested(involved, [&](bool& complete) {
      const int result = inner.Testsome(count, requests, completed, indices, statuses);
      complete = *completed != 0;
      return result;
    });
    return finish_some(code, involved, *completed, indices, statuses);
  });
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    const Involved involved(1, request);
    if (!involved.any()) return inner.Test(request, flag, status);
    involved.drive();
    const int code = inner.Test(request, flag, status);
    if (*flag != 0) involved.finish(0, status);
    return raise_failure(code);
  });
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    if (!involved.any()) return inner.Testall(count, requests, flag, statuses);
    involved.drive();
    const int code = inner.Testall(count, requests, flag, statuses);
    // The library may ask for the statuses of those that are done although not all are.
    if (code == MPI_SUCCESS && *flag == 0) {
      requests::take_failures();
      return code;
    }
    involved.finish_all(statuses);
    return raise_failures(code, involved, count, statuses, same_place);
  });
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    involved.drive();
    const int code = inner.Testany(count, requests, index, flag, status);
    if (*flag != 0 && is_place(*index)) involved.finish(*index, status);
    return raise_failure(code);
  });
}

int Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    involved.drive();
    const int code = inner.Testsome(count, requests, completed, indices, statuses);
    return involved.any() ? finish_some(code, involved, *completed, indices, statuses) : code;
  });
}

namespace {

/// `ask` looks without completing anything; `tell` says what the library does not know.
template <class Ask, class Tell>
int look_at(int count, const MPI_Request* requests, Ask ask, Tell tell) {
  return guarded([&]() -> int {
    const Involved involved(count, requests);
    involved.drive();
    const int code = ask();
    if (involved.any() && code == MPI_SUCCESS) tell(involved);
    requests::take_failures();  // they are raised when the request is completed
    return code;
  });
}

}  // namespace

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return look_at(
      1, &request, [&] { return inner.Request_get_status(request, flag, status); },
      [&](const Involved& involved) {
        if (*flag != 0) involved.tell(0, status);
      });
}

#if GAPLESS_DECLARED_Request_get_status_all
int Request_get_status_all(int count, const MPI_Request requests[], int* flag, MPI_Status* statuses) {
  return look_at(
      count, requests, [&] { return inner.Request_get_status_all(count, requests, flag, statuses); },
      [&](const Involved& involved) {
        for (int i = 0; i < count && *flag != 0 && statuses != MPI_STATUSES_IGNORE; ++i) involved.tell(i, statuses + i);
      });
}
#endif
#if GAPLESS_DECLARED_Request_get_status_any
int Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return look_at(
      count, requests, [&] { return inner.Request_get_status_any(count, requests, index, flag, status); },
      [&](const Involved& involved) {
        if (*flag != 0 && is_place(*index)) involved.tell(*index, status);
      });
}
#endif
#if GAPLESS_DECLARED_Request_get_status_some
int Request_get_status_some(int count, const MPI_Request requests[], int* completed, int* indices,
                            MPI_Status* statuses) {
  return look_at(
      count, requests, [&] { return inner.Request_get_status_some(count, requests, completed, indices, statuses); },
      [&](const Involved& involved) {
        for (int i = 0; i < how_many(*completed) && statuses != MPI_STATUSES_IGNORE; ++i)
          involved.tell(indices[i], statuses + i);
      });
}
#endif

int Cancel(MPI_Request* request) {
  return guarded([&]() -> int {
    Task* const task = request == nullptr ? nullptr : requests::find(*request);
    if (task == nullptr) return inner.Cancel(request);
    task->cancel();
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
    start_matched_receive(operation, taken.message.release());
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
    auto operation = std::make_unique<Operation>();
    operation->receives = true;
    int code = set_buffer(*operation, *taken.endpoint, {memory, count, datatype});
    if (code == MPI_SUCCESS) code = requests::make(operation.get(), request);
    if (code != MPI_SUCCESS) return raise(*taken.endpoint, code);
    start_matched_receive(*operation.release(), taken.message.release());
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
  return inner.Finalize();
}

}  // namespace gapless::mpi::endpoints::calls

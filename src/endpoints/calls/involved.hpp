// The requests of one call: those of endpoints, and those that the library is to complete.
//
// The library gets the array with null requests in the places of endpoints' own, if there are others at all.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "endpoints/calls/calls.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/tasks/requests.hpp"

namespace gapless::mpi::endpoints::calls {

using requests::Request;

inline void set_empty(MPI_Status* status) noexcept { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }

inline MPI_Status* at(MPI_Status* statuses, int place) noexcept {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + place;
}

/// How many requests were completed; 0 for MPI_UNDEFINED, where all of them are null or inactive.
inline int how_many(int completed) noexcept { return completed > 0 ? completed : 0; }

/// Ends a call that has looked at requests of others, of which so many are complete. Returns `code`.
inline int look_at_others(const int* completed, int code) {
  if (code == MPI_SUCCESS && *completed == 0) progress_now_and_then();
  return code;
}

/// Which of a call's requests are of endpoints, and what the library is to see in their place.
class Involved {
 public:
  Involved(int count, const MPI_Request* requests) : count_(count) {
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
    for (Endpoint* endpoint : endpoints_) progress(*endpoint);
  }
  bool are_done() const noexcept { return std::all_of(ours_.begin(), ours_.end(), std::mem_fn(&Ours::is_done)); }
  void wait() const {
    std::size_t done = 0;
    wait_until([&] {
      while (done < ours_.size() && ours_[done].is_done()) ++done;
      return done == ours_.size();
    });
  }
  template <class Condition>
  void wait_until(Condition is_met) const {
    repeat_until([&] { drive(); }, is_met);
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
    Endpoint* const endpoint = request->endpoint;
    if (endpoint == nullptr || endpoint == last_) return;
    last_ = endpoint;
    if (std::find(endpoints_.begin(), endpoints_.end(), endpoint) == endpoints_.end()) endpoints_.push_back(endpoint);
  }

  struct Scratch {
    std::vector<Ours> ours;
    std::vector<MPI_Request> others;
    std::vector<Endpoint*> endpoints;
    bool is_in_use = false;
  };
  /// The thread's scratch, so that a call costs no allocation; one of its own for a call that a callback makes inside
  /// another one.
  class Borrowed {
   public:
    Borrowed() : scratch_(of_thread().is_in_use ? own_.emplace() : of_thread()) {
      scratch_.is_in_use = true;
      scratch_.ours.clear();
      scratch_.endpoints.clear();
    }
    ~Borrowed() { scratch_.is_in_use = false; }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Scratch* operator->() const noexcept { return &scratch_; }

   private:
    static Scratch& of_thread() {
      static thread_local Scratch one;
      return one;
    }
    std::optional<Scratch> own_;
    Scratch& scratch_;
  };
  int count_;
  Borrowed scratch_;
  std::vector<Ours>& ours_ = scratch_->ours;
  std::vector<MPI_Request>& others_ = scratch_->others;
  std::vector<Endpoint*>& endpoints_ = scratch_->endpoints;
  Endpoint* last_ = nullptr;  ///< that was looked at
  bool has_others_ = false;
  bool is_mistaken_ = false;
};

}  // namespace gapless::mpi::endpoints::calls

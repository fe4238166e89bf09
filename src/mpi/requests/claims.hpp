// The requests of one call that completes some or all of them: what is pending for each, and their statuses.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/pending.hpp"
#include "mpi/requests/receives/looked_at.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::requests {

/// An array of a call's length, without an allocation for the lengths that halo exchanges have.
template <class T>
class Scratch {
 public:
  explicit Scratch(int size) noexcept {
    if (size <= static_cast<int>(few_.size())) {
      if (size > 0) std::fill_n(few_.begin(), size, T{});
      return;
    }
    many_.reset(new (std::nothrow) T[static_cast<std::size_t>(size)]{});
    data_ = many_.get();
  }
  bool is_there() const noexcept { return data_ != nullptr; }
  T* data() noexcept { return data_; }
  T& operator[](int i) noexcept { return data_[i]; }

 private:
  std::array<T, 64> few_;  // NOLINT: set as far as the call's length
  std::unique_ptr<T[]> many_;
  T* data_ = few_.data();
};

class Statuses;

/// What is pending for the requests of one call, claimed while the object lives. Meanwhile the call's list has, of each
/// persistent message, the request that is in use.
class Claims {
 public:
  explicit Claims(MPI_Request* request) noexcept : Claims(1, request) { is_array_ = false; }
  /// Claims all but the receives that `in_place` notes.
  Claims(int count, MPI_Request* requests, looked_at::InPlace* in_place = nullptr) noexcept
      : Claims(Nothing{}, count, requests) {
    for (int i = 0; i < count_ && pending_.is_there(); ++i) {
      if (in_place != nullptr && in_place->note(i, requests[i])) continue;
      keep(i, claim(requests[i]));
    }
  }
  /// For calls that look at requests. In place of one that another thread's call has claimed, the list has the null
  /// request.
  struct Look {};
  Claims(Look, int count, MPI_Request* requests) noexcept : Claims(Nothing{}, count, requests) {
    for (int i = 0; i < count_ && pending_.is_there(); ++i) {
      bool is_busy = false;
      keep(i, claim_to_look(requests[i], is_busy));
      if (!is_busy) continue;
      are_busy_ = true;
      requests[i] = MPI_REQUEST_NULL;
    }
  }
  ~Claims() {
    for (int i = 0; any_ && i < count_; ++i) {
      if (pending_[i] == nullptr) continue;
      if (pending_[i]->is_persistent) requests_[i] = pending_[i]->programs_own()->handle;
      unclaim(pending_[i]);
    }
  }
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  bool are_any() const noexcept { return any_; }
  /// Is the call a look, and has another thread's call claimed any of the requests? That one is not complete yet.
  bool are_busy() const noexcept { return are_busy_; }
  bool is_ours(int i) noexcept { return any_ && pending_[i] != nullptr; }
  /// Was there memory for the list? If not, the call may complete nothing.
  bool have_memory() const noexcept { return pending_.is_there(); }

  /// Is any send not complete that the library would call complete? If so, has the library make progress.
  bool are_under_way() noexcept {
    for (int i = 0; any_ && i < count_; ++i) {
      if (pending_[i] == nullptr || !pending_[i]->is_under_way()) continue;
      runtime::make_progress();
      return true;
    }
    return false;
  }
  /// For calls that complete any of their requests. The library calls such sends complete at once, so their bytes are
  /// copied out.
  void complete_alone() noexcept {
    for (int i = 0; any_ && i < count_; ++i) {
      if (pending_[i] != nullptr) pending_[i]->complete_alone();
    }
  }

  /// Is any of the requests a send in whose place a header has gone?
  bool are_by_header() noexcept {
    for (int i = 0; any_ && i < count_; ++i) {
      if (pending_[i] != nullptr && pending_[i]->is_by_header()) return true;
    }
    return false;
  }

  /// Takes the library's answer for request `i`: `code`, and `status`, which is not set if the request is not complete.
  /// If the request is complete, ends the message and gives the program its status; a persistent message stays, to be
  /// started again. Returns `code`, or an error of ours that is not raised yet.
  int complete(int i, int code, ReceivedStatus& status) noexcept {
    Pending* pending = completed(i);
    if (pending == nullptr || !is_over(*pending, code)) {
      status.deliver();
      return code;
    }
    int ours = MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
      ours = pending->finish(status);
    } else {
      pending->fail(status);
    }
    note_error(*pending, ours, is_array_);
    if (pending->is_persistent) {
      if (code != MPI_SUCCESS && !pending->has_own_status() && is_completed_by(*pending, code)) pending->stop();
      pending->forget_outcome();
    } else {
      // The call completes requests, so it may change the program's handle.
      const_cast<MPI_Request&>(requests_[i]) = MPI_REQUEST_NULL;
      pending_[i] = nullptr;
      end(pending);
    }
    return ours == MPI_SUCCESS ? code : ours;
  }
  /// To be called before complete() of several requests: unpacks the messages that have arrived together.
  template <class IndexOf>
  void unpack(Statuses& statuses, int completed, bool errors_in_statuses, IndexOf index_of) noexcept;

  /// Is the message of request `i` worth unpacking while others are still under way?
  bool is_unpacked_early(int i) noexcept { return any_ && pending_[i] != nullptr && pending_[i]->is_unpacked_early(); }
  /// Precondition: is_ours(i).
  const ErrorObject& error_object(int i) noexcept { return pending_[i]->error_object; }
  bool is_persistent(int i) noexcept { return is_ours(i) && pending_[i]->is_persistent; }
  /// To be called before complete(): unpacks the message of request `i`, which has arrived with that status.
  void unpack(int i, ReceivedStatus& status) noexcept {
    transfer::Batch batch;
    pending_[i]->unpack_in(batch, status);
    pending_[i]->batch_has_run(batch.run());
  }

  /// Like complete(), for a call that tells that request `i` is complete, and does not complete the request.
  int look(int i, int code, ReceivedStatus& status) noexcept {
    Pending* pending = any_ ? pending_[i] : nullptr;
    if (pending == nullptr || code != MPI_SUCCESS) {
      // MPICH 5.0.2 takes a persistent request for inactive after such an error, and does not tell the error to the
      // call that completes the request.
      if (pending != nullptr && pending->is_persistent) pending->note_failure();
      status.deliver();
      return code;
    }
    const int ours = pending->finish(status);
    note_error(*pending, ours, true);
    if (ours != MPI_SUCCESS && pending->is_persistent) pending->note_failure();
    // From now on the library may take its persistent request, which the program's request stands for, for inactive.
    if (pending->frees_request) pending->settle(ours);
    return ours;
  }

  /// A request that is complete whatever the library says; MPI_UNDEFINED if there is none. Calls that complete some of
  /// their requests ask this first.
  int settled() noexcept {
    for (int i = 0; any_ && i < count_; ++i) {
      if (is_settled(i) && !pending_[i]->is_under_way()) return i;
    }
    return MPI_UNDEFINED;
  }
  /// Is any of the requests a send whose header the library has not taken yet? The library takes such a request for
  /// inactive. To be asked before settled(), which finds the send once the header has been taken.
  bool await_headers() noexcept {
    for (int i = 0; any_ && i < count_; ++i) {
      if (is_settled(i) && pending_[i]->is_under_way()) return true;
    }
    return false;
  }

  /// Raises an error of ours on the object of the first message with an error. An error that an earlier call has
  /// raised, which looked at the request without completing it, is returned and not raised.
  int raise(int code) const noexcept { return is_untold_ ? raise_on(object_, code) : code; }
  int raised(int before, int after) const noexcept {
    return after == before || after == raised_already ? after : raise(after);
  }

 private:
  struct Nothing {};
  Claims(Nothing, int count, MPI_Request* requests) noexcept
      : count_(requests == nullptr ? 0 : std::max(count, 0)), requests_(requests), pending_(count_) {
    start_deferred();
    complete_freed();
  }
  void keep(int i, Pending* pending) noexcept {
    pending_[i] = pending;
    if (pending == nullptr) return;
    any_ = true;
    if (pending->is_persistent) requests_[i] = pending->request_of_library();
  }

  void note_error(Pending& pending, int code, bool may_name_none) noexcept {
    if (code == MPI_SUCCESS || std::exchange(pending.is_told, true) || std::exchange(is_untold_, true)) return;
    const bool names_none = may_name_none && names_no_communicator(code);
    object_ = names_none ? ErrorObject::of_communicator(told_of_no_communicator()) : pending.error_object;
  }
  bool is_settled(int i) noexcept {
    return pending_[i] != nullptr && pending_[i]->is_settled && !pending_[i]->is_being_matched();
  }
  /// What is pending for request `i`, if the library may have completed the request; else null.
  Pending* completed(int i) noexcept {
    Pending* pending = any_ ? pending_[i] : nullptr;
    if (pending == nullptr) return nullptr;
    const bool is_null = requests_[i] == MPI_REQUEST_NULL;
    if (is_null) pending->note_matched();
    return is_null || pending->is_persistent || pending->frees_request ? pending : nullptr;
  }
  /// Is the message over? A request that gapless frees stays a handle when it is complete, so after an error the
  /// library is asked. A request that the library calls pending is the program's to wait for, also where the request
  /// has become complete since.
  static bool is_over(const Pending& pending, int code) noexcept {
    return !pending.frees_request || code == MPI_SUCCESS || is_completed_by(pending, code);
  }

  /// Has a persistent request been completed with the error `code`, which may be another request's?
  static bool is_completed_by(const Pending& pending, int code) noexcept {
    const int error_class = class_of(code);
    int is_complete = 0;
    // A call with a wrong argument has completed nothing.
    const bool is_of_argument = error_class == MPI_ERR_REQUEST || error_class == MPI_ERR_ARG;
    if (error_class == MPI_ERR_PENDING || is_of_argument) return false;
    return native.Request_get_status(pending.handle, &is_complete, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           is_complete != 0;
  }

  int count_;
  MPI_Request* requests_;
  Scratch<Pending*> pending_;
  ErrorObject object_;
  bool is_untold_ = false;
  bool any_ = false;
  bool are_busy_ = false;
  bool is_array_ = true;
};

/// The statuses of a call with an array of them: those that the library fills in, and the program's.
class Statuses {
 public:
  Statuses(int count, MPI_Status* wanted) noexcept
      : wanted_(wanted == MPI_STATUSES_IGNORE ? nullptr : wanted), own_(count) {
    for (int i = 0; i < count && own_.is_there(); ++i) {
      own_[i] = ReceivedStatus::unset(wanted_ == nullptr ? nullptr : wanted_ + i);
      if (!library_returns_errors_after_handlers) own_[i].MPI_ERROR = MPI_SUCCESS;
    }
  }
  bool have_memory() const noexcept { return own_.is_there(); }
  MPI_Status* get() noexcept { return own_.data(); }
  /// The library has answered with `code` and `completed` statuses: do these have errors? MPICH 5.0.2 returns
  /// MPI_SUCCESS once a handler of the program's has returned. Where they have none, the program's stay.
  bool have_errors(int code, int completed) noexcept {
    if (!have_errors_) have_errors_ = look_for_errors(code, completed);
    return *have_errors_;
  }
  /// Takes a status that the library has filled in elsewhere, with its error if it `has_error`.
  void take(int i, const MPI_Status& filled, bool has_error) noexcept {
    if (has_error) {
      own_[i] = filled;
    } else {
      assign_but_error(own_[i], filled);
    }
  }
  ReceivedStatus of(int i) noexcept { return {own_[i], wanted_ == nullptr ? nullptr : wanted_ + i}; }
  int error_of(int i) noexcept { return own_[i].MPI_ERROR; }
  /// Sets the error of status `i`, delivered or not.
  void set_error(int i, int code) noexcept {
    own_[i].MPI_ERROR = code;
    if (wanted_ != nullptr) wanted_[i].MPI_ERROR = code;
  }

 private:
  bool look_for_errors(int code, int completed) noexcept {
    if (tells_in_statuses(code)) return true;
    if (library_returns_errors_after_handlers) return false;
    const auto is_error = [](const MPI_Status& status) { return status.MPI_ERROR != MPI_SUCCESS; };
    if (code == MPI_SUCCESS && std::any_of(own_.data(), own_.data() + completed, is_error)) return true;
    for (int i = 0; wanted_ != nullptr && i < completed; ++i) own_[i].MPI_ERROR = wanted_[i].MPI_ERROR;
    return false;
  }

  MPI_Status* wanted_;
  Scratch<MPI_Status> own_;
  std::optional<bool> have_errors_;
};

template <class IndexOf>
void Claims::unpack(Statuses& statuses, int completed, bool errors_in_statuses, IndexOf index_of) noexcept {
  transfer::Batch batch;
  for (int k = 0; any_ && k < completed; ++k) {
    Pending* pending = this->completed(index_of(k));
    if (pending == nullptr || (errors_in_statuses && statuses.error_of(k) != MPI_SUCCESS)) continue;
    ReceivedStatus status = statuses.of(k);
    pending->unpack_in(batch, status);
  }
  const transfer::Result result = batch.run();
  for (int k = 0; any_ && k < completed; ++k) {
    if (Pending* pending = this->completed(index_of(k))) pending->batch_has_run(result);
  }
}

}  // namespace gapless::mpi::requests

#include "mpi/requests/arrivals.hpp"

#include <sched.h>

#include <algorithm>
#include <array>

#include "mpi/lifetime/errors_caught.hpp"
#include "mpi/table/library_traits.hpp"

namespace gapless::mpi::requests {
namespace {

/// The most requests that the library is asked about at a time: the library looks at each of them.
constexpr int most_at_once = 8;

/// Completes the requests of messages that have arrived, and unpacks the messages, in the order of the program's list.
/// MPI_Request_get_status would not do: MPICH tells of an error once, and would tell that call. Where a request fails,
/// the call ends, as MPICH's own MPI_Waitall does.
class Arrivals {
 public:
  Arrivals(Claims& claims, Statuses& statuses, int count, MPI_Request* requests) noexcept
      : claims_(claims), statuses_(statuses), count_(count), requests_(requests), states_(count), others_(count) {}
  bool have_memory() const noexcept { return states_.is_there() && others_.is_there(); }
  bool has_failed() const noexcept { return has_failed_; }
  bool is_awaited(int i) noexcept { return states_[i] == State::awaited; }

  /// Looks at the requests that `asked` names, at most `most_at_once`. Waits for some of them where the library can be
  /// asked about all at once.
  void look(const int* asked, int count) noexcept {
    std::array<int, most_at_once> several{};
    int in_statuses = 0;
    for (int k = 0; k < count; ++k) {
      const bool tells = library_gives_errors_of_persistent_requests || !claims_.is_persistent(asked[k]);
      if (tells) several[in_statuses++] = asked[k];
    }
    if (in_statuses > 0) look_at_several(several, in_statuses, in_statuses == count);
    for (int k = 0; in_statuses < count && k < count && !has_failed_; ++k) {
      if (claims_.is_persistent(asked[k])) look_at(asked[k]);
    }
  }

  /// Completes all other requests, as the library's MPI_Waitall does.
  int wait_for_others() noexcept {
    if (has_failed_) {
      for (int i = 0; i < count_; ++i) {
        const bool is_over = states_[i] == State::arrived || requests_[i] == MPI_REQUEST_NULL;
        if (states_[i] != State::failed) statuses_.set_error(i, is_over ? MPI_SUCCESS : MPI_ERR_PENDING);
      }
      return code_;
    }
    // The library may leave the statuses of null and inactive requests as they are.
    std::copy_n(statuses_.get(), count_, others_.data());
    const int code = native.Waitall(count_, requests_, others_.data());
    for (int i = 0; i < count_; ++i) {
      const bool has_arrived = states_[i] == State::arrived;
      if (!has_arrived) statuses_.take(i, others_[i], true);
      if (has_arrived && tells_in_statuses(code)) statuses_.set_error(i, MPI_SUCCESS);
    }
    return code;
  }

 private:
  enum class State : char { awaited, arrived, failed, inactive };

  void look_at_several(const std::array<int, most_at_once>& asked, int count, bool waits) noexcept {
    const auto look = waits ? native.Waitsome : native.Testsome;
    std::array<MPI_Request, most_at_once> handles;
    std::array<MPI_Status, most_at_once> filled;
    std::array<int, most_at_once> indices;
    filled.fill(ReceivedStatus::unset(nullptr));
    for (int k = 0; k < count; ++k) {
      handles[k] = requests_[asked[k]];
      // An error handler may leave the call by longjmp: the program then has no handle that the library has freed.
      if (!claims_.is_persistent(asked[k])) requests_[asked[k]] = MPI_REQUEST_NULL;
    }
    int completed = 0;
    const int code = look(count, handles.data(), &completed, indices.data(), filled.data());
    for (int k = 0; k < count; ++k) requests_[asked[k]] = handles[k];
    for (int c = 0; completed != MPI_UNDEFINED && c < completed; ++c) note(asked[indices[c]], filled[c], code);
    if (code != MPI_SUCCESS && !has_failed_) fail(code);
    for (int k = 0; completed == MPI_UNDEFINED && k < count; ++k) states_[asked[k]] = State::inactive;
  }
  /// The library's code is the request's own error, which the status does not have. A failure becomes
  /// MPI_ERR_IN_STATUS, the code of a list.
  void look_at(int i) noexcept {
    MPI_Status filled = ReceivedStatus::unset(nullptr);
    int is_complete = 0;
    filled.MPI_ERROR = native.Test(&requests_[i], &is_complete, &filled);
    if (filled.MPI_ERROR != MPI_SUCCESS || is_complete != 0) note(i, filled, MPI_ERR_IN_STATUS);
  }
  /// Takes the error from the status, whatever the program's handler has made of the code.
  void note(int i, const MPI_Status& filled, int code) noexcept {
    const bool is_failure = filled.MPI_ERROR != MPI_SUCCESS;
    statuses_.take(i, filled, is_failure);
    states_[i] = is_failure ? State::failed : State::arrived;
    if (is_failure) return fail(code);
    ReceivedStatus status = statuses_.of(i);
    claims_.unpack(i, status);
  }
  void fail(int code) noexcept {
    has_failed_ = true;
    code_ = code;
  }

  Claims& claims_;
  Statuses& statuses_;
  int count_;
  MPI_Request* requests_;
  Scratch<State> states_;
  Scratch<MPI_Status> others_;
  bool has_failed_ = false;
  int code_ = MPI_SUCCESS;
};

/// Is the library to be asked about that request alone? MPICH tells of a persistent request's error by the call's code,
/// which is MPI_SUCCESS once a handler of the program's has returned.
bool may_ask_alone(Claims& claims, int i) noexcept {
  const bool is_told = library_returns_errors_after_handlers || library_gives_errors_of_persistent_requests;
  return is_told || !claims.is_persistent(i) || !has_programs_handler(claims.error_object(i));
}

/// Waits until all awaited messages have arrived, or one has failed.
void wait_for(Arrivals& arrivals, int* awaited, int count) noexcept {
  constexpr unsigned idle_rounds = 16;
  for (unsigned idle = 0; count > 0 && !arrivals.has_failed();) {
    int* const asked = awaited + std::min(count, most_at_once);
    arrivals.look(awaited, static_cast<int>(asked - awaited));
    int* const left = std::remove_if(awaited, asked, [&](int i) { return !arrivals.is_awaited(i); });
    idle = left == asked ? idle + 1 : 0;
    if (idle >= idle_rounds) ::sched_yield();
    std::copy(asked, awaited + count, left);
    count -= static_cast<int>(asked - left);
  }
}

}  // namespace

int wait_for_arrivals(Claims& claims, Statuses& statuses, int count, MPI_Request* requests) noexcept {
  Scratch<int> awaited(count);
  int early = 0;
  for (int i = 0; awaited.is_there() && i < count; ++i) {
    if (claims.is_unpacked_early(i) && may_ask_alone(claims, i)) awaited[early++] = i;
  }
  if (early < 2) return native.Waitall(count, requests, statuses.get());
  Arrivals arrivals(claims, statuses, count, requests);
  if (!arrivals.have_memory()) return native.Waitall(count, requests, statuses.get());
  wait_for(arrivals, awaited.data(), early);
  return arrivals.wait_for_others();
}

}  // namespace gapless::mpi::requests

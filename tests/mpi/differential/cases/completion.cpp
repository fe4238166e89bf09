// Every call that completes requests, used until none is left.
#include <sched.h>

#include <functional>
#include <vector>

#include "cases/calls.hpp"
#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

class Completing {
 public:
  Completing(std::span<MPI_Request> requests, std::span<Status*> statuses)
      : requests_(requests), wanted_(statuses), statuses_(requests.size()), indices_(requests.size()) {
    for (const Status* status : statuses) ignores_ = ignores_ && status == nullptr;
  }

  int one_by_one(bool tests, bool asks_first) {
    int first_error = MPI_SUCCESS;
    for (std::size_t k = 0; k < requests_.size(); ++k) {
      MPI_Status* status = wanted_[k] == nullptr ? MPI_STATUS_IGNORE : &statuses_[k];
      if (asks_first) until([&](int* flag) { return MPI_Request_get_status(requests_[k], flag, MPI_STATUS_IGNORE); });
      const int code = tests ? until([&](int* flag) { return MPI_Test(&requests_[k], flag, status); })
                             : MPI_Wait(&requests_[k], status);
      if (first_error == MPI_SUCCESS) first_error = code;
      if (wanted_[k] != nullptr && code == MPI_SUCCESS) wanted_[k]->set(statuses_[k]);
    }
    return first_error;
  }

  int all(bool tests) {
    MPI_Status* statuses = ignores_ ? MPI_STATUSES_IGNORE : statuses_.data();
    const int code = tests ? until([&](int* flag) { return MPI_Testall(count(), requests_.data(), flag, statuses); })
                           : MPI_Waitall(count(), requests_.data(), statuses);
    return take(code, requests_.size(), [](std::size_t k) { return k; });
  }

  int any(bool tests) {
    int first_error = MPI_SUCCESS;
    for (std::size_t done = 0; done < requests_.size(); ++done) {
      int index = MPI_UNDEFINED;
      MPI_Status* status = ignores_ ? MPI_STATUS_IGNORE : statuses_.data();
      const int code =
          tests ? until([&](int* flag) { return MPI_Testany(count(), requests_.data(), &index, flag, status); })
                : MPI_Waitany(count(), requests_.data(), &index, status);
      if (first_error == MPI_SUCCESS) first_error = code;
      const bool is_one = index >= 0 && index < count();
      if (!ignores_ && is_one && code == MPI_SUCCESS && wanted_[static_cast<std::size_t>(index)] != nullptr)
        wanted_[static_cast<std::size_t>(index)]->set(statuses_[0]);
    }
    return first_error;
  }

  int some(bool tests) {
    int first_error = MPI_SUCCESS;
    for (std::size_t done = 0; done < requests_.size();) {
      int finished = 0;
      MPI_Status* statuses = ignores_ ? MPI_STATUSES_IGNORE : statuses_.data();
      const int code =
          (tests ? MPI_Testsome : MPI_Waitsome)(count(), requests_.data(), &finished, indices_.data(), statuses);
      if (tests && finished == 0 && code == MPI_SUCCESS) {
        sched_yield();
        continue;
      }
      const std::size_t found = finished > 0 ? static_cast<std::size_t>(finished) : 0;
      const int error = take(code, found, [this](std::size_t k) { return static_cast<std::size_t>(indices_[k]); });
      if (first_error == MPI_SUCCESS) first_error = error;
      if (finished <= 0) break;
      done += found;
    }
    return first_error;
  }

 private:
  int count() const { return static_cast<int>(requests_.size()); }

  /// A test, until it finds what it asks for, or an error.
  static int until(const std::function<int(int*)>& test) {
    int flag = 0;
    for (;;) {
      const int code = test(&flag);
      if (code != MPI_SUCCESS || flag) return code;
      sched_yield();
    }
  }

  /// Takes the statuses of a call for many. Its error is that of the first request that failed.
  int take(int code, std::size_t found, const std::function<std::size_t(std::size_t)>& index_of) {
    const bool is_in_status = error_class(code) == MPI_ERR_IN_STATUS && !ignores_;
    int first_error = is_in_status ? MPI_SUCCESS : code;
    for (std::size_t k = 0; k < found; ++k) {
      const int error = is_in_status ? statuses_[k].MPI_ERROR : code;
      if (first_error == MPI_SUCCESS) first_error = error;
      if (error == MPI_SUCCESS && wanted_[index_of(k)] != nullptr) wanted_[index_of(k)]->set(statuses_[k]);
    }
    return first_error == MPI_SUCCESS ? code : first_error;
  }

  std::span<MPI_Request> requests_;
  std::span<Status*> wanted_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  bool ignores_ = true;
};

}  // namespace

int complete(Completion completion, std::span<MPI_Request> requests, std::span<Status*> statuses) {
  Completing completing(requests, statuses);
  switch (completion) {
    case Completion::wait:
      return completing.one_by_one(false, false);
    case Completion::asked_first:
      return completing.one_by_one(false, true);
    case Completion::test:
      return completing.one_by_one(true, false);
    case Completion::waitall:
      return completing.all(false);
    case Completion::testall:
      return completing.all(true);
    case Completion::waitany:
      return completing.any(false);
    case Completion::testany:
      return completing.any(true);
    case Completion::waitsome:
      return completing.some(false);
    case Completion::testsome:
      return completing.some(true);
  }
  return MPI_ERR_INTERN;
}

}  // namespace gapless::test::differential

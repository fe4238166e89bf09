// All ways to complete requests, persistent ones among them.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

namespace gapless::test {

enum class Completing {
  wait,
  test,
  wait_all,
  test_all,
  wait_any,
  test_any,
  wait_some,
  test_some,
  get_status,
  // From MPI 4.1 on:
  get_status_all,
  get_status_any,
  get_status_some,
};
#define GAPLESS_TEST_MPI_4_1 (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))
inline constexpr int completing_ways = GAPLESS_TEST_MPI_4_1 ? 12 : 9;

inline const char* name(Completing way) {
  static constexpr const char* names[] = {"Wait",
                                          "Test",
                                          "Waitall",
                                          "Testall",
                                          "Waitany",
                                          "Testany",
                                          "Waitsome",
                                          "Testsome",
                                          "RequestGetStatus",
                                          "RequestGetStatusAll",
                                          "RequestGetStatusAny",
                                          "RequestGetStatusSome"};
  return names[static_cast<int>(way)];
}

/// Called for each request when it is complete, with its index and status.
using OnComplete = std::function<void(int, const MPI_Status&)>;

/// Requests, all of which are active. Each function completes all of them its way, and returns how many calls failed.
class Completer {
 public:
  Completer(std::vector<MPI_Request>& requests, const OnComplete& is_complete)
      : requests_(requests), is_complete_(is_complete), statuses_(requests.size()), indices_(requests.size()) {}

  int wait() {
    for (std::size_t i = 0; i < requests_.size(); ++i) check(MPI_Wait(&requests_[i], &statuses_[i]));
    return tell_all();
  }
  /// The last one first.
  int test() {
    for (std::size_t i = requests_.size(); i-- > 0;) {
      for (int flag = 0; flag == 0;) check(MPI_Test(&requests_[i], &flag, &statuses_[i]));
      is_complete_(static_cast<int>(i), statuses_[i]);
    }
    return failed_;
  }
  int wait_all() {
    check(MPI_Waitall(all(), requests_.data(), statuses_.data()));
    return tell_all();
  }
  int test_all() {
    for (int flag = 0; flag == 0;) check(MPI_Testall(all(), requests_.data(), &flag, statuses_.data()));
    return tell_all();
  }
  int wait_any() {
    return by_one([this](int* index, int* flag, MPI_Status* status) {
      *flag = 1;
      return MPI_Waitany(all(), requests_.data(), index, status);
    });
  }
  int test_any() {
    return by_one([this](int* index, int* flag, MPI_Status* status) {
      return MPI_Testany(all(), requests_.data(), index, flag, status);
    });
  }
  int wait_some() { return by_some(MPI_Waitsome); }
  int test_some() { return by_some(MPI_Testsome); }

  /// What is only looked at is waited for after. For a persistent request MPICH has ended what is under way in the
  /// look, and gives an empty status then.
  int get_status() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      for (int flag = 0; flag == 0;) check(MPI_Request_get_status(requests_[i], &flag, &statuses_[i]));
      is_complete_(static_cast<int>(i), statuses_[i]);
      wait_for(static_cast<int>(i));
    }
    return failed_;
  }
#if GAPLESS_TEST_MPI_4_1
  int get_status_all() {
    for (int flag = 0; flag == 0;) check(MPI_Request_get_status_all(all(), requests_.data(), &flag, statuses_.data()));
    tell_all();
    check(MPI_Waitall(all(), requests_.data(), MPI_STATUSES_IGNORE));
    return failed_;
  }
  int get_status_any() {
    return by_one([this](int* index, int* flag, MPI_Status* status) {
      const int code = MPI_Request_get_status_any(all(), requests_.data(), index, flag, status);
      if (*flag != 0 && *index != MPI_UNDEFINED) wait_for(*index);
      return code;
    });
  }
  int get_status_some() {
    return by_some([this](int count, MPI_Request* requests, int* some, int* indices, MPI_Status* statuses) {
      const int code = MPI_Request_get_status_some(count, requests, some, indices, statuses);
      for (int k = 0; *some != MPI_UNDEFINED && k < *some; ++k) wait_for(indices[k]);
      return code;
    });
  }
#endif

 private:
  int all() const { return static_cast<int>(requests_.size()); }
  void check(int code) { failed_ += code != MPI_SUCCESS; }
  void wait_for(int i) { check(MPI_Wait(&requests_[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE)); }
  int tell_all() {
    for (int i = 0; i < all(); ++i) is_complete_(i, statuses_[static_cast<std::size_t>(i)]);
    return failed_;
  }
  /// `call(index, flag, status)` completes one of them, or none.
  template <class Call>
  int by_one(Call call) {
    for (int done = 0; done < all();) {
      int index = 0, flag = 0;
      check(call(&index, &flag, &statuses_[0]));
      if (flag == 0) continue;
      if (index == MPI_UNDEFINED) return failed_ + 1;
      is_complete_(index, statuses_[0]);
      ++done;
    }
    return failed_;
  }
  template <class Call>
  int by_some(Call call) {
    for (int done = 0, some = 0; done < all(); done += some) {
      check(call(all(), requests_.data(), &some, indices_.data(), statuses_.data()));
      if (some == MPI_UNDEFINED) return failed_ + 1;
      for (std::size_t k = 0; k < static_cast<std::size_t>(some); ++k) is_complete_(indices_[k], statuses_[k]);
    }
    return failed_;
  }

  std::vector<MPI_Request>& requests_;
  const OnComplete& is_complete_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  int failed_ = 0;
};

/// Completes `requests`, all of which are active. Returns how many calls failed.
inline int complete(Completing way, std::vector<MPI_Request>& requests, const OnComplete& is_complete) {
  static constexpr int (Completer::*ways[])() = {
    &Completer::wait,
    &Completer::test,
    &Completer::wait_all,
    &Completer::test_all,
    &Completer::wait_any,
    &Completer::test_any,
    &Completer::wait_some,
    &Completer::test_some,
    &Completer::get_status,
#if GAPLESS_TEST_MPI_4_1
    &Completer::get_status_all,
    &Completer::get_status_any,
    &Completer::get_status_some
#endif
  };
  return (Completer(requests, is_complete).*ways[static_cast<int>(way)])();
}

}  // namespace gapless::test

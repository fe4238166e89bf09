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

/// Completes `requests`, all of which are active. Returns how many calls failed.
inline int complete(Completing way, std::vector<MPI_Request>& requests, const OnComplete& is_complete) {
  const int all = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  std::vector<int> indices(requests.size());
  int failed = 0, flag = 0, index = 0, done = 0;
  const auto check = [&failed](int code) { failed += code != MPI_SUCCESS; };
  const auto tell = [&] {
    for (int i = 0; i < all; ++i) is_complete(i, statuses[static_cast<std::size_t>(i)]);
  };
  const auto tell_some = [&](int some) {
    for (int k = 0; k < some; ++k)
      is_complete(indices[static_cast<std::size_t>(k)], statuses[static_cast<std::size_t>(k)]);
    done += some == MPI_UNDEFINED ? all : some;
  };
  switch (way) {
    case Completing::wait:
      for (std::size_t i = 0; i < requests.size(); ++i) check(MPI_Wait(&requests[i], &statuses[i]));
      tell();
      break;
    case Completing::test:
      for (std::size_t i = requests.size(); i-- > 0;) {
        for (flag = 0; flag == 0;) check(MPI_Test(&requests[i], &flag, &statuses[i]));
        is_complete(static_cast<int>(i), statuses[i]);
      }
      break;
    case Completing::wait_all:
      check(MPI_Waitall(all, requests.data(), statuses.data()));
      tell();
      break;
    case Completing::test_all:
      while (flag == 0) check(MPI_Testall(all, requests.data(), &flag, statuses.data()));
      tell();
      break;
    case Completing::wait_any:
      for (; done < all; ++done) {
        check(MPI_Waitany(all, requests.data(), &index, &statuses[0]));
        if (index == MPI_UNDEFINED) return failed + 1;
        is_complete(index, statuses[0]);
      }
      break;
    case Completing::test_any:
      while (done < all) {
        check(MPI_Testany(all, requests.data(), &index, &flag, &statuses[0]));
        if (flag == 0) continue;
        if (index == MPI_UNDEFINED) return failed + 1;
        is_complete(index, statuses[0]);
        ++done;
      }
      break;
    case Completing::wait_some:
    case Completing::test_some:
      while (done < all) {
        int some = 0;
        check((way == Completing::wait_some ? MPI_Waitsome : MPI_Testsome)(all, requests.data(), &some, indices.data(),
                                                                           statuses.data()));
        if (some == MPI_UNDEFINED) return failed + 1;
        tell_some(some);
      }
      break;
    case Completing::get_status:
      for (std::size_t i = 0; i < requests.size(); ++i) {
        for (flag = 0; flag == 0;) check(MPI_Request_get_status(requests[i], &flag, &statuses[i]));
        is_complete(static_cast<int>(i), statuses[i]);
        // For a persistent request MPICH has ended what is under way in the call before, and gives an empty status.
        check(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
      }
      break;
#if GAPLESS_TEST_MPI_4_1
    case Completing::get_status_all:
      while (flag == 0) check(MPI_Request_get_status_all(all, requests.data(), &flag, statuses.data()));
      tell();
      check(MPI_Waitall(all, requests.data(), MPI_STATUSES_IGNORE));
      break;
    case Completing::get_status_any:
      while (done < all) {
        check(MPI_Request_get_status_any(all, requests.data(), &index, &flag, &statuses[0]));
        if (flag == 0) continue;
        if (index == MPI_UNDEFINED) return failed + 1;
        is_complete(index, statuses[0]);
        check(MPI_Wait(&requests[static_cast<std::size_t>(index)], MPI_STATUS_IGNORE));
        ++done;
      }
      break;
    case Completing::get_status_some:
      while (done < all) {
        int some = 0;
        check(MPI_Request_get_status_some(all, requests.data(), &some, indices.data(), statuses.data()));
        if (some == MPI_UNDEFINED) return failed + 1;
        tell_some(some);
        for (int k = 0; k < some; ++k)
          check(MPI_Wait(&requests[static_cast<std::size_t>(indices[static_cast<std::size_t>(k)])], MPI_STATUS_IGNORE));
      }
      break;
#else
    default:
      return failed + 1;
#endif
  }
  return failed;
}

}  // namespace gapless::test

// A reduction to which one endpoint cannot give its operand, for its GPU fails: that endpoint gets an error, nobody
// waits for it, and nobody takes something else for its operand without an error.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

#include "on_endpoints.hpp"
#include "support/gpu.hpp"

namespace gapless::test {
namespace {

/// `call(operand, result, count, handle)`, and whether it is made of messages on every rank.
struct Reducing {
  const char* name;
  std::function<int(const void*, void*, int, MPI_Comm)> call;
  bool is_blocking;
};

const Reducing reductions[] = {
    {"Allreduce", [](auto from, auto to, int n, auto c) { return MPI_Allreduce(from, to, n, MPI_INT, MPI_SUM, c); },
     true},
    {"Iallreduce",
     [](auto from, auto to, int n, auto c) {
       MPI_Request request = MPI_REQUEST_NULL;
       const int code = MPI_Iallreduce(from, to, n, MPI_INT, MPI_SUM, c, &request);
       return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
     },
     false},
};

/// Calls that fail to move GPU memory, once.
class FailingGpu {
 public:
  FailingGpu() {
    for (const char* operation : operations) fail_next(operation);
  }
  ~FailingGpu() {
    for (const char* operation : operations) fail_next(operation, 0);
  }
  FailingGpu(const FailingGpu&) = delete;
  FailingGpu& operator=(const FailingGpu&) = delete;

 private:
  static constexpr const char* operations[] = {"run", "copy"};
};

/// Only `poor` has GPU memory. How many results are wrong.
int reduce(const Reducing& reducing, int count, int poor, MPI_Comm handle) {
  const int size = test::size(handle), rank = test::rank(handle);
  const auto values = [count](int of_rank) { return std::vector<int>(static_cast<std::size_t>(count), 1 << of_rank); };
  const std::vector<int> mine = values(rank);
  std::vector<int> result(mine.size(), -1);
  int code = MPI_SUCCESS;
  if (rank == poor) {
    std::vector<std::byte> bytes(mine.size() * sizeof(int));
    std::memcpy(bytes.data(), mine.data(), bytes.size());
    OnGpu operand(bytes);
    const FailingGpu failing;
    code = reducing.call(operand.at(), result.data(), count, handle);
  } else {
    code = reducing.call(mine.data(), result.data(), count, handle);
  }
  if (code != MPI_SUCCESS || rank == poor) return code == MPI_SUCCESS;
  // Another process, which has heard of nothing.
  constexpr std::size_t most_in_messages = 2048;
  const bool is_in_messages = !reducing.is_blocking || mine.size() * sizeof(int) <= most_in_messages;
  const int without_it = (1 << size) - 1 - (1 << poor);
  return is_in_messages || result != std::vector<int>(mine.size(), without_it);
}

TEST(ReductionsOnGpu, ThatFailAtOneEndpoint) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "of the simulated GPU only";
  for (const Reducing& reducing : reductions) {
    for (const int count : {1, 100, 1000, 10000}) {
      const int size = 3 * test::size();
      for (int poor = 0; poor < size; ++poor) {
        EXPECT_EQ(0, on_endpoints(each(3), [&](MPI_Comm handle) { return reduce(reducing, count, poor, handle); }))
            << reducing.name << " of " << count << ", without " << poor;
      }
    }
  }
}

/// All have GPU memory again, and the next reduction is right.
TEST(ReductionsOnGpu, AreRightAfterAFailure) {
  EXPECT_EQ(0, on_endpoints(each(3), [](MPI_Comm handle) {
              int wrong = 0;
              if (gpu_fails_on_request()) reduce(reductions[0], 100, 1, handle);
              MPI_Barrier(handle);
              for (const Reducing& reducing : reductions) {
                std::vector<std::byte> bytes(sizeof(int));
                const int one = 1;
                std::memcpy(bytes.data(), &one, sizeof one);
                OnGpu operand(bytes), result(bytes);
                wrong += reducing.call(operand.at(), result.at(), 1, handle) != MPI_SUCCESS;
                int sum = 0;
                std::memcpy(&sum, result.bytes().data(), sizeof sum);
                wrong += sum != test::size(handle);
              }
              return wrong;
            }));
}

}  // namespace
}  // namespace gapless::test

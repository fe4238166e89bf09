// A message or collective to which one endpoint cannot give its bytes, for its GPU fails: that endpoint gets an error,
// nobody waits for it, and nobody takes something else for its bytes without an error.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
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

/// Calls that fail to move GPU memory.
class FailingGpu {
 public:
  FailingGpu() {
    for (const char* operation : operations) fail_next(operation, -1);
  }
  ~FailingGpu() {
    for (const char* operation : operations) fail_next(operation, 0);
  }
  FailingGpu(const FailingGpu&) = delete;
  FailingGpu& operator=(const FailingGpu&) = delete;

 private:
  static constexpr const char* operations[] = {"run", "copy"};
};

/// Do endpoints share memory with those of other processes?
bool shares_memory() {
  const char* const headers = std::getenv("GAPLESS_HEADERS");
  return headers == nullptr || std::string_view(headers) != "0";
}

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
  const bool is_in_messages =
      !reducing.is_blocking || (shares_memory() && mine.size() * sizeof(int) <= most_in_messages);
  const int without_it = (1 << size) - 1 - (1 << poor);
  return is_in_messages || result != std::vector<int>(mine.size(), without_it);
}

TEST(CollectivesOnGpu, ReductionsThatFailAtOneEndpoint) {
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

/// One rank's ints in all, or each rank's for each. `send` moves blocks of `count` ints: of the caller, whose part of
/// `in` for rank k begins at k * count; -1 there stays where nothing is received.
struct Moving {
  const char* name;
  std::function<int(const void* out, int* in, int count, int poor, MPI_Comm)> call;
  bool is_blocking;
  /// Does that rank receive what `poor` has?
  std::function<bool(int rank, int poor, int size)> receives;
};

bool is_other(int rank, int poor, int) { return rank != poor; }
bool is_next(int rank, int poor, int size) { return rank == (poor + 1) % size; }

/// Waits for what has begun.
int wait(int code, MPI_Request& request) { return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code; }

/// Blocks for each rank, one behind the other in both buffers.
struct Places {
  std::vector<int> counts, begins;
  Places(int count, int size) : counts(static_cast<std::size_t>(size), count), begins(counts.size()) {
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  }
};

const Moving movings[] = {
    {"Bcast",
     [](auto out, auto in, int n, int poor, auto c) {
       void* const memory = rank(c) == poor ? const_cast<void*>(out) : in + poor * n;
       return MPI_Bcast(memory, n, MPI_INT, poor, c);
     },
     true, is_other},
    {"Ibcast",
     [](auto out, auto in, int n, int poor, auto c) {
       MPI_Request request = MPI_REQUEST_NULL;
       void* const memory = rank(c) == poor ? const_cast<void*>(out) : in + poor * n;
       return wait(MPI_Ibcast(memory, n, MPI_INT, poor, c, &request), request);
     },
     false, is_other},
    {"Gather",
     [](auto out, auto in, int n, int poor, auto c) {
       return MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, (poor + 1) % size(c), c);
     },
     true, is_next},
    {"Igather",
     [](auto out, auto in, int n, int poor, auto c) {
       MPI_Request request = MPI_REQUEST_NULL;
       return wait(MPI_Igather(out, n, MPI_INT, in, n, MPI_INT, (poor + 1) % size(c), c, &request), request);
     },
     false, is_next},
    {"Allgather",
     [](auto out, auto in, int n, int, auto c) { return MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, c); }, true,
     is_other},
    {"Iallgather",
     [](auto out, auto in, int n, int, auto c) {
       MPI_Request request = MPI_REQUEST_NULL;
       return wait(MPI_Iallgather(out, n, MPI_INT, in, n, MPI_INT, c, &request), request);
     },
     false, is_other},
    {"Alltoall", [](auto out, auto in, int n, int, auto c) { return MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, c); },
     true, is_other},
    {"Alltoallv",
     [](auto out, auto in, int n, int, auto c) {
       const Places places(n, size(c));
       return MPI_Alltoallv(out, places.counts.data(), places.begins.data(), MPI_INT, in, places.counts.data(),
                            places.begins.data(), MPI_INT, c);
     },
     true, is_other},
    {"Send and Recv",
     [](auto out, auto in, int n, int poor, auto c) {
       const int to = (poor + 1) % size(c), me = rank(c);
       return me == poor ? MPI_Send(out, n, MPI_INT, to, 0, c)
              : me == to ? MPI_Recv(in + poor * n, n, MPI_INT, poor, 0, c, MPI_STATUS_IGNORE)
                         : MPI_SUCCESS;
     },
     false, is_next},
    {"Isend and Recv of what has come",
     [](auto out, auto in, int n, int poor, auto c) {
       const int to = (poor + 1) % size(c), me = rank(c);
       MPI_Request request = MPI_REQUEST_NULL;
       if (me == poor) return wait(MPI_Isend(out, n, MPI_INT, to, 0, c, &request), request);
       if (me == to) MPI_Probe(poor, 0, c, MPI_STATUS_IGNORE);
       return me == to ? MPI_Recv(in + poor * n, n, MPI_INT, poor, 0, c, MPI_STATUS_IGNORE) : MPI_SUCCESS;
     },
     false, is_next},
};

/// Only `poor` has GPU memory. How many results are wrong, of the failing call and of one after it.
int move(const Moving& moving, int count, int poor, MPI_Comm handle) {
  const int size = test::size(handle), rank = test::rank(handle);
  const auto length = static_cast<std::size_t>(count * size);
  std::vector<int> out(length, 1 + rank), in(length, -1), fine(length, -1);
  int wrong = 0, code = MPI_SUCCESS;
  if (rank == poor) {
    std::vector<std::byte> bytes(length * sizeof(int));
    std::memcpy(bytes.data(), out.data(), bytes.size());
    OnGpu memory(bytes);
    wrong += moving.call(memory.at(), fine.data(), count, poor, handle) != MPI_SUCCESS;  // leaves bytes to be mistaken
    std::fill(out.begin(), out.end(), 100);
    std::memcpy(bytes.data(), out.data(), bytes.size());
    memory.write(bytes);
    const FailingGpu failing;
    code = moving.call(memory.at(), in.data(), count, poor, handle);
    return wrong + (code == MPI_SUCCESS);
  }
  wrong += moving.call(out.data(), fine.data(), count, poor, handle) != MPI_SUCCESS;
  code = moving.call(out.data(), in.data(), count, poor, handle);
  if (!moving.receives(rank, poor, size) || code != MPI_SUCCESS) return wrong;
  const auto from_poor = in.begin() + poor * count;
  return wrong + (!moving.is_blocking || std::count(from_poor, from_poor + count, 0) != count);
}

/// Messages of the program that the library would carry have no mark, and nobody hears that they do not come.
bool is_served(const Moving& moving) {
  return shares_memory() || std::string_view(moving.name).find("Recv") == std::string_view::npos;
}

TEST(CollectivesOnGpu, WhoseBytesCannotBeReadAtOneEndpoint) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "of the simulated GPU only";
  for (const Moving& moving : movings) {
    for (const int count : {1, 1000, 5000, 20000}) {
      if (!is_served(moving)) continue;
      const int size = 3 * test::size();
      for (int poor = 0; poor < size; ++poor) {
        EXPECT_EQ(0, on_endpoints(each(3), [&](MPI_Comm handle) { return move(moving, count, poor, handle); }))
            << moving.name << " of " << count << ", without " << poor;
      }
    }
  }
}

/// All have GPU memory again, and the next reduction is right.
TEST(CollectivesOnGpu, ReductionsAreRightAfterAFailure) {
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

// Persistent collectives on GPU memory: each start sends what the memory then holds, each completion leaves what the
// library's own collective leaves in host memory.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

constexpr int rounds = 3;

using Init = std::function<int(void* sent, void* received, MPI_Request* request)>;
using Complete = std::function<int(MPI_Request* request)>;

/// GPU memory written anew before each round.
class Rounds {
 public:
  void expect_same(const std::string& what, const HostOrGpuCall& native, const Init& init) {
    SCOPED_TRACE(what);
    TwoMemories wanted;
    OnGpu sent(wanted.sent), received(wanted.received);
    const auto before = gpu_messages();
    MPI_Request request = MPI_REQUEST_NULL;
    ASSERT_EQ(MPI_SUCCESS, init(sent.at(), received.at(), &request));
    // A request that is not started is complete, and nothing arrives with it.
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_TRUE(same_bytes(wanted.received, received.bytes()));
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < wanted.sent.size(); ++i) wanted.sent[i] ^= static_cast<std::byte>(i + 77);
      sent.write(wanted.sent);
      ASSERT_EQ(MPI_SUCCESS, native(wanted.sent.data(), wanted.received.data()));
      ASSERT_EQ(MPI_SUCCESS, round == 0 ? MPI_Startall(1, &request) : MPI_Start(&request));
      EXPECT_EQ(MPI_SUCCESS, complete(round, request));
      EXPECT_NE(MPI_REQUEST_NULL, request);
      EXPECT_TRUE(same_bytes(wanted.sent, sent.bytes())) << "round " << round;
      EXPECT_TRUE(same_bytes(wanted.received, received.bytes())) << "round " << round;
    }
    EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&request));
    EXPECT_EQ(MPI_REQUEST_NULL, request);
    if (under_gapless()) {
      EXPECT_LT(before, gpu_messages());
    }
  }

 private:
  static int complete(int round, MPI_Request& request) {
    int flag = 0;
    if (round == 0) return MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (round == 1) return MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
  }
};

#define GAPLESS_EXPECT_SAME(name, ...)                                                                            \
  Rounds().expect_same(                                                                                           \
      "MPI_" #name "_init",                                                                                       \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) { return GAPLESS_TEST_NATIVE(name)(__VA_ARGS__); }, \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r, MPI_Request* request) {                             \
        return MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request);                                            \
      })

TEST(PersistentCollectives, OfEveryKind) {
  const ReturnErrors errors(MPI_COMM_WORLD);
  const MPI_Comm world = MPI_COMM_WORLD;
  const int last = size() - 1;
  const Owned gaps(strided(3, 2, 4)), none(strided(1, 6, 6));
  std::vector<int> n, at, bytes;
  std::vector<MPI_Datatype> out, in;
  for (int k = 0; k < size(); ++k) {
    n.push_back(1);
    at.push_back(2 * k);
    bytes.push_back(96 * k);
    out.push_back((k + rank()) % 2 == 0 ? gaps : none);
    in.push_back((k + rank()) % 2 == 0 ? none : gaps);
  }
  GAPLESS_EXPECT_SAME(Bcast, s, 3, gaps, last, world);
  GAPLESS_EXPECT_SAME(Gather, s, 2, gaps, r, 2, none, last, world);
  GAPLESS_EXPECT_SAME(Scatter, s, 2, gaps, r, 2, none, 0, world);
  GAPLESS_EXPECT_SAME(Allgather, s, 2, gaps, r, 2, gaps, world);
  GAPLESS_EXPECT_SAME(Alltoall, s, 2, none, r, 2, gaps, world);
  GAPLESS_EXPECT_SAME(Gatherv, s, 1, gaps, r, n.data(), at.data(), gaps, 0, world);
  GAPLESS_EXPECT_SAME(Scatterv, s, n.data(), at.data(), gaps, r, 1, gaps, last, world);
  GAPLESS_EXPECT_SAME(Allgatherv, s, 1, gaps, r, n.data(), at.data(), gaps, world);
  GAPLESS_EXPECT_SAME(Alltoallv, s, n.data(), at.data(), gaps, r, n.data(), at.data(), gaps, world);
  GAPLESS_EXPECT_SAME(Alltoallw, s, n.data(), bytes.data(), out.data(), r, n.data(), bytes.data(), in.data(), world);
  GAPLESS_EXPECT_SAME(Allreduce, s, r, 100, MPI_INT, MPI_MAX, world);
  GAPLESS_EXPECT_SAME(Reduce, s, r, 100, MPI_INT, MPI_MAX, last, world);
  GAPLESS_EXPECT_SAME(Scan, s, r, 100, MPI_INT, MPI_MAX, world);
  GAPLESS_EXPECT_SAME(Exscan, s, r, 100, MPI_INT, MPI_MAX, world);
  GAPLESS_EXPECT_SAME(Reduce_scatter_block, s, r, 9, MPI_INT, MPI_MAX, world);
  GAPLESS_EXPECT_SAME(Reduce_scatter, s, r, n.data(), MPI_INT, MPI_MAX, world);
}

TEST(PersistentCollectives, OfNeighbours) {
  if (size() == 1) GTEST_SKIP() << "one process has no neighbours in a line";
  const Owned gaps(strided(3, 2, 4)), none(strided(1, 6, 6));
  const int dimensions[] = {size()}, periodic[] = {0}, pair[] = {1, 1};
  const MPI_Aint halos[] = {0, 640}, edges[] = {64, 320};
  const MPI_Datatype types[] = {gaps, none};
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &line);
  const MPI_Datatype in[] = {none, gaps};
  GAPLESS_EXPECT_SAME(Neighbor_alltoallw, s, pair, edges, types, r, pair, halos, in, line);
  GAPLESS_EXPECT_SAME(Neighbor_allgather, s, 1, gaps, r, 1, gaps, line);
  const int firsts[] = {0, 7};
  GAPLESS_EXPECT_SAME(Neighbor_allgatherv, s, 1, gaps, r, pair, firsts, none, line);
  GAPLESS_EXPECT_SAME(Neighbor_alltoall, s, 1, none, r, 1, gaps, line);
  GAPLESS_EXPECT_SAME(Neighbor_alltoallv, s, pair, firsts, gaps, r, pair, firsts, none, line);
  MPI_Comm_free(&line);
}

/// What is not started, for a message that was to be started with it cannot be packed, does not arrive later.
TEST(PersistentCollectives, ThatAreNotStarted) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "only the simulated GPU fails on request";
  const ReturnErrors errors(MPI_COMM_WORLD);
  const Owned gaps(strided(3, 2, 4));
  TwoMemories memories;
  OnGpu sent(memories.sent), received(memories.received);
  MPI_Request requests[2];
  MPI_Alltoall_init(sent.at(), 1, gaps, received.at(), 1, gaps, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Send_init(sent.at(), 1, gaps, rank(), 0, MPI_COMM_WORLD, &requests[1]);
  for (const bool waits : {true, false}) {
    fail_next("run", 1, 1);  // the collective is packed first
    EXPECT_NE(MPI_SUCCESS, MPI_Startall(2, requests));
    if (waits) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
  }
  for (MPI_Request& request : requests) EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&request));
  EXPECT_TRUE(same_bytes(memories.received, received.bytes()));
}

/// The library tells of the error of a collective once, and what that has left in the place of a result is none.
TEST(PersistentCollectives, ThatEndInAnError) {
  const ReturnErrors errors(MPI_COMM_WORLD);
  const bool is_root = rank() == 0;
  for (const bool waits : {true, false}) {
    TwoMemories memories;
    OnGpu memory(memories.received);
    MPI_Request request;
    MPI_Bcast_init(memory.at(), is_root ? 100 : 50, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
    const bool fails = MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    // Of more processes, some may get from another what is cut already.
    if (size() == 2) {
      EXPECT_EQ(!is_root, fails);
    }
    if (waits) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&request));
    if (fails) {
      EXPECT_TRUE(same_bytes(memories.received, memory.bytes()));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace gapless::test

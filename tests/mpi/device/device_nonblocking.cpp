// Nonblocking collectives and file access on GPU memory: when their requests are complete, by whichever call, GPU
// memory holds what the library's own blocking call leaves in host memory.

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

/// Completes a request, by another call each time.
int complete(MPI_Request& request) {
  static int turn = 0;
  int flag = 0, index = -1, some = 0;
  int indices[2] = {-1, -1};
  MPI_Request two[2] = {MPI_REQUEST_NULL, request};
  MPI_Status status, statuses[2];
  const auto end_of_two = [&](int code) {
    request = two[1];
    EXPECT_EQ(MPI_REQUEST_NULL, request);
    return code;
  };
  switch (turn++ % 9) {
    case 0:
      return MPI_Wait(&request, MPI_STATUS_IGNORE);
    case 1:
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, &status));
      return MPI_SUCCESS;
    case 2:
      return end_of_two(MPI_Waitall(2, two, statuses));
    case 3:
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE));
      return end_of_two(MPI_SUCCESS);
    case 4:
      return end_of_two(MPI_Waitany(2, two, &index, &status));
    case 5:
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Testany(2, two, &index, &flag, &status));
      return end_of_two(MPI_SUCCESS);
    case 6:
      return end_of_two(MPI_Waitsome(2, two, &some, indices, statuses));
    case 7:
      while (some == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Testsome(2, two, &some, indices, statuses));
      return end_of_two(MPI_SUCCESS);
    default:
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Request_get_status(request, &flag, &status));
      return MPI_Wait(&request, &status);
  }
}

/// Calls the library's own function with the arguments on host memory, and ours on GPU memory. (Where a process is its
/// own neighbour twice, the library's blocking functions may take its messages in another order.)
#define GAPLESS_EXPECT_SAME(name, ...)                                 \
  expect_same_as_on_host(                                              \
      "MPI_" #name,                                                    \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) {        \
        MPI_Request request = MPI_REQUEST_NULL;                        \
        GAPLESS_TEST_NATIVE(name)(__VA_ARGS__, &request);              \
        return GAPLESS_TEST_NATIVE(Wait)(&request, MPI_STATUS_IGNORE); \
      },                                                               \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) {        \
        MPI_Request request = MPI_REQUEST_NULL;                        \
        const int code = MPI_##name(__VA_ARGS__, &request);            \
        return code != MPI_SUCCESS ? code : complete(request);         \
      })

class Nonblocking : public testing::Test {
 protected:
  ReturnErrors errors_{MPI_COMM_WORLD};
  MPI_Comm world_ = MPI_COMM_WORLD;
  std::size_t processes_ = static_cast<std::size_t>(size());
  int last_ = size() - 1;
  std::vector<int> counts_ = std::vector<int>(processes_), places_ = std::vector<int>(processes_);
  std::uint64_t before_ = gpu_messages();

  void SetUp() override {
    for (std::size_t k = 0; k < processes_; ++k) {
      counts_[k] = static_cast<int>(k % 3) + 1;
      places_[k] = static_cast<int>(5 * (processes_ - 1 - k));
    }
  }
  void TearDown() override {
    if (under_gapless() && !IsSkipped()) {
      EXPECT_LT(before_, gpu_messages());
    }
  }
};

TEST_F(Nonblocking, OfEqualParts) {
  for_datatypes([&](MPI_Datatype type) {
    GAPLESS_EXPECT_SAME(Ibcast, s, 3, type, last_, world_);
    GAPLESS_EXPECT_SAME(Igather, s, 2, type, r, 2, type, last_, world_);
    GAPLESS_EXPECT_SAME(Iscatter, s, 2, type, r, 2, type, 0, world_);
    GAPLESS_EXPECT_SAME(Iallgather, s, 2, type, r, 2, type, world_);
    GAPLESS_EXPECT_SAME(Ialltoall, s, 2, type, r, 2, type, world_);
  });
}

TEST_F(Nonblocking, OfPartsOfTheirOwn) {
  const int mine = counts_[static_cast<std::size_t>(rank())];
  const std::vector<int> same(processes_, mine);
  const int *n = counts_.data(), *at = places_.data();
  for_datatypes([&](MPI_Datatype type) {
    GAPLESS_EXPECT_SAME(Igatherv, s, mine, type, r, n, at, type, 0, world_);
    GAPLESS_EXPECT_SAME(Iscatterv, s, n, at, type, r, mine, type, last_, world_);
    GAPLESS_EXPECT_SAME(Iallgatherv, s, mine, type, r, n, at, type, world_);
    GAPLESS_EXPECT_SAME(Ialltoallv, s, n, at, type, r, same.data(), at, type, world_);
  });
}

TEST_F(Nonblocking, OfDatatypesOfTheirOwn) {
  const Owned gaps(strided(3, 2, 4)), none(strided(1, 6, 6));
  std::vector<MPI_Datatype> out, in;
  std::vector<int> places(processes_), ones(processes_, 1);
  for (std::size_t k = 0; k < processes_; ++k) {
    out.push_back(k % 2 == 0 ? gaps : none);
    in.push_back(k % 2 == 0 ? none : gaps);
    places[k] = static_cast<int>(k * 64);
  }
  // The types of both ends of a pair have the same signature.
  GAPLESS_EXPECT_SAME(Ialltoallw, s, ones.data(), places.data(), out.data(), r, ones.data(), places.data(), in.data(),
                      world_);
}

TEST_F(Nonblocking, OfReductions) {
  const std::vector<int> shares(processes_, 9);
  GAPLESS_EXPECT_SAME(Ireduce, s, r, 100, MPI_INT, MPI_MAX, last_, world_);
  GAPLESS_EXPECT_SAME(Iallreduce, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_SAME(Iscan, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_SAME(Iexscan, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_SAME(Ireduce_scatter, s, r, shares.data(), MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_SAME(Ireduce_scatter_block, s, r, 9, MPI_INT, MPI_SUM, world_);
}

TEST_F(Nonblocking, InPlace) {
  for_datatypes([&](MPI_Datatype type) {
    GAPLESS_EXPECT_SAME(Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, type, world_);
    GAPLESS_EXPECT_SAME(Igather, rank() == 0 ? MPI_IN_PLACE : s, 2, type, r, 2, type, 0, world_);
    GAPLESS_EXPECT_SAME(Iscatter, s, 2, type, rank() == 0 ? MPI_IN_PLACE : r, 2, type, 0, world_);
  });
  GAPLESS_EXPECT_SAME(Iallreduce, MPI_IN_PLACE, r, 100, MPI_INT, MPI_SUM, world_);
}

/// Beyond the border of a grid there is nobody to receive from: what is there stays.
TEST_F(Nonblocking, OfNeighbours) {
  const Owned gaps(strided(3, 2, 4)), none(strided(1, 6, 6));
  const int pair[] = {1, 1}, firsts[] = {0, 7};
  const MPI_Aint halos[] = {0, 640}, edges[] = {64, 320};
  const MPI_Datatype out[] = {gaps, none}, in[] = {none, gaps};
  for (const int is_ring : {0, 1}) {
    const int dimensions[] = {size()};
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, &is_ring, 0, &line);
    GAPLESS_EXPECT_SAME(Ineighbor_alltoallw, s, pair, edges, out, r, pair, halos, in, line);
    GAPLESS_EXPECT_SAME(Ineighbor_alltoallv, s, pair, firsts, gaps, r, pair, firsts, none, line);
    GAPLESS_EXPECT_SAME(Ineighbor_alltoall, s, 1, none, r, 1, gaps, line);
    GAPLESS_EXPECT_SAME(Ineighbor_allgather, s, 1, gaps, r, 1, gaps, line);
    GAPLESS_EXPECT_SAME(Ineighbor_allgatherv, s, 1, gaps, r, pair, firsts, none, line);
    MPI_Comm_free(&line);
  }
}

/// Roots are named by the other group, and what the root's own group gives otherwise means nothing.
TEST_F(Nonblocking, OfIntercommunicators) {
  if (size() < 2) GTEST_SKIP() << "one process has no other group";
  const int side = rank() % 2;
  MPI_Comm group, both;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank(), &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - side, 5, &both);
  const int root = side == 1 ? 0 : rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
  for_datatypes([&](MPI_Datatype type) {
    GAPLESS_EXPECT_SAME(Ibcast, s, 3, type, root, both);
    GAPLESS_EXPECT_SAME(Igather, s, 2, type, r, 2, type, root, both);
    GAPLESS_EXPECT_SAME(Iscatter, s, 2, type, r, 2, type, root, both);
    GAPLESS_EXPECT_SAME(Iallgather, s, 2, type, r, 2, type, both);
    GAPLESS_EXPECT_SAME(Ialltoall, s, 2, type, r, 2, type, both);
  });
  GAPLESS_EXPECT_SAME(Iallreduce, s, r, 100, MPI_INT, MPI_SUM, both);
  GAPLESS_EXPECT_SAME(Ireduce, s, r, 100, MPI_INT, MPI_SUM, root, both);
  MPI_Comm_free(&both);
  MPI_Comm_free(&group);
}

TEST_F(Nonblocking, SeveralAtOnceFinishInAnyOrder) {
  TwoMemories first, second, wanted;
  OnGpu a(first.sent), b(second.received);
  const Owned type(strided(100, 2, 4));
  MPI_Request requests[2];
  EXPECT_EQ(MPI_SUCCESS, MPI_Ibcast(a.at(), 2, type, 0, world_, &requests[0]));
  EXPECT_EQ(MPI_SUCCESS, MPI_Ibcast(b.at(), 2, type, last_, world_, &requests[1]));
  // What is sent may be freed, and the buffers of others be used again, while these are under way.
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  GAPLESS_TEST_NATIVE(Bcast)(wanted.sent.data(), 2, type, 0, world_);
  GAPLESS_TEST_NATIVE(Bcast)(wanted.received.data(), 2, type, last_, world_);
  EXPECT_TRUE(same_bytes(wanted.sent, a.bytes()));
  EXPECT_TRUE(same_bytes(wanted.received, b.bytes()));
}

TEST_F(Nonblocking, OfFiles) {
  char name[] = "/tmp/gapless-nonblocking-XXXXXX";
  if (rank() == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File file;
  ASSERT_EQ(MPI_SUCCESS,
            MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  const MPI_Offset mine = 4096 * rank();
  // In turn by each call that MPICH 5.0.2 completes its files' requests with: to Testall and Testsome they are errors.
  int turn = 0;
  const auto wait = [&turn](MPI_Request& request) {
    int flag = 0, index = 0, code = MPI_SUCCESS;
    switch (turn++ % 4) {
      case 0:
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
      case 1:
        return MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
      case 2:
        return MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
      default:
        while (code == MPI_SUCCESS && flag == 0) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        return code;
    }
  };
  const auto in_two_steps = [&](auto write, auto read, MPI_Datatype type) {
    return [=](void* s, void* r) {
      MPI_Request request;
      int code = write(file, mine, s, 4, type, &request);
      if (code != MPI_SUCCESS || (code = wait(request)) != MPI_SUCCESS) return code;
      code = read(file, mine, r, 4, type, &request);
      return code != MPI_SUCCESS ? code : wait(request);
    };
  };
  for_datatypes([&](MPI_Datatype type) {
    const auto native = [&](void* s, void* r) {
      const int code = GAPLESS_TEST_NATIVE(File_write_at)(file, mine, s, 4, type, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) return code;
      return GAPLESS_TEST_NATIVE(File_read_at)(file, mine, r, 4, type, MPI_STATUS_IGNORE);
    };
    expect_same_as_on_host("File_iwrite_at, File_iread_at", native,
                           in_two_steps(MPI_File_iwrite_at, MPI_File_iread_at, type));
    expect_same_as_on_host("File_iwrite_at_all, File_iread_at_all", native,
                           in_two_steps(MPI_File_iwrite_at_all, MPI_File_iread_at_all, type));
  });
  for_datatypes([&](MPI_Datatype type) {
    expect_same_as_on_host(
        "File_write_at_all_begin, File_read_at_all_begin",
        [&](void* s, void* r) {
          const int code = GAPLESS_TEST_NATIVE(File_write_at_all)(file, mine, s, 4, type, MPI_STATUS_IGNORE);
          if (code != MPI_SUCCESS) return code;
          return GAPLESS_TEST_NATIVE(File_read_at_all)(file, mine, r, 4, type, MPI_STATUS_IGNORE);
        },
        [&](void* s, void* r) {
          int code = MPI_File_write_at_all_begin(file, mine, s, 4, type);
          if (code == MPI_SUCCESS) code = MPI_File_write_at_all_end(file, s, MPI_STATUS_IGNORE);
          if (code == MPI_SUCCESS) code = MPI_File_read_at_all_begin(file, mine, r, 4, type);
          return code == MPI_SUCCESS ? MPI_File_read_at_all_end(file, r, MPI_STATUS_IGNORE) : code;
        });
  });
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_close(&file);
}

/// The others would wait for ever for a process that fails before it enters the collective.
TEST_F(Nonblocking, AProcessThatFailsEntersAllTheSame) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "failures are had of the simulated GPU only";
  TwoMemories memories, wanted;
  OnGpu memory(memories.sent);
  MPI_Request request;
  if (rank() == last_) fail_next("run");
  // A request that is complete at once tells at once.
  int code = MPI_Iallgather(memory.at(), 4, MPI_INT, memories.received.data(), 4, MPI_INT, world_, &request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(rank() == last_, code != MPI_SUCCESS);
  EXPECT_EQ(MPI_REQUEST_NULL, request);
  if (rank() == last_) fail_next("run");
  EXPECT_EQ(rank() == last_,
            MPI_Allgather(memory.at(), 4, MPI_INT, memories.received.data(), 4, MPI_INT, world_) != MPI_SUCCESS);
  EXPECT_EQ(MPI_SUCCESS, MPI_Allgather(memory.at(), 4, MPI_INT, memories.received.data(), 4, MPI_INT, world_));
  GAPLESS_TEST_NATIVE(Allgather)(wanted.sent.data(), 4, MPI_INT, wanted.received.data(), 4, MPI_INT, world_);
  EXPECT_TRUE(same_bytes(wanted.received, memories.received));
}

/// Every call that asks tells of a result that could not be moved, not the first one alone.
TEST(NonblockingFailures, AResultThatCannotBeMovedIsToldAgain) {
  if (!under_gapless() || library_reads_gpu() || !gpu_fails_on_request() || size() == 1) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  TwoMemories memories;
  OnGpu memory(memories.received);
  MPI_Request request;
  const auto start = [&] {
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Iallreduce(memories.sent.data(), memory.at(), 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
  };
  // What is complete as it starts tells at once: the others start after rank 0.
  int go = 0;
  if (rank() != 0) {
    MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  start();
  for (int other = 1; other < size(); ++other) MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  fail_next("run", -1);
  int flag = 0, code = MPI_SUCCESS;
  while (code == MPI_SUCCESS && flag == 0) code = MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  fail_next("run", 0);
  const int error_class_told = error_class(code);
  EXPECT_NE(MPI_SUCCESS, error_class_told);
  EXPECT_EQ(error_class_told, error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)));
}

}  // namespace
}  // namespace gapless::test

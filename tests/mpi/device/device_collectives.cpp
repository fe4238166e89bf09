// Collectives, reductions and file access on GPU memory, on libraries that cannot read it: every call leaves in GPU
// memory what the library's own leaves in host memory.

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

/// One call for both: the oracle's counts are so small that host memory goes to the library as it is.
void expect_same_as_on_host(const std::string& what, const HostOrGpuCall& call) {
  gapless::test::expect_same_as_on_host(what, call, call);
}

class Collectives : public testing::Test {
 protected:
  ReturnErrors errors_{MPI_COMM_WORLD};
  std::size_t processes_ = static_cast<std::size_t>(size());
  std::vector<int> counts_ = std::vector<int>(processes_, 2), displacements_ = std::vector<int>(processes_);

  void SetUp() override {
    for (std::size_t k = 0; k < processes_; ++k) {
      counts_[k] = static_cast<int>(k % 3);
      displacements_[k] = static_cast<int>(5 * (processes_ - 1 - k));
    }
  }
};

TEST_F(Collectives, OfEqualParts) {
  for_datatypes([&](MPI_Datatype type) {
    expect_same_as_on_host("Bcast", [&](void* s, void*) { return MPI_Bcast(s, 3, type, size() - 1, MPI_COMM_WORLD); });
    expect_same_as_on_host(
        "Gather", [&](void* s, void* r) { return MPI_Gather(s, 2, type, r, 2, type, size() - 1, MPI_COMM_WORLD); });
    expect_same_as_on_host("Scatter",
                           [&](void* s, void* r) { return MPI_Scatter(s, 2, type, r, 2, type, 0, MPI_COMM_WORLD); });
    expect_same_as_on_host("Allgather",
                           [&](void* s, void* r) { return MPI_Allgather(s, 2, type, r, 2, type, MPI_COMM_WORLD); });
    expect_same_as_on_host("Alltoall",
                           [&](void* s, void* r) { return MPI_Alltoall(s, 2, type, r, 2, type, MPI_COMM_WORLD); });
  });
}

TEST_F(Collectives, OfPartsOfTheirOwn) {
  const int mine = counts_[static_cast<std::size_t>(rank())];
  const std::vector<int> same(processes_, mine);
  for_datatypes([&](MPI_Datatype type) {
    expect_same_as_on_host("Gatherv", [&](void* s, void* r) {
      return MPI_Gatherv(s, mine, type, r, counts_.data(), displacements_.data(), type, 0, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Scatterv", [&](void* s, void* r) {
      return MPI_Scatterv(s, counts_.data(), displacements_.data(), type, r, mine, type, size() - 1, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Allgatherv", [&](void* s, void* r) {
      return MPI_Allgatherv(s, mine, type, r, counts_.data(), displacements_.data(), type, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Alltoallv", [&](void* s, void* r) {
      return MPI_Alltoallv(s, counts_.data(), displacements_.data(), type, r, same.data(), displacements_.data(), type,
                           MPI_COMM_WORLD);
    });
  });
}

TEST_F(Collectives, OfDatatypesOfTheirOwn) {
  const Owned gaps(strided(3, 2, 4)), none(strided(1, 6, 6));
  std::vector<MPI_Datatype> sent, received;
  std::vector<int> places(processes_), ones(processes_, 1);
  for (std::size_t k = 0; k < processes_; ++k) {
    sent.push_back(k % 2 == 0 ? gaps : none);
    received.push_back(k % 2 == 0 ? none : gaps);
    places[k] = static_cast<int>(k * 64);
  }
  expect_same_as_on_host("Alltoallw", [&](void* s, void* r) {
    return MPI_Alltoallw(s, ones.data(), places.data(), sent.data(), r, ones.data(), places.data(), received.data(),
                         MPI_COMM_WORLD);
  });
  const int dimensions[] = {size()}, periodic[] = {1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &ring);
  const MPI_Aint halos[] = {0, 640}, edges[] = {64, 320};
  const int pair[] = {1, 1}, firsts[] = {0, 7};
  const MPI_Datatype out[] = {gaps, none}, in[] = {none, gaps};
  expect_same_as_on_host("Neighbor_alltoallw", [&](void* s, void* r) {
    return MPI_Neighbor_alltoallw(s, pair, edges, out, r, pair, halos, in, ring);
  });
  expect_same_as_on_host("Neighbor_alltoallv", [&](void* s, void* r) {
    return MPI_Neighbor_alltoallv(s, pair, firsts, gaps, r, pair, firsts, none, ring);
  });
  expect_same_as_on_host("Neighbor_alltoall",
                         [&](void* s, void* r) { return MPI_Neighbor_alltoall(s, 1, none, r, 1, gaps, ring); });
  expect_same_as_on_host("Neighbor_allgather",
                         [&](void* s, void* r) { return MPI_Neighbor_allgather(s, 1, gaps, r, 1, gaps, ring); });
  expect_same_as_on_host("Neighbor_allgatherv", [&](void* s, void* r) {
    return MPI_Neighbor_allgatherv(s, 1, gaps, r, pair, firsts, none, ring);
  });
  MPI_Comm_free(&ring);
}

/// Of arrays whose indices do not begin at 0: the arguments lie outside the allocation, and displacements lead into it.
TEST_F(Collectives, OfArgumentsOutsideTheAllocation) {
  constexpr int ahead = 1 << 28, ahead_bytes = 1 << 30;
  const auto outside = [](void* memory) { return static_cast<std::byte*>(memory) - ahead_bytes; };
  const int mine = counts_[static_cast<std::size_t>(rank())];
  const std::vector<int> same(processes_, mine), ones(processes_, 1);
  std::vector<int> places(processes_), places_in_bytes(processes_);
  for (std::size_t k = 0; k < processes_; ++k) {
    places[k] = ahead + displacements_[k];
    places_in_bytes[k] = ahead_bytes + static_cast<int>(k * 64);
  }
  expect_same_as_on_host("Gatherv", [&](void* s, void* r) {
    return MPI_Gatherv(s, mine, MPI_INT, outside(r), counts_.data(), places.data(), MPI_INT, 0, MPI_COMM_WORLD);
  });
  expect_same_as_on_host("Alltoallv", [&](void* s, void* r) {
    return MPI_Alltoallv(outside(s), counts_.data(), places.data(), MPI_INT, outside(r), same.data(), places.data(),
                         MPI_INT, MPI_COMM_WORLD);
  });
#if defined(OPEN_MPI)
  if (size() == 1) return;  // whose MPI_Alltoallw ignores displacements of one process
#endif
  const Owned gaps(strided(3, 2, 4));
  const std::vector<MPI_Datatype> types(processes_, gaps);
  expect_same_as_on_host("Alltoallw", [&](void* s, void* r) {
    return MPI_Alltoallw(outside(s), ones.data(), places_in_bytes.data(), types.data(), outside(r), ones.data(),
                         places_in_bytes.data(), types.data(), MPI_COMM_WORLD);
  });
}

/// Of MPI_BOTTOM the datatype says where its memory is, or the displacements do.
TEST_F(Collectives, AtAbsoluteAddresses) {
  const int dimensions[] = {size()}, periodic[] = {1}, pair[] = {1, 1}, one = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &ring);
  for_datatypes([&](MPI_Datatype type) {
    const auto at = [&](void* memory) {
      MPI_Aint address;
      MPI_Get_address(memory, &address);
      MPI_Datatype result;
      MPI_Type_create_hindexed(1, &one, &address, type, &result);
      return result;
    };
    expect_same_as_on_host(
        "Bcast", [&](void* s, void*) { return MPI_Bcast(MPI_BOTTOM, 1, Owned(at(s)), size() - 1, MPI_COMM_WORLD); });
    expect_same_as_on_host("Gather", [&](void* s, void* r) {
      return MPI_Gather(MPI_BOTTOM, 1, Owned(at(s)), r, 1, type, 0, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Neighbor_alltoallw", [&](void* s, void* r) {
      const auto out = reinterpret_cast<MPI_Aint>(s), in = reinterpret_cast<MPI_Aint>(r);
      const MPI_Aint from[] = {out, out + 640}, to[] = {in + 640, in};
      const MPI_Datatype types[] = {type, type};
      return MPI_Neighbor_alltoallw(MPI_BOTTOM, pair, from, types, MPI_BOTTOM, pair, to, types, ring);
    });
  });
  MPI_Comm_free(&ring);
}

#if !defined(OPEN_MPI)  // which has no displacements that hold an address, but of datatypes of their own
TEST_F(Collectives, AtAbsoluteAddressesOfOneDatatype) {
  const std::vector<MPI_Count> counts(processes_, 5);
  std::vector<MPI_Aint> places(processes_), addresses(processes_);
  const auto set_places = [&](const void* memory) {
    for (std::size_t k = 0; k < processes_; ++k) {
      places[k] = static_cast<MPI_Aint>(7 * k);
      addresses[k] = reinterpret_cast<MPI_Aint>(memory) / static_cast<MPI_Aint>(sizeof(int)) + places[k];
    }
  };
  // One side at a time: MPICH takes two at MPI_BOTTOM for one.
  expect_same_as_on_host("Alltoallv_c to addresses", [&](void* s, void* r) {
    set_places(r);
    return MPI_Alltoallv_c(s, counts.data(), places.data(), MPI_INT, MPI_BOTTOM, counts.data(), addresses.data(),
                           MPI_INT, MPI_COMM_WORLD);
  });
  expect_same_as_on_host("Alltoallv_c from addresses", [&](void* s, void* r) {
    set_places(s);
    return MPI_Alltoallv_c(MPI_BOTTOM, counts.data(), addresses.data(), MPI_INT, r, counts.data(), places.data(),
                           MPI_INT, MPI_COMM_WORLD);
  });
  expect_same_as_on_host("Gatherv_c", [&](void* s, void* r) {
    set_places(r);
    return MPI_Gatherv_c(s, 5, MPI_INT, MPI_BOTTOM, counts.data(), addresses.data(), MPI_INT, size() - 1,
                         MPI_COMM_WORLD);
  });
}
#endif

/// The others, who would wait for a process that cannot pack, get zeros from it.
TEST_F(Collectives, OfAProcessWhoseGpuFails) {
  if (!gpu_fails_on_request() || library_reads_gpu()) GTEST_SKIP() << "only the simulated GPU fails on request";
  const Owned gaps(strided(20, 2, 4));
  TwoMemories memories;
  OnGpu sent(memories.sent), received(memories.received);
  const auto gather = [&] { return MPI_Allgather(sent.at(), 1, gaps, received.at(), 1, gaps, MPI_COMM_WORLD); };
  for (int poor = 0; poor < size(); ++poor) {
    EXPECT_EQ(MPI_SUCCESS, gather());
    const std::vector<std::byte> before = received.bytes();
    if (rank() == poor) fail_next("run");
    const int code = gather();
    std::vector<std::byte> wanted = before;
    if (rank() == poor) {
      EXPECT_NE(MPI_SUCCESS, code);
    } else {
      EXPECT_EQ(MPI_SUCCESS, code);
      for (std::size_t i = 0; i < 80; ++i) {
        if (i % 4 < 2) std::memset(&wanted[(80 * static_cast<std::size_t>(poor) + i) * sizeof(int)], 0, sizeof(int));
      }
    }
    EXPECT_TRUE(same_bytes(wanted, received.bytes()));
  }
}

TEST_F(Collectives, InPlace) {
  for_datatypes([&](MPI_Datatype type) {
    expect_same_as_on_host("Allgather", [&](void*, void* r) {
      return MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, type, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Alltoall", [&](void*, void* r) {
      return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, type, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Gather", [&](void* s, void* r) {
      return MPI_Gather(rank() == 0 ? MPI_IN_PLACE : s, 2, type, r, 2, type, 0, MPI_COMM_WORLD);
    });
    expect_same_as_on_host("Scatter", [&](void* s, void* r) {
      return MPI_Scatter(s, 2, type, rank() == 0 ? MPI_IN_PLACE : r, 2, type, 0, MPI_COMM_WORLD);
    });
  });
  expect_same_as_on_host("Allreduce", [&](void*, void* r) {
    return MPI_Allreduce(MPI_IN_PLACE, r, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  });
}

TEST_F(Collectives, ThatReduce) {
  const std::vector<int> shares(processes_, 9);
  expect_same_as_on_host(
      "Reduce", [&](void* s, void* r) { return MPI_Reduce(s, r, 100, MPI_INT, MPI_MAX, size() - 1, MPI_COMM_WORLD); });
  expect_same_as_on_host("Allreduce",
                         [&](void* s, void* r) { return MPI_Allreduce(s, r, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
  expect_same_as_on_host("Scan",
                         [&](void* s, void* r) { return MPI_Scan(s, r, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
  expect_same_as_on_host("Exscan",
                         [&](void* s, void* r) { return MPI_Exscan(s, r, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
  expect_same_as_on_host("Reduce_scatter", [&](void* s, void* r) {
    return MPI_Reduce_scatter(s, r, shares.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  });
  expect_same_as_on_host("Reduce_scatter_block", [&](void* s, void* r) {
    return MPI_Reduce_scatter_block(s, r, 9, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  });
  expect_same_as_on_host("Reduce_local",
                         [&](void* s, void* r) { return MPI_Reduce_local(s, r, 50, MPI_INT, MPI_SUM); });
}

/// The operand goes to the host, and the result comes back.
TEST_F(Collectives, ThatReduceDoNotReadTheirResult) {
  if (!under_gapless() || !gpu_fails_on_request() || library_reads_gpu()) return;
  const std::vector<std::byte> bytes(100 * sizeof(int));
  OnGpu operands(bytes), results(bytes);
  const auto moves = [] { return gpu_count("launches") + gpu_count("copies"); };
  const long before = moves();
  EXPECT_EQ(MPI_SUCCESS, MPI_Allreduce(operands.at(), results.at(), 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  EXPECT_EQ(before + 2, moves());
  EXPECT_EQ(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, results.at(), 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  EXPECT_EQ(before + 4, moves());
}

/// An operation of the program's own is called with the program's datatype, gaps included.
TEST_F(Collectives, ThatReduceDatatypesWithGaps) {
  const Owned gaps(three_pairs());
  MPI_Op sum = sum_of_three_pairs();
  expect_same_as_on_host("Allreduce",
                         [&](void* s, void* r) { return MPI_Allreduce(s, r, 7, gaps, sum, MPI_COMM_WORLD); });
  expect_same_as_on_host("Reduce",
                         [&](void* s, void* r) { return MPI_Reduce(s, r, 7, gaps, sum, size() - 1, MPI_COMM_WORLD); });
  MPI_Op_free(&sum);
}

TEST_F(Collectives, OfFiles) {
  char name[] = "/tmp/gapless-collective-XXXXXX";
  if (rank() == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File file;
  ASSERT_EQ(MPI_SUCCESS,
            MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  const MPI_Offset mine = 4096 * rank();
  for_datatypes([&](MPI_Datatype type) {
    expect_same_as_on_host("File_write_at, File_read_at", [&](void* s, void* r) {
      const int code = MPI_File_write_at(file, mine, s, 4, type, MPI_STATUS_IGNORE);
      return code != MPI_SUCCESS ? code : MPI_File_read_at(file, mine, r, 4, type, MPI_STATUS_IGNORE);
    });
    expect_same_as_on_host("File_write_at_all, File_read_at_all", [&](void* s, void* r) {
      const int code = MPI_File_write_at_all(file, mine, s, 4, type, MPI_STATUS_IGNORE);
      return code != MPI_SUCCESS ? code : MPI_File_read_at_all(file, mine, r, 4, type, MPI_STATUS_IGNORE);
    });
  });
  MPI_Barrier(MPI_COMM_WORLD);
  // Bytes beyond the end of the file stay as they are in memory.
  expect_same_as_on_host("File_read_at beyond the end", [&](void*, void* r) {
    MPI_Status status;
    const int code = MPI_File_read_at(file, 4096 * size() - 4096 + 40, r, 500, MPI_INT, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_LT(count, 500);
    return code;
  });
  MPI_File_close(&file);
}

TEST_F(Collectives, WithNothingToMoveLeaveEverything) {
  const std::vector<int> none(processes_);
  expect_same_as_on_host("Bcast", [&](void* s, void*) { return MPI_Bcast(s, 0, MPI_INT, 0, MPI_COMM_WORLD); });
  expect_same_as_on_host("Alltoallv", [&](void* s, void* r) {
    return MPI_Alltoallv(s, none.data(), none.data(), MPI_INT, r, none.data(), none.data(), MPI_INT, MPI_COMM_WORLD);
  });
}

}  // namespace
}  // namespace gapless::test

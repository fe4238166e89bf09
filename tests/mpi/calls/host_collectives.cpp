// Collectives on noncontiguous host memory, whose parts gapless may pack: the same bytes as the library's own call
// leaves, whichever processes pack.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/allocations.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

std::vector<std::byte> filled(std::size_t bytes, int first) {
  std::vector<std::byte> memory(bytes);
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(first + static_cast<int>(i * 7 + i / 251));
  return memory;
}

using Call = std::function<int(void* sent, void* received)>;

class HostCollectives : public testing::Test {
 protected:
  static constexpr std::size_t bytes = std::size_t{1} << 20;
  MPI_Comm world_ = MPI_COMM_WORLD;
  int processes_ = size();
  int last_ = size() - 1;

  /// `packs`: does this process pack something when everything is packed?
  void expect_same(const std::string& what, const Call& native, const Call& call, bool packs = true) {
    std::vector<std::byte> wanted_sent = filled(bytes, 10 * rank()), wanted = filled(bytes, 100 + 10 * rank());
    std::vector<std::byte> sent = wanted_sent, received = wanted;
    ASSERT_EQ(MPI_SUCCESS, native(wanted_sent.data(), wanted.data())) << what;
    const auto before = packed_messages();
    ASSERT_EQ(MPI_SUCCESS, call(sent.data(), received.data())) << what;
    EXPECT_TRUE(same_bytes(wanted_sent, sent)) << what;
    EXPECT_TRUE(same_bytes(wanted, received)) << what;
    if (packs && is_everything_packed()) {
      EXPECT_LT(before, packed_messages()) << what;
    }
  }
};

/// Calls the library's own function and ours with the arguments; `packs`: for expect_same().
#define GAPLESS_EXPECT_SAME_IF(packs, name, ...)                                                                  \
  expect_same(                                                                                                    \
      "MPI_" #name,                                                                                               \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) { return GAPLESS_TEST_NATIVE(name)(__VA_ARGS__); }, \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) { return MPI_##name(__VA_ARGS__); }, packs)
#define GAPLESS_EXPECT_SAME(...) GAPLESS_EXPECT_SAME_IF(true, __VA_ARGS__)
/// The same of nonblocking ones.
#define GAPLESS_EXPECT_SAME_LATER_IF(packs, name, ...)                     \
  expect_same(                                                             \
      "MPI_" #name,                                                        \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) {            \
        MPI_Request request;                                               \
        const int code = GAPLESS_TEST_NATIVE(name)(__VA_ARGS__, &request); \
        GAPLESS_TEST_NATIVE(Wait)(&request, MPI_STATUS_IGNORE);            \
        return code;                                                       \
      },                                                                   \
      [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) {            \
        MPI_Request request;                                               \
        const int code = MPI_##name(__VA_ARGS__, &request);                \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                             \
        return code;                                                       \
      },                                                                   \
      packs)
#define GAPLESS_EXPECT_SAME_LATER(...) GAPLESS_EXPECT_SAME_LATER_IF(true, __VA_ARGS__)

/// The subarrays of a distributed transpose: this process's planes of an n x n x n array, cut along the second axis to
/// be sent, and all planes of this process's columns to receive.
class Transpose {
 public:
  explicit Transpose(int n) {
    const int processes = size(), share = n / processes;
    for (int k = 0; k < processes; ++k) {
      add(out, {share, n, n}, {share, share, n}, {0, k * share, 0});
      add(in, {n, share, n}, {share, share, n}, {k * share, 0, 0});
    }
    ones.assign(out.size(), 1);
    zeros.assign(out.size(), 0);
  }
  ~Transpose() {
    for (auto* types : {&out, &in}) {
      for (MPI_Datatype& type : *types) MPI_Type_free(&type);
    }
  }
  Transpose(const Transpose&) = delete;
  Transpose& operator=(const Transpose&) = delete;

  std::vector<MPI_Datatype> out, in;
  std::vector<int> ones, zeros;

 private:
  static void add(std::vector<MPI_Datatype>& types, const std::vector<int>& sizes, const std::vector<int>& subsizes,
                  const std::vector<int>& starts) {
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    types.push_back(type);
  }
};

TEST_F(HostCollectives, TransposesOfDistributedArrays) {
  for (const int n : {4, 8, 32}) {
    const Transpose t(n);
    const int *one = t.ones.data(), *at = t.zeros.data();
    // With one process both sides are contiguous, and so is a share of one plane.
    const bool packs = processes_ > 1 && n > processes_;
    for (int again = 0; again < 3; ++again) {
      GAPLESS_EXPECT_SAME_IF(packs, Alltoallw, s, one, at, t.out.data(), r, one, at, t.in.data(), world_);
      GAPLESS_EXPECT_SAME_LATER_IF(packs, Ialltoallw, s, one, at, t.out.data(), r, one, at, t.in.data(), world_);
    }
  }
}

#if !defined(OPEN_MPI)  // which lacks them
TEST_F(HostCollectives, OfLargeCounts) {
  const Transpose t(8);
  const std::vector<MPI_Count> one(t.ones.begin(), t.ones.end());
  const std::vector<MPI_Aint> at(t.zeros.begin(), t.zeros.end());
  const bool packs = processes_ > 1;
  GAPLESS_EXPECT_SAME_IF(packs, Alltoallw_c, s, one.data(), at.data(), t.out.data(), r, one.data(), at.data(),
                         t.in.data(), world_);
  GAPLESS_EXPECT_SAME_LATER_IF(packs, Ialltoallw_c, s, one.data(), at.data(), t.out.data(), r, one.data(), at.data(),
                               t.in.data(), world_);
  const Owned gaps(strided(300, 2, 4));
  std::vector<MPI_Aint> places;
  for (int k = 0; k < processes_; ++k) places.push_back(k);
  GAPLESS_EXPECT_SAME(Alltoallv_c, s, one.data(), places.data(), gaps, r, one.data(), places.data(), gaps, world_);
  GAPLESS_EXPECT_SAME(Bcast_c, s, 3, gaps, last_, world_);
}
#endif

/// One side contiguous, the other not, and some processes' parts empty.
TEST_F(HostCollectives, OfMixedDatatypes) {
  const Owned gaps(strided(300, 2, 4)), none(strided(1, 600, 600));
  std::vector<MPI_Datatype> out, in;
  std::vector<int> n, m, places;
  for (int k = 0; k < processes_; ++k) {
    out.push_back((k + rank()) % 2 == 0 ? gaps : none);
    in.push_back((k + rank()) % 3 == 0 ? none : gaps);
    n.push_back((k + rank()) % 4);
    places.push_back((processes_ - 1 - k) * 16384);
  }
  m = n;
  GAPLESS_EXPECT_SAME_IF(false, Alltoallw, s, n.data(), places.data(), out.data(), r, m.data(), places.data(),
                         in.data(), world_);
}

TEST_F(HostCollectives, OfOneDatatype) {
  const Owned gaps(strided(300, 2, 4));
  std::vector<int> n, at, same;
  for (int k = 0; k < processes_; ++k) {
    n.push_back(k % 3 + 1);
    at.push_back(5 * (processes_ - 1 - k));
  }
  const int mine = n[static_cast<std::size_t>(rank())];
  same.assign(n.size(), mine);
  for (int again = 0; again < 2; ++again) {
    GAPLESS_EXPECT_SAME(Bcast, s, 3, gaps, last_, world_);
    GAPLESS_EXPECT_SAME(Gather, s, 2, gaps, r, 2, gaps, last_, world_);
    GAPLESS_EXPECT_SAME(Scatter, s, 2, gaps, r, 2, gaps, 0, world_);
    GAPLESS_EXPECT_SAME(Allgather, s, 2, gaps, r, 2, gaps, world_);
    GAPLESS_EXPECT_SAME(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, gaps, world_);
    GAPLESS_EXPECT_SAME(Alltoall, s, 2, gaps, r, 2, gaps, world_);
    GAPLESS_EXPECT_SAME(Alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, gaps, world_);
    GAPLESS_EXPECT_SAME(Gatherv, s, mine, gaps, r, n.data(), at.data(), gaps, 0, world_);
    GAPLESS_EXPECT_SAME(Scatterv, s, n.data(), at.data(), gaps, r, mine, gaps, last_, world_);
    GAPLESS_EXPECT_SAME(Allgatherv, s, mine, gaps, r, n.data(), at.data(), gaps, world_);
    GAPLESS_EXPECT_SAME(Alltoallv, s, n.data(), at.data(), gaps, r, same.data(), at.data(), gaps, world_);
    GAPLESS_EXPECT_SAME_LATER(Ibcast, s, 3, gaps, last_, world_);
    GAPLESS_EXPECT_SAME_LATER(Iallgather, s, 2, gaps, r, 2, gaps, world_);
    GAPLESS_EXPECT_SAME_LATER(Ialltoallv, s, n.data(), at.data(), gaps, r, same.data(), at.data(), gaps, world_);
  }
}

/// Goes from one layout straight into the other: one move, where packing takes two.
TEST_F(HostCollectives, WhatAProcessSendsToItself) {
  const Owned from(strided(2000, 2, 4)), to(strided(1000, 4, 7));
  std::vector<int> counts(static_cast<std::size_t>(processes_)), at(counts.size());
  counts[static_cast<std::size_t>(rank())] = 3;
  const std::vector<MPI_Datatype> out(counts.size(), from), in(counts.size(), to);
  const int *n = counts.data(), *zero = at.data();
  const auto before = packed_messages();
  for (int again = 0; again < 2; ++again) {
    GAPLESS_EXPECT_SAME_IF(false, Alltoallv, s, n, zero, from, r, n, zero, to, world_);
    GAPLESS_EXPECT_SAME_LATER_IF(false, Ialltoallv, s, n, zero, from, r, n, zero, to, world_);
    GAPLESS_EXPECT_SAME_IF(false, Alltoallw, s, n, zero, out.data(), r, n, zero, in.data(), world_);
  }
  if (is_everything_packed()) {
    EXPECT_EQ(before + 6, packed_messages());
  }
}

/// Blocks of one signature and one extent, but with gaps at every other rank. What MPICH sends on in a ring it cuts
/// into pieces by the extent of the receiver's elements.
TEST_F(HostCollectives, AllgathersOfBlocksOfDifferentShapes) {
  constexpr int blocks = 40, length = 1024, extent = 2 * length;
  const bool has_gaps = rank() % 2 == 1;
  MPI_Datatype numbers, made;
  if (has_gaps) MPI_Type_vector(length, 1, 2, MPI_DOUBLE, &numbers);
  if (!has_gaps) MPI_Type_contiguous(length, MPI_DOUBLE, &numbers);
  MPI_Type_create_resized(numbers, 0, extent * sizeof(double), &made);
  MPI_Type_free(&numbers);
  const Owned block(made);
  const auto all = static_cast<std::size_t>(size());
  constexpr std::size_t each = std::size_t{blocks} * extent;
  const std::vector<int> counts(all, blocks);
  std::vector<int> places(all);
  for (std::size_t k = 0; k < all; ++k) places[k] = static_cast<int>(k) * blocks;
  const auto write = [&](std::vector<double>& memory, std::size_t from, std::size_t sender) {
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t i = 0; i < length; ++i)
        memory[from + b * extent + (has_gaps ? 2 * i : i)] = static_cast<double>(1 + sender * each + b * length + i);
    }
  };
  std::vector<double> mine(each), wanted(all * each, -1);
  write(mine, 0, static_cast<std::size_t>(rank()));
  for (std::size_t k = 0; k < all; ++k) write(wanted, k * each, k);
  for (int time = 0; time < 3; ++time) {
    std::vector<double> gathered(all * each, -1);
    EXPECT_EQ(MPI_SUCCESS, MPI_Allgatherv(mine.data(), blocks, block, gathered.data(), counts.data(), places.data(),
                                          block, MPI_COMM_WORLD));
    EXPECT_TRUE(wanted == gathered) << time;
    std::ranges::fill(gathered, -1);
    EXPECT_EQ(MPI_SUCCESS, MPI_Allgather(mine.data(), blocks, block, gathered.data(), blocks, block, MPI_COMM_WORLD));
    EXPECT_TRUE(wanted == gathered) << time;
  }
}

/// What one process packs another receives as it is: every process decides alone.
TEST_F(HostCollectives, BetweenGapsAndNone) {
  const Owned gaps(strided(3000, 2, 4)), none(strided(1, 6000, 6000));
  const MPI_Datatype mine = rank() % 2 == 0 ? gaps : none;
  const bool packs = rank() % 2 == 0;
  for (const int root : {0, last_}) {
    GAPLESS_EXPECT_SAME_IF(packs, Bcast, s, 3, mine, root, world_);
    GAPLESS_EXPECT_SAME_IF(packs, Gather, s, 2, mine, r, 2, none, root, world_);
    GAPLESS_EXPECT_SAME_IF(packs, Scatter, s, 2, none, r, 2, mine, root, world_);
  }
  GAPLESS_EXPECT_SAME_IF(packs, Allgather, s, 2, mine, r, 2, none, world_);
  GAPLESS_EXPECT_SAME_IF(packs, Allgather, s, 2, none, r, 2, mine, world_);
  GAPLESS_EXPECT_SAME_IF(packs, Alltoall, s, 2, mine, r, 2, none, world_);
}

/// The halo of a grid with borders and one without.
TEST_F(HostCollectives, HalosOfGrids) {
  constexpr int n = 24;
  int dimensions[] = {0, 0};
  MPI_Dims_create(processes_, 2, dimensions);
  for (const int is_torus : {0, 1}) {
    const int periodic[] = {is_torus, is_torus};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &grid);
    const Owned row(strided(1, n, n)), column_of(column(n, n + 2)), gaps(strided(30, 2, 4));
    const MPI_Datatype types[] = {row, row, column_of, column_of};
    const int ones[] = {1, 1, 1, 1};
    const auto at = [](int i, int j) { return static_cast<MPI_Aint>(sizeof(int)) * (i * (n + 2) + j); };
    const MPI_Aint edges[] = {at(1, 1), at(n, 1), at(1, 1), at(1, n)},
                   halos[] = {at(0, 1), at(n + 1, 1), at(1, 0), at(1, n + 1)};
    // Two processes without a torus exchange rows alone, which have no gaps.
    const bool has_neighbours = is_torus != 0 || processes_ > 1, packs = is_torus != 0 || processes_ > 2;
    for (int again = 0; again < 3; ++again) {
      GAPLESS_EXPECT_SAME_IF(packs, Neighbor_alltoallw, s, ones, edges, types, r, ones, halos, types, grid);
      GAPLESS_EXPECT_SAME_LATER_IF(packs, Ineighbor_alltoallw, s, ones, edges, types, r, ones, halos, types, grid);
    }
    GAPLESS_EXPECT_SAME(Neighbor_allgather, s, 1, column_of, r, n, MPI_INT, grid);
    GAPLESS_EXPECT_SAME_IF(has_neighbours, Neighbor_alltoall, s, 1, gaps, r, 1, gaps, grid);
    MPI_Comm_free(&grid);
  }
}

/// More dimensions than a grid of processes needs, all but the first of one process. MPICH 5.0.2 crashes beyond 16.
TEST_F(HostCollectives, HalosOfAGridOfManyDimensions) {
#if defined(OPEN_MPI)
  constexpr std::size_t most_dimensions = 40;
#else
  constexpr std::size_t most_dimensions = 16;
#endif
  std::vector<int> dimensions(most_dimensions, 1), periodic(dimensions.size(), 0);
  dimensions.front() = processes_;
  periodic.back() = 1;
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(dimensions.size()), dimensions.data(), periodic.data(), 0, &grid);
  const Owned gaps(strided(30, 2, 4));
  for (int again = 0; again < 2; ++again) GAPLESS_EXPECT_SAME(Neighbor_alltoall, s, 1, gaps, r, 1, gaps, grid);
  MPI_Comm_free(&grid);
}

/// Neither where arguments are packed nor where calls are left to the library once their arguments have been looked at.
TEST_F(HostCollectives, TheSameCallAgainAllocatesNothing) {
  constexpr int rounds = 1000, first_rounds = 100;
  const auto allocations_of = [](const auto& call) {
    std::uint64_t before = 0;
    for (int round = 0; round < rounds; ++round) {
      if (round == first_rounds) before = allocations();
      call();
    }
    return allocations() - before;
  };
  int dimensions[] = {0, 0};
  const int periodic[] = {0, 1};
  MPI_Dims_create(processes_, 2, dimensions);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &grid);
  // Two of a type with gaps are never plain: they are looked at.
  const Owned gaps(strided(2, 225, 300));
  const std::size_t most = std::max<std::size_t>(4, static_cast<std::size_t>(processes_));
  const std::vector<int> twos(most, 2);
  std::vector<int> places, to_others = twos;
  to_others[static_cast<std::size_t>(rank())] = 0;
  for (int k = 0; k < static_cast<int>(most); ++k) places.push_back(8192 * k);
  const std::vector<MPI_Aint> apart(places.begin(), places.end());
  const std::vector<MPI_Datatype> types(most, gaps);
  std::vector<std::byte> sent(8192 * most), received(sent.size());
  const auto halo = [&](decltype(&MPI_Neighbor_alltoallw) function) {
    return allocations_of([&] {
      function(sent.data(), twos.data(), apart.data(), types.data(), received.data(), twos.data(), apart.data(),
               types.data(), grid);
    });
  };
  const auto transpose = [&](decltype(&MPI_Alltoallw) function) {
    return allocations_of([&] {
      function(sent.data(), to_others.data(), places.data(), types.data(), received.data(), to_others.data(),
               places.data(), types.data(), world_);
    });
  };
  const std::uint64_t of_halo = halo(GAPLESS_TEST_NATIVE(Neighbor_alltoallw)),
                      of_transpose = transpose(GAPLESS_TEST_NATIVE(Alltoallw));
  const std::uint64_t halos = halo(MPI_Neighbor_alltoallw), transposes = transpose(MPI_Alltoallw);
  if (under_gapless()) {
    // The library's pools may still grow, now and then.
    EXPECT_LE(halos, of_halo + rounds / 100);
    EXPECT_LE(transposes, of_transpose + rounds / 100);
  }
  MPI_Comm_free(&grid);
}

#if MPI_VERSION >= 4
/// Made to be started often, so their datatypes are analysed at once, and each start packs what the memory holds then.
TEST_F(HostCollectives, PersistentOnesPackAtEachStart) {
  constexpr int columns = 300;
  const Owned gaps(strided(columns, 1, 3)), none(strided(1, columns, columns));
  const std::vector<int> ones(static_cast<std::size_t>(processes_), 1);
  std::vector<int> apart(static_cast<std::size_t>(processes_));
  for (int k = 0; k < processes_; ++k)
    apart[static_cast<std::size_t>(k)] = k * 3 * columns * static_cast<int>(sizeof(int));
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(processes_), gaps);
  std::vector<std::byte> sent = filled(bytes, 10 * rank()), received = filled(bytes, 3), wanted = received;
  MPI_Request requests[2];
  MPI_Alltoallw_init(sent.data(), ones.data(), apart.data(), types.data(), received.data(), ones.data(), apart.data(),
                     types.data(), world_, MPI_INFO_NULL, &requests[0]);
  MPI_Allgather_init(sent.data(), 1, gaps, received.data() + bytes / 2, columns, MPI_INT, world_, MPI_INFO_NULL,
                     &requests[1]);
  const auto before = packed_messages();
  for (int round = 0; round < 3; ++round) {
    for (std::byte& byte : sent) byte ^= static_cast<std::byte>(77 + round);
    GAPLESS_TEST_NATIVE(Alltoallw)
    (sent.data(), ones.data(), apart.data(), types.data(), wanted.data(), ones.data(), apart.data(), types.data(),
     world_);
    GAPLESS_TEST_NATIVE(Allgather)(sent.data(), 1, gaps, wanted.data() + bytes / 2, columns, MPI_INT, world_);
    EXPECT_EQ(MPI_SUCCESS, MPI_Startall(2, requests));
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    EXPECT_TRUE(same_bytes(wanted, received)) << "round " << round;
  }
  if (is_everything_packed()) {
    EXPECT_LE(before + 6, packed_messages());
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}
#endif

int calls_of_handler = 0;
void count_call(MPI_Comm*, int*, ...) { ++calls_of_handler; }

/// Once the program's handler has returned, MPICH returns MPI_SUCCESS from a call that has failed.
TEST_F(HostCollectives, ThatFailLeaveMemoryAlone) {
  const WithHandler communicator(MPI_COMM_WORLD, count_call);
  const Owned pairs(strided(3000, 2, 4));
  const std::vector<std::byte> untouched = filled(bytes, 100 + rank());
  std::vector<std::byte> sent = filled(bytes, rank()), received = untouched;
  MPI_Bcast(sent.data(), 1, pairs, 0, communicator);
  const auto fails = [&](auto call) {
    const int before = calls_of_handler;
    call();
    EXPECT_EQ(before + 1, calls_of_handler);
    EXPECT_TRUE(same_bytes(untouched, received));
  };
  fails([&] { MPI_Bcast(received.data(), 1, pairs, size(), communicator); });
  fails([&] { MPI_Scatter(sent.data(), 1, pairs, received.data(), 1, pairs, size(), communicator); });
}

}  // namespace
}  // namespace gapless::test

// Exchanges of GPU memory by messages, which all ranks agree upon: who goes which way, and that every part arrives
// where it belongs, among neighbours that are the same process several times over. What one process has for another is
// one message, and all that a process receives one launch.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "by_messages/exchanges.hpp"
#include "by_messages/halo.hpp"
#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int ints = 128 * 1024;

/// Every second int of that many, in places of their own for each part.
struct Side {
  Side(std::size_t parts, bool is_on_gpu) : host(parts * part_ints, none), is_on_gpu(is_on_gpu) {
    for (std::size_t k = 0; k < parts; ++k) places.push_back(static_cast<MPI_Aint>(k * part_ints * sizeof(int)));
  }
  static constexpr std::size_t part_ints = 2 * ints;

  void fill(std::size_t part, int first) {
    for (int i = 0; i < ints; ++i) host[part * part_ints + 2 * static_cast<std::size_t>(i)] = first + i;
  }
  void* memory() {
    if (!is_on_gpu) return host.data();
    std::vector<std::byte> bytes(host.size() * sizeof(int));
    std::memcpy(bytes.data(), host.data(), bytes.size());
    if (gpu) {
      gpu->write(bytes);
    } else {
      gpu.emplace(bytes);
    }
    return gpu->at();
  }
  std::vector<int> found() const {
    if (!is_on_gpu) return host;
    std::vector<int> values(host.size());
    const std::vector<std::byte> bytes = gpu->bytes();
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::vector<int> host;
  std::vector<MPI_Aint> places;
  bool is_on_gpu;
  std::optional<OnGpu> gpu;
};

class Exchanges : public testing::Test {
 protected:
  const Owned gaps_{strided(ints, 1, 2)};
};

TEST_F(Exchanges, AHaloIsOneMessageAndOneLaunch) {
  const Halo halo;
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, Halo::parts, halo.sources.data(), MPI_UNWEIGHTED, Halo::parts,
                                 halo.destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  const std::vector<int> ones(Halo::parts, 1);
  // Open MPI takes no single address for both buffers.
  const std::vector<MPI_Aint> here(Halo::parts, 0), shifted(Halo::parts, -static_cast<MPI_Aint>(sizeof(int)));
  Ints box(halo.before_exchange(0), true);
  for (int round = 0; round < rounds_before + 4; ++round) {
    box.set(halo.before_exchange(round));
    const bool is_counted = round >= rounds_before && may_be_combined() && gpu_fails_on_request();
    const std::uint64_t descriptions = combined(), parts = combined_parts(), sent = direct_messages();
    const long launches = is_counted ? gpu_count("launches") : 0, copies = is_counted ? gpu_count("copies") : 0;
    int* const values = static_cast<int*>(box.data());
    ASSERT_EQ(MPI_SUCCESS, MPI_Neighbor_alltoallw(values, ones.data(), here.data(), halo.sent.data(), values + 1,
                                                  ones.data(), shifted.data(), halo.received.data(), graph));
    if (is_counted) {
      EXPECT_EQ(launches + 1, gpu_count("launches")) << "round " << round;
      EXPECT_EQ(copies, gpu_count("copies")) << "round " << round;
      EXPECT_EQ(descriptions + 1, combined()) << "round " << round;
      EXPECT_EQ(parts + 18, combined_parts()) << "round " << round;
      EXPECT_EQ(sent + 18 + 18 + 8, direct_messages()) << "round " << round;
    }
    ASSERT_TRUE(halo.after_exchange(round) == box.values()) << "round " << round;
  }
  MPI_Comm_free(&graph);
}

/// To the rank behind three times and to itself twice, from the rank before and itself.
TEST_F(Exchanges, AmongNeighboursThatAreOneProcess) {
  const int behind = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  const std::vector<int> destinations = {behind, rank(), behind, rank(), behind};
  const std::vector<int> sources = {before, before, rank(), before, rank()};
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 5, sources.data(), MPI_UNWEIGHTED, 5, destinations.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  const std::vector<int> ones(5, 1);
  const std::vector<MPI_Datatype> types(5, gaps_);
  // Of a rank that is its own neighbour all five are to itself, in the order in which they are listed.
  const auto numbered = [](const std::vector<int>& peers) {
    std::vector<int> edges;
    for (std::size_t k = 0; k < peers.size(); ++k) {
      int edge = 0;
      for (std::size_t j = 0; j < k; ++j) edge += peers[j] == peers[k] ? 1 : 0;
      edges.push_back(edge);
    }
    return edges;
  };
  const std::vector<int> sent_edges = numbered(destinations), received_edges = numbered(sources);
  Side out(5, true), in(5, true);
  const std::uint64_t messages_before = by_messages();
  for (int round = 0; round < 6; ++round) {
    for (std::size_t k = 0; k < 5; ++k) out.fill(k, first_of(rank(), destinations[k], sent_edges[k], round));
    void* const from = out.memory();
    void* const to = in.memory();
    ASSERT_EQ(MPI_SUCCESS, MPI_Neighbor_alltoallw(from, ones.data(), out.places.data(), types.data(), to, ones.data(),
                                                  in.places.data(), types.data(), graph));
    Side wanted(5, false);
    for (std::size_t k = 0; k < 5; ++k) wanted.fill(k, first_of(sources[k], rank(), received_edges[k], round));
    ASSERT_EQ(wanted.host, in.found()) << "round " << round;
  }
  if (may_go_by_messages()) {
    EXPECT_EQ(messages_before + 6, by_messages());
  }
  MPI_Comm_free(&graph);
}

/// Ranks with an odd number have host memory, and those that are two apart exchange nothing.
TEST_F(Exchanges, OfSomeRanksWithHostMemory) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<int> counts(ranks, 1), places;
  for (std::size_t k = 0; k < ranks; ++k) {
    places.push_back(static_cast<int>(k * Side::part_ints * sizeof(int)));
    const int apart = std::abs(static_cast<int>(k) - rank());
    if (apart == 2) counts[k] = 0;
  }
  const std::vector<MPI_Datatype> types(ranks, gaps_);
  const bool is_on_gpu = rank() % 2 == 0;
  Side out(ranks, is_on_gpu), in(ranks, is_on_gpu), wanted(ranks, false);
  for (std::size_t k = 0; k < ranks; ++k) {
    out.fill(k, first_of(rank(), static_cast<int>(k), 0, 0));
    if (counts[k] != 0) wanted.fill(k, first_of(static_cast<int>(k), rank(), 0, 0));
  }
  void* const from = out.memory();
  void* const to = in.memory();
  const std::uint64_t messages_before = by_messages();
  for (int times = 0; times < rounds_before + 2; ++times) {
    MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(), places.data(), types.data(),
                  all);
  }
  EXPECT_EQ(wanted.host, in.found());
  if (may_go_by_messages()) {
    EXPECT_EQ(messages_before + rounds_before + 2, by_messages());
  }
  MPI_Comm_free(&all);
}

/// Rows of different lengths, many of them to one rank: more than one launch takes, and more than one allocation.
TEST_F(Exchanges, OfManyPartsForOneNeighbour) {
  constexpr int parts = 70;
  const int behind = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  const std::vector<int> destinations(parts, behind), sources(parts, before);
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, parts, sources.data(), MPI_UNWEIGHTED, parts, destinations.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  std::vector<int> counts, places;
  int ints_in_all = 0;
  for (int k = 0; k < parts; ++k) {
    counts.push_back(k % 7 == 0 ? 0 : 20 * k + 1);
    places.push_back(ints_in_all);
    ints_in_all += counts.back() + 3;
  }
  const auto values_of = [&](int of_rank, int round) {
    return counting(static_cast<std::size_t>(ints_in_all), of_rank * 1'000'000 + round);
  };
  Ints out(values_of(rank(), 0), true);
  const std::uint64_t parts_before = combined_parts();
  for (int round = 0; round < rounds_before + 2; ++round) {
    out.set(values_of(rank(), round));
    std::vector<int> wanted(static_cast<std::size_t>(ints_in_all), none);
    Ints in(wanted, true);
    ASSERT_EQ(MPI_SUCCESS, MPI_Neighbor_alltoallv(out.data(), counts.data(), places.data(), MPI_INT, in.data(),
                                                  counts.data(), places.data(), MPI_INT, graph));
    const std::vector<int> sent = values_of(before, round);
    for (int k = 0; k < parts; ++k)
      std::copy_n(sent.begin() + places[static_cast<std::size_t>(k)], counts[static_cast<std::size_t>(k)],
                  wanted.begin() + places[static_cast<std::size_t>(k)]);
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  if (may_be_combined()) {
    EXPECT_LE(parts_before + 60, combined_parts());
  }
  MPI_Comm_free(&graph);
}

/// A list cannot be read in one pass: then all that goes to that rank are messages of their own, and to others not.
TEST_F(Exchanges, OfPartsThatAreNotStrided) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  constexpr int length = 3000;
  std::vector<int> displacements;
  for (int k = 0; k < length; ++k) displacements.push_back(2 * k + (k * k % 3 == 1 ? 1 : 0));
  MPI_Datatype list;
  MPI_Type_create_indexed_block(length, 1, displacements.data(), MPI_INT, &list);
  MPI_Type_commit(&list);
  const Owned strided_ints(strided(length, 1, 2));
  const auto ranks = static_cast<std::size_t>(size());
  constexpr std::size_t span = 2 * length + 2;
  // Between a rank and the next one, in both directions, there are lists.
  std::vector<MPI_Datatype> types(ranks, strided_ints);
  types[static_cast<std::size_t>((rank() + 1) % size())] = list;
  types[static_cast<std::size_t>((rank() + size() - 1) % size())] = list;
  std::vector<int> counts(ranks, 1), places;
  for (std::size_t k = 0; k < ranks; ++k) places.push_back(static_cast<int>(k * span * sizeof(int)));
  const auto values_of = [&](int of_rank, int round) { return counting(ranks * span, of_rank * 1'000'000 + round); };
  Ints out(values_of(rank(), 0), true);
  for (int round = 0; round < rounds_before; ++round) {
    out.set(values_of(rank(), round));
    std::vector<int> wanted(ranks * span, none);
    Ints in(wanted, true);
    ASSERT_EQ(MPI_SUCCESS, MPI_Alltoallw(out.data(), counts.data(), places.data(), types.data(), in.data(),
                                         counts.data(), places.data(), types.data(), all));
    for (std::size_t k = 0; k < ranks; ++k) {
      const std::vector<int> sent = values_of(static_cast<int>(k), round);
      for (int i = 0; i < length; ++i) {
        const auto place =
            static_cast<std::size_t>(types[k] == list ? displacements[static_cast<std::size_t>(i)] : 2 * i);
        wanted[k * span + place] = sent[static_cast<std::size_t>(rank()) * span + place];
      }
    }
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  MPI_Type_free(&list);
  MPI_Comm_free(&all);
}

/// Packed bytes, as MPI_Pack makes them, of GPU memory and of one rank's host memory.
TEST_F(Exchanges, OfPackedBytes) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const auto ranks = static_cast<std::size_t>(size());
  constexpr std::size_t span = 4096;
  constexpr int bytes = span * sizeof(int);
  std::vector<int> counts(ranks, bytes), places;
  for (std::size_t k = 0; k < ranks; ++k) places.push_back(bytes * static_cast<int>(k));
  const auto values_of = [&](int of_rank, int round) { return counting(ranks * span, of_rank * 1'000'000 + round); };
  const bool is_on_gpu = rank() != 1;
  Ints out(values_of(rank(), 0), is_on_gpu);
  for (int round = 0; round < rounds_before + 2; ++round) {
    out.set(values_of(rank(), round));
    std::vector<int> wanted(ranks * span, none);
    Ints in(wanted, is_on_gpu);
    ASSERT_EQ(MPI_SUCCESS, MPI_Alltoallv(out.data(), counts.data(), places.data(), MPI_PACKED, in.data(), counts.data(),
                                         places.data(), MPI_PACKED, all));
    for (std::size_t k = 0; k < ranks; ++k) {
      const std::vector<int> sent = values_of(static_cast<int>(k), round);
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(span) * rank(), span,
                  wanted.begin() + static_cast<std::ptrdiff_t>(span * k));
    }
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  MPI_Comm_free(&all);
}

/// Memory that is allocated for each exchange is told to nobody.
TEST_F(Exchanges, OfMemoryThatIsAllocatedAnew) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<int> counts(ranks, 5000), places;
  for (std::size_t k = 0; k < ranks; ++k) places.push_back(static_cast<int>(5001 * k));
  const auto values_of = [&](int of_rank, int round) { return counting(ranks * 5001, of_rank * 1'000'000 + round); };
  for (int round = 0; round < rounds_before; ++round) {
    Ints out(values_of(rank(), round), true);
    std::vector<int> wanted(ranks * 5001, none);
    Ints in(wanted, true);
    ASSERT_EQ(MPI_SUCCESS, MPI_Alltoallv(out.data(), counts.data(), places.data(), MPI_INT, in.data(), counts.data(),
                                         places.data(), MPI_INT, all));
    for (std::size_t k = 0; k < ranks; ++k) {
      const std::vector<int> sent = values_of(static_cast<int>(k), round);
      std::copy_n(sent.begin() + 5001 * rank(), 5000, wanted.begin() + static_cast<std::ptrdiff_t>(5001 * k));
    }
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  MPI_Comm_free(&all);
}

/// Little GPU memory, and the neighbours before and behind of a ring of two, which are one process.
TEST_F(Exchanges, ThatAreTheLibrarys) {
  const int extents[] = {size() >= 2 ? 2 : 1}, periodic[] = {1}, ones[] = {1, 1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, extents, periodic, 0, &ring);
  const std::uint64_t messages_before = by_messages();
  for (const bool is_short : {true, false}) {
    if (ring == MPI_COMM_NULL) continue;
    const Owned few(strided(16, 1, 2));
    const MPI_Datatype types[] = {is_short ? few : gaps_, is_short ? few : gaps_};
    Side out(2, true), in(2, true);
    for (std::size_t k = 0; k < 2; ++k) out.fill(k, 7);
    void* const from = out.memory();
    void* const to = in.memory();
    MPI_Neighbor_alltoallw(from, ones, out.places.data(), types, to, ones, in.places.data(), types, ring);
    const std::vector<int> found = in.found();
    for (const std::size_t part : {std::size_t{0}, Side::part_ints}) {
      EXPECT_EQ(7, found[part]);
      EXPECT_EQ(none, found[part + 1]);
      EXPECT_EQ(is_short ? none : 7 + ints - 1, found[part + 2 * (ints - 1)]);
    }
  }
  EXPECT_EQ(messages_before, by_messages());
  if (ring != MPI_COMM_NULL) MPI_Comm_free(&ring);

  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const auto ranks = static_cast<std::size_t>(size());
  const Owned few(strided(16, 1, 2));
  std::vector<int> counts(ranks, 1), places(ranks, 0);
  const std::vector<MPI_Datatype> types(ranks, few);
  for (std::size_t k = 0; k < ranks; ++k) places[k] = static_cast<int>(k * 256);
  Side out(1, true), in(1, true);
  for (std::size_t k = 0; k < ranks; ++k) out.host[k * 64] = first_of(rank(), static_cast<int>(k), 0, 0);
  void* const from = out.memory();
  void* const to = in.memory();
  MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(), places.data(), types.data(), all);
  for (std::size_t k = 0; k < ranks; ++k) EXPECT_EQ(first_of(static_cast<int>(k), rank(), 0, 0), in.found()[k * 64]);
  EXPECT_EQ(messages_before, by_messages());
  MPI_Comm_free(&all);
}

/// Between neighbours in a ring, of whom each receives less than is sent, or whose GPU refuses: an error of that rank
/// alone, and the next exchange is right again.
TEST_F(Exchanges, ThatFailAtOneRank) {
  const int behind = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  MPI_Comm ring;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &behind, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  constexpr int length = 6000;
  const Owned type(strided(length, 1, 2));
  const int one = 1;
  const MPI_Aint here = 0;
  const MPI_Datatype sent = type;
  const auto values_of = [](int of_rank, int round) { return counting(2 * length, of_rank * 1'000'000 + round); };
  Ints out(values_of(rank(), 0), true), in(std::vector<int>(2 * length, none), true);
  const bool may_fail = may_be_combined() && gpu_fails_on_request();
  for (int round = 0; round < rounds_before + 4; ++round) {
    out.set(values_of(rank(), round));
    in.set(std::vector<int>(2 * length, none));
    const bool fails = may_fail && round == rounds_before && rank() == 0;
    const bool is_short = may_fail && round == rounds_before + 2 && rank() == 0;
    if (fails) fail_next("run");
    const Owned shorter(strided(length - 1, 1, 2));
    const MPI_Datatype received = is_short ? shorter : type;
    const int code = MPI_Neighbor_alltoallw(out.data(), &one, &here, &sent, in.data(), &one, &here, &received, ring);
    if (fails || is_short) {
      int error_class = MPI_SUCCESS;
      MPI_Error_class(code, &error_class);
      EXPECT_NE(MPI_SUCCESS, error_class) << "round " << round;
      if (is_short) {
        EXPECT_EQ(MPI_ERR_TRUNCATE, error_class);
      }
      continue;
    }
    EXPECT_EQ(MPI_SUCCESS, code) << "round " << round;
    const std::vector<int> sent_values = values_of(before, round);
    std::vector<int> wanted(2 * length, none);
    for (std::size_t i = 0; i < 2 * length; i += 2) wanted[i] = sent_values[i];
    EXPECT_TRUE(wanted == in.values()) << "round " << round;
  }
  MPI_Comm_free(&ring);
}

/// Whose GPU fails for good: that rank tells, and the others get zeros in its place, whether parts are messages, as in
/// the first exchange of a communicator, or go combined.
TEST_F(Exchanges, ThatFailForGoodAtOneRank) {
  if (!may_be_combined() || !gpu_fails_on_request()) return;
  constexpr int length = 20'000;
  for (const int rounds : {0, rounds_before}) {
    MPI_Comm all;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    Ints out(counting(length * size(), (rank() + 1) * 1'000'000), true);
    Ints in(std::vector<int>(out.values().size(), none), true);
    const auto exchange = [&] { return MPI_Alltoall(out.data(), length, MPI_INT, in.data(), length, MPI_INT, all); };
    for (int round = 0; round < rounds; ++round) ASSERT_EQ(MPI_SUCCESS, exchange());
    const bool fails = rank() == 0;
    if (fails) fail_next("run", -1);
    const int code = exchange();
    if (fails) fail_next("run", 0);
    EXPECT_EQ(fails, code != MPI_SUCCESS) << "after " << rounds;
    EXPECT_EQ(MPI_SUCCESS, exchange());
    const std::vector<int> got = in.values();
    for (int from = 0; from < size(); ++from) {
      const std::vector<int> sent = counting(length * size(), (from + 1) * 1'000'000);
      const auto first = sent.begin() + rank() * length;
      EXPECT_TRUE(std::equal(first, first + length, got.begin() + from * length)) << from << " after " << rounds;
    }
    MPI_Comm_free(&all);
  }
}

/// In a ring where a rank receives fewer parts than the one before sends: an error of that rank alone, of which the
/// sender does not hear, and for which it does not wait.
TEST_F(Exchanges, OfMorePartsThanAreReceived) {
  if (!may_be_combined()) GTEST_SKIP() << "libraries differ in what such an exchange does";
  constexpr int edges = 3, length = 6000;
  const std::vector<int> behind(edges, (rank() + 1) % size()), before(edges, (rank() + size() - 1) % size());
  MPI_Comm ring;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges, before.data(), MPI_UNWEIGHTED, edges, behind.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  const Owned type(strided(length, 1, 2));
  const std::vector<MPI_Datatype> types(edges, type);
  std::vector<MPI_Aint> places;
  for (int edge = 0; edge < edges; ++edge) places.push_back(static_cast<MPI_Aint>(edge * 2 * length * sizeof(int)));
  const std::vector<int> ones(edges, 1);
  Ints out(counting(2 * edges * length, rank()), true), in(std::vector<int>(2 * edges * length, none), true);
  for (int round = 0; round < rounds_before + 2 * edges; ++round) {
    // As many, one less, as many, two less.
    std::vector<int> received = ones;
    const int missing = (round - rounds_before) / 2;
    const bool misses = round > rounds_before && (round - rounds_before) % 2 == 1 && missing < edges - 1;
    if (misses && rank() == 0) std::fill(received.end() - 1 - missing, received.end(), 0);
    const int code = MPI_Neighbor_alltoallw(out.data(), ones.data(), places.data(), types.data(), in.data(),
                                            received.data(), places.data(), types.data(), ring);
    EXPECT_EQ(misses && rank() == 0, code != MPI_SUCCESS) << "round " << round;
  }
  MPI_Comm_free(&ring);
}

/// What cannot be begun is the caller's mistake, on all ranks.
TEST_F(Exchanges, WithMistakes) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<int> counts(ranks, 1), places;
  for (std::size_t k = 0; k < ranks; ++k) places.push_back(static_cast<int>(k * Side::part_ints * sizeof(int)));
  const std::vector<MPI_Datatype> types(ranks, gaps_), none_at_all(ranks, MPI_DATATYPE_NULL);
  Side out(ranks, true), in(ranks, true), wanted(ranks, false);
  for (std::size_t k = 0; k < ranks; ++k) {
    out.fill(k, first_of(rank(), static_cast<int>(k), 0, 0));
    wanted.fill(k, first_of(static_cast<int>(k), rank(), 0, 0));
  }
  void* const from = out.memory();
  void* const to = in.memory();
  const int code = MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(), places.data(),
                                 none_at_all.data(), all);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  EXPECT_EQ(MPI_ERR_TYPE, error_class);
  EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(),
                                       places.data(), types.data(), all));
  // Open MPI reads there.
  if (may_go_by_messages()) {
    EXPECT_NE(MPI_SUCCESS, MPI_Alltoallw(nullptr, counts.data(), places.data(), types.data(), to, counts.data(),
                                         places.data(), types.data(), all));
  }
  const std::vector<int> negative(ranks, -1);
  EXPECT_NE(MPI_SUCCESS, MPI_Alltoallw(from, negative.data(), places.data(), types.data(), to, counts.data(),
                                       places.data(), types.data(), all));
  EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(),
                                       places.data(), types.data(), all));
  EXPECT_EQ(wanted.host, in.found());
  MPI_Comm_free(&all);
}

/// MPI_Scatterv names a part for each rank, too, but the other ranks need not hear of its root's mistakes.
TEST_F(Exchanges, AMistakeOfTheRootAloneWaitsForNobody) {
  const ReturnErrors guard(MPI_COMM_WORLD);
  if (rank() == 0) {
    const auto ranks = static_cast<std::size_t>(test::size());
    const std::vector<int> counts(ranks, 1), places(ranks, 0), sent(ranks, 0);
    int received = 0;
    EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Scatterv(sent.data(), counts.data(), places.data(), MPI_DATATYPE_NULL,
                                                     &received, 1, MPI_INT, 0, MPI_COMM_WORLD)));
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Barrier(MPI_COMM_WORLD));
}

}  // namespace
}  // namespace gapless::test

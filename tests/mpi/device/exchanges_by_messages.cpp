// MPI_Alltoallw and MPI_Neighbor_alltoallw of GPU memory by messages, which all ranks agree upon: who goes which way,
// and that every part arrives where it belongs, among neighbours that are the same process several times over.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int ints = 128 * 1024, none = -1;

std::uint64_t by_messages() {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(variant_function("gapless_exchanges_by_messages"));
  return function != nullptr ? function() : 0;
}

/// Has every rank gapless, and somebody to send to?
bool may_go_by_messages() { return under_gapless() && std::getenv("GAPLESS_ALL_RANKS") != nullptr && size() > 1; }

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

/// A number for the part that goes from one rank to another by the `edge`-th way between the two.
int first_of(int from, int to, int edge, int round) { return ((from * 64 + to) * 8 + edge) * 100000 + round; }

class Exchanges : public testing::Test {
 protected:
  const Owned gaps_{strided(ints, 1, 2)};
};

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
  for (int times = 0; times < 3; ++times) {
    MPI_Alltoallw(from, counts.data(), places.data(), types.data(), to, counts.data(), places.data(), types.data(),
                  all);
  }
  EXPECT_EQ(wanted.host, in.found());
  if (may_go_by_messages()) {
    EXPECT_EQ(messages_before + 3, by_messages());
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
  EXPECT_EQ(wanted.host, in.found());
  MPI_Comm_free(&all);
}

}  // namespace
}  // namespace gapless::test

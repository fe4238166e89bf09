// Exchanges of GPU memory by messages in which a process has equal parts for all others, or one part for all of them.

#include "by_messages/equal_parts.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "by_messages/exchanges.hpp"
#include "support/environment.hpp"
#include "support/ints.hpp"

namespace gapless::test {
namespace {

TEST_P(EqualParts, OfAlltoall) {
  expect_right(ranks(), first_of_pair, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Alltoall(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), all_);
  });
}

TEST_P(EqualParts, OfAllgather) {
  expect_right(1, first_of_sender, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Allgather(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), all_);
  });
}

/// In the order of the ranks, though they are told their places.
TEST_P(EqualParts, OfAllgatherv) {
  expect_right(1, first_of_sender, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    std::vector<int> counts(ranks(), count_of(received)), places(ranks());
    for (std::size_t k = 0; k < ranks(); ++k) places[k] = static_cast<int>(k) * count_of(received);
    return MPI_Allgatherv(out, count_of(sent), type_of(sent), in, counts.data(), places.data(), type_of(received),
                          all_);
  });
}

TEST_P(EqualParts, OfEveryNeighbour) {
  MPI_Comm graph = graph_of_all();
  expect_right(ranks(), first_of_pair, [&](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Neighbor_alltoall(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), graph);
  });
  MPI_Comm_free(&graph);
}

TEST_P(EqualParts, OfNeighbourAllgathers) {
  MPI_Comm graph = graph_of_all();
  expect_right(1, first_of_sender, [&](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Neighbor_allgather(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), graph);
  });
  expect_right(1, first_of_sender, [&](void* out, const Parts& sent, void* in, const Parts& received) {
    std::vector<int> counts(ranks(), count_of(received)), places(ranks());
    for (std::size_t k = 0; k < ranks(); ++k) places[k] = static_cast<int>(k) * count_of(received);
    return MPI_Neighbor_allgatherv(out, count_of(sent), type_of(sent), in, counts.data(), places.data(),
                                   type_of(received), graph);
  });
  MPI_Comm_free(&graph);
}

/// A line of processes, whose ends have no neighbour.
TEST_P(EqualParts, OfNeighboursInALine) {
  const int extent = size(), is_periodic = 0;
  MPI_Comm line;
  MPI_Cart_create(all_, 1, &extent, &is_periodic, 0, &line);
  const Parts sent(length_, true), received(length_, false);
  Ints out(std::vector<int>(sent.ints()), true), in(std::vector<int>(2 * received.ints()), true);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> values(sent.ints(), none), wanted(2 * received.ints(), none);
    const auto own = static_cast<std::size_t>(rank());
    sent.fill(values, 0, first_of_sender(own, 0, round));
    if (rank() > 0) received.fill(wanted, 0, first_of_sender(own - 1, 0, round));
    if (rank() < size() - 1) received.fill(wanted, 1, first_of_sender(own + 1, 0, round));
    out.set(values);
    in.set(std::vector<int>(wanted.size(), none));
    ASSERT_EQ(MPI_SUCCESS, MPI_Neighbor_allgather(out.data(), count_of(sent), type_of(sent), in.data(),
                                                  count_of(received), type_of(received), line));
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  MPI_Comm_free(&line);
}

/// Neighbours gather nothing in place. Open MPI says so, and MPICH looks at nothing: either ends for all ranks.
TEST_P(EqualParts, OfNeighboursAreNotInPlace) {
  const ReturnErrors of_world(MPI_COMM_WORLD);  // where Open MPI tells that there is no topology
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  Ints in(std::vector<int>(2 * static_cast<std::size_t>(length_) * ranks()), true);
  const int extent = size(), is_periodic = 0;
  MPI_Comm line;
  MPI_Cart_create(all_, 1, &extent, &is_periodic, 0, &line);
  MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN);
  const std::uint64_t before = by_messages();
  static_cast<void>(MPI_Neighbor_allgather(MPI_IN_PLACE, 0, MPI_INT, in.data(), length_, MPI_INT, line));
  EXPECT_NE(MPI_SUCCESS, MPI_Neighbor_allgather(in.data(), length_, MPI_INT, in.data(), length_, MPI_INT, all_));
  EXPECT_EQ(before, by_messages());
  MPI_Comm_free(&line);
}

TEST_P(EqualParts, InPlaceOfAllgather) {
  const Parts parts(length_, true);
  Ints in(std::vector<int>(parts.ints() * ranks()), true);
  const auto own = static_cast<std::size_t>(rank());
  const std::uint64_t before = by_messages();
  const std::vector<int> counts(ranks(), 1);
  std::vector<int> places(ranks());
  std::iota(places.begin(), places.end(), 0);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> mine(parts.ints() * ranks(), none);
    parts.fill(mine, own, first_of_sender(own, 0, round));
    in.set(mine);
    ASSERT_EQ(MPI_SUCCESS, round % 2 == 0 ? MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), 1, gaps_, all_)
                                          : MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), counts.data(),
                                                           places.data(), gaps_, all_));
    std::vector<int> wanted(mine.size(), none);
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(wanted, k, first_of_sender(k, 0, round));
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  if (length_ >= 1024) expect_messages(before);
}

/// All parts, sent and received, lie behind one address, at places that the datatypes say.
TEST_P(EqualParts, BehindOneAddress) {
  const auto part = static_cast<std::size_t>(length_);
  std::vector<MPI_Datatype> sent(ranks()), received(ranks());
  for (std::size_t k = 0; k < ranks(); ++k) {
    const int places[] = {static_cast<int>(2 * k * part), static_cast<int>((2 * k + 1) * part)};
    MPI_Type_create_indexed_block(1, length_, &places[0], MPI_INT, &sent[k]);
    MPI_Type_create_indexed_block(1, length_, &places[1], MPI_INT, &received[k]);
    MPI_Type_commit(&sent[k]);
    MPI_Type_commit(&received[k]);
  }
  const std::vector<int> ones(ranks(), 1), nowhere(ranks(), 0);
  const auto own = static_cast<std::size_t>(rank());
  Ints memory(std::vector<int>(2 * part * ranks()), true);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> values(2 * part * ranks(), none);
    const Parts parts(length_, false);
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(values, 2 * k, first_of_pair(own, k, round));
    memory.set(values);
    ASSERT_EQ(MPI_SUCCESS, MPI_Alltoallw(memory.data(), ones.data(), nowhere.data(), sent.data(), memory.data(),
                                         ones.data(), nowhere.data(), received.data(), all_));
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(values, 2 * k + 1, first_of_pair(k, own, round));
    ASSERT_TRUE(values == memory.values()) << "round " << round;
  }
  for (std::size_t k = 0; k < ranks(); ++k) {
    MPI_Type_free(&sent[k]);
    MPI_Type_free(&received[k]);
  }
}

/// Every process names a datatype that is none, or not committed, at either side: an error of the communicator's.
TEST_P(EqualParts, OfNoDatatype) {
  if (!under_gapless() || library_reads_gpu()) GTEST_SKIP() << "Open MPI takes datatypes that are not committed";
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  const std::size_t room = static_cast<std::size_t>(length_) * ranks();
  Ints out(std::vector<int>(room), true), in(std::vector<int>(room), true);
  const std::vector<int> counts(ranks(), length_);
  std::vector<int> places(ranks());
  for (std::size_t k = 0; k < ranks(); ++k) places[k] = static_cast<int>(k) * length_;
  const int *n = counts.data(), *at = places.data();
  void *const s = out.data(), *const r = in.data();
  const auto expect_type_error = [](const char* name, int code) { EXPECT_EQ(MPI_ERR_TYPE, error_class(code)) << name; };
  MPI_Datatype not_committed;
  MPI_Type_contiguous(1, MPI_INT, &not_committed);
  for (const MPI_Datatype wrong : {MPI_DATATYPE_NULL, not_committed}) {
    for (const bool is_sent : {true, false}) {
      const MPI_Datatype sent = is_sent ? wrong : MPI_INT, received = is_sent ? MPI_INT : wrong;
      expect_type_error("Alltoall", MPI_Alltoall(s, length_, sent, r, length_, received, all_));
      expect_type_error("Alltoallv", MPI_Alltoallv(s, n, at, sent, r, n, at, received, all_));
      expect_type_error("Allgather", MPI_Allgather(s, length_, sent, r, length_, received, all_));
      expect_type_error("Allgatherv", MPI_Allgatherv(s, length_, sent, r, n, at, received, all_));
      MPI_Request request;
      expect_type_error("Iallgather", MPI_Iallgather(s, length_, sent, r, length_, received, all_, &request));
    }
    expect_type_error("Bcast", MPI_Bcast(s, length_, wrong, 0, all_));
    expect_type_error("Allgather", MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, r, length_, wrong, all_));
    expect_type_error("Allgatherv", MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, r, n, at, wrong, all_));
  }
  MPI_Type_free(&not_committed);
}

INSTANTIATE_TEST_SUITE_P(Lengths, EqualParts, testing::Values(16, 1024, 30'000));

}  // namespace
}  // namespace gapless::test

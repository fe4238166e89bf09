// Collectives in every form: blocking, nonblocking, persistent, and these with large counts, in place as well.

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "support/same_as_native.hpp"

namespace gapless::test {
namespace {

class EveryForm : public SameAsNative {
 protected:
  MPI_Comm world_ = MPI_COMM_WORLD;
  std::size_t processes_ = static_cast<std::size_t>(size());
  int root_ = size() - 1;
  bool is_root_ = rank() == size() - 1;
  Counts counts_, exchanged_;  ///< of each process; what this one exchanges with each
  Places places_, bytes_;      ///< in extents; in bytes

  void SetUp() override {
    std::vector<int> counts, exchanged, places, bytes;
    for (int k = 0; k < size(); ++k) {
      counts.push_back(1 + k % 3);
      exchanged.push_back(1 + (rank() + k) % 3);
      places.push_back(3 * (size() - 1 - k));
      bytes.push_back(2000 * k);
    }
    counts_ = counts;
    exchanged_ = exchanged;
    places_ = places;
    bytes_ = bytes;
  }
};

TEST_F(EveryForm, OfARoot) {
  const int mine = counts_[static_cast<std::size_t>(rank())];
  const Uses broadcast{true, false}, gather{true, is_root_}, scatter{is_root_, true};
  for_types([&](MPI_Datatype out, MPI_Datatype in) {
    GAPLESS_EXPECT_FORMS(broadcast, Bcast, Ibcast, s, 3, out, root_, world_);
    GAPLESS_EXPECT_FORMS(gather, Gather, Igather, s, 2, out, r, 2, in, root_, world_);
    GAPLESS_EXPECT_FORMS(gather, Gatherv, Igatherv, s, mine, out, r, counts_, places_, in, root_, world_);
    GAPLESS_EXPECT_FORMS(scatter, Scatter, Iscatter, s, 2, out, r, 2, in, root_, world_);
    GAPLESS_EXPECT_FORMS(scatter, Scatterv, Iscatterv, s, counts_, places_, out, r, mine, in, root_, world_);
  });
}

TEST_F(EveryForm, OfAll) {
  const Uses all, allgatherv = uses_of_allgatherv(true);
  const int mine = counts_[static_cast<std::size_t>(rank())];
  for_types([&](MPI_Datatype out, MPI_Datatype in) {
    const std::vector<MPI_Datatype> sent(processes_, out), received(processes_, in);
    GAPLESS_EXPECT_FORMS(all, Allgather, Iallgather, s, 2, out, r, 2, in, world_);
    GAPLESS_EXPECT_FORMS(allgatherv, Allgatherv, Iallgatherv, s, mine, out, r, counts_, places_, in, world_);
    GAPLESS_EXPECT_FORMS(all, Alltoall, Ialltoall, s, 2, out, r, 2, in, world_);
    GAPLESS_EXPECT_FORMS(all, Alltoallv, Ialltoallv, s, exchanged_, places_, out, r, exchanged_, places_, in, world_);
    GAPLESS_EXPECT_FORMS(all, Alltoallw, Ialltoallw, s, exchanged_, bytes_, sent.data(), r, exchanged_, bytes_,
                         received.data(), world_);
  });
}

TEST_F(EveryForm, OfReductions) {
  const Uses all{true, true, true}, to_root{true, is_root_, true};
  GAPLESS_EXPECT_FORMS(all, Allreduce, Iallreduce, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(all, Scan, Iscan, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(all, Exscan, Iexscan, s, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(all, Reduce_scatter, Ireduce_scatter, s, r, counts_, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(all, Reduce_scatter_block, Ireduce_scatter_block, s, r, 9, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(to_root, Reduce, Ireduce, s, r, 100, MPI_INT, MPI_MAX, root_, world_);
  GAPLESS_EXPECT_BLOCKING_FORMS(all, Reduce_local, s, r, 50, MPI_INT, MPI_SUM);
}

/// Of a line, whose ends have a neighbour less. (Of a ring of two, libraries take the messages in one order or
/// another.)
TEST_F(EveryForm, OfNeighbours) {
  const int dimensions[] = {size()}, periodic[] = {0};
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &line);
  const bool has_neighbours = size() > 1;
  const Uses all{has_neighbours, has_neighbours};
  const Counts pair({1, 1});
  const Places firsts({0, 7});
  const MPI_Aint edges[] = {64, 2000}, halos[] = {0, 2640};
  for_types([&](MPI_Datatype out, MPI_Datatype in) {
    const MPI_Datatype sent[] = {out, out}, received[] = {in, in};
    GAPLESS_EXPECT_FORMS(all, Neighbor_allgather, Ineighbor_allgather, s, 1, out, r, 1, in, line);
    GAPLESS_EXPECT_FORMS(all, Neighbor_allgatherv, Ineighbor_allgatherv, s, 1, out, r, pair, firsts, in, line);
    GAPLESS_EXPECT_FORMS(all, Neighbor_alltoall, Ineighbor_alltoall, s, 1, out, r, 1, in, line);
    GAPLESS_EXPECT_FORMS(all, Neighbor_alltoallv, Ineighbor_alltoallv, s, pair, firsts, out, r, pair, firsts, in, line);
    GAPLESS_EXPECT_FORMS(all, Neighbor_alltoallw, Ineighbor_alltoallw, s, pair, edges, sent, r, pair, halos, received,
                         line);
  });
  MPI_Comm_free(&line);
}

/// What is sent lies where other parts arrive.
TEST_F(EveryForm, InPlaceAtTheRoot) {
  const int mine = counts_[static_cast<std::size_t>(rank())];
  const Uses gather{!is_root_, is_root_}, scatter{is_root_, !is_root_};
  for_types([&](MPI_Datatype out, MPI_Datatype in) {
    GAPLESS_EXPECT_FORMS(gather, Gather, Igather, is_root_ ? MPI_IN_PLACE : s, 2, out, r, 2, in, root_, world_);
    GAPLESS_EXPECT_FORMS(gather, Gatherv, Igatherv, is_root_ ? MPI_IN_PLACE : s, mine, out, r, counts_, places_, in,
                         root_, world_);
    GAPLESS_EXPECT_FORMS(scatter, Scatter, Iscatter, s, 2, out, is_root_ ? MPI_IN_PLACE : r, 2, in, root_, world_);
    GAPLESS_EXPECT_FORMS(scatter, Scatterv, Iscatterv, s, counts_, places_, out, is_root_ ? MPI_IN_PLACE : r, mine, in,
                         root_, world_);
  });
}

TEST_F(EveryForm, InPlaceOfAll) {
  const Uses received{false, true}, allgatherv = uses_of_allgatherv(false);
  for_types([&](MPI_Datatype, MPI_Datatype in) {
    const std::vector<MPI_Datatype> types(processes_, in);
    GAPLESS_EXPECT_FORMS(received, Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, in, world_);
    GAPLESS_EXPECT_FORMS(allgatherv, Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, counts_, places_,
                         in, world_);
    GAPLESS_EXPECT_FORMS(received, Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, 2, in, world_);
    GAPLESS_EXPECT_FORMS(received, Alltoallv, Ialltoallv, MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, r,
                         exchanged_, places_, in, world_);
    GAPLESS_EXPECT_FORMS(received, Alltoallw, Ialltoallw, MPI_IN_PLACE, nullptr, nullptr, nullptr, r, exchanged_,
                         bytes_, types.data(), world_);
  });
}

TEST_F(EveryForm, InPlaceOfReductions) {
  const Uses received{false, true, true}, at_root{!is_root_, is_root_, true};
  GAPLESS_EXPECT_FORMS(received, Allreduce, Iallreduce, MPI_IN_PLACE, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(received, Scan, Iscan, MPI_IN_PLACE, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(received, Exscan, Iexscan, MPI_IN_PLACE, r, 100, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(received, Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, r, counts_, MPI_INT, MPI_SUM, world_);
  GAPLESS_EXPECT_FORMS(received, Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, r, 9, MPI_INT, MPI_SUM,
                       world_);
  GAPLESS_EXPECT_FORMS(at_root, Reduce, Ireduce, is_root_ ? MPI_IN_PLACE : s, r, 100, MPI_INT, MPI_MAX, root_, world_);
}

}  // namespace
}  // namespace gapless::test

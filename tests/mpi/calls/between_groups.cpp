// Collectives of intercommunicators, whose groups differ in size. Roots are named by the other group, and what the
// others of the root's own group give means nothing.

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "support/same_as_native.hpp"

namespace gapless::test {
namespace {

class BetweenGroups : public SameAsNative {
 protected:
  // The last process is a group of its own.
  int side_ = rank() == size() - 1 ? 1 : 0;
  MPI_Comm group_ = MPI_COMM_NULL, both_ = MPI_COMM_NULL;
  int local_ = 0, remote_ = 0, local_rank_ = 0;
  Counts counts_;          ///< what this process exchanges with each of the other group
  Counts at_root_;         ///< what each of the other group exchanges with a root
  Places places_, bytes_;  ///< in extents; in bytes

  void SetUp() override {
    if (size() < 2) GTEST_SKIP() << "one process has no other group";
    MPI_Comm_split(MPI_COMM_WORLD, side_, rank(), &group_);
    MPI_Intercomm_create(group_, 0, MPI_COMM_WORLD, side_ == 0 ? size() - 1 : 0, 5, &both_);
    MPI_Comm_set_errhandler(both_, MPI_ERRORS_RETURN);
    MPI_Comm_size(both_, &local_);
    MPI_Comm_rank(both_, &local_rank_);
    MPI_Comm_remote_size(both_, &remote_);
    std::vector<int> counts, at_root, places, bytes;
    for (int k = 0; k < remote_; ++k) {
      counts.push_back(1 + (local_rank_ + k) % 3);
      at_root.push_back(at_root_of(k));
      places.push_back(3 * (remote_ - 1 - k));
      bytes.push_back(2000 * k);
    }
    counts_ = counts;
    at_root_ = at_root;
    places_ = places;
    bytes_ = bytes;
  }
  void TearDown() override {
    if (both_ == MPI_COMM_NULL) return;
    MPI_Comm_free(&both_);
    MPI_Comm_free(&group_);
  }

  /// How much the process of that rank in its group exchanges with a root of the other one.
  static int at_root_of(int rank) { return 1 + rank % 3; }
  /// The root is the first process of that side.
  int root_of(int side) const { return side_ != side ? 0 : local_rank_ == 0 ? MPI_ROOT : MPI_PROC_NULL; }
  bool is_root_of(int side) const { return root_of(side) == MPI_ROOT; }
  bool answers_root_of(int side) const { return side_ != side; }
};

TEST_F(BetweenGroups, FromAndToARoot) {
  for (const int side : {0, 1}) {
    const int root = root_of(side);
    const int mine = at_root_of(local_rank_);
    const bool is_root = is_root_of(side), answers = answers_root_of(side);
    for_types([&](MPI_Datatype out, MPI_Datatype in) {
      const Uses broadcast{is_root || answers, false}, to_root{answers, is_root}, from_root{is_root, answers};
      GAPLESS_EXPECT_BLOCKING_FORMS(broadcast, Bcast, s, 3, out, root, both_);
      GAPLESS_EXPECT_BLOCKING_FORMS(to_root, Gather, s, 2, out, r, 2, in, root, both_);
      GAPLESS_EXPECT_BLOCKING_FORMS(to_root, Gatherv, s, mine, out, r, at_root_, places_, in, root, both_);
      GAPLESS_EXPECT_BLOCKING_FORMS(from_root, Scatter, s, 2, out, r, 2, in, root, both_);
      GAPLESS_EXPECT_BLOCKING_FORMS(from_root, Scatterv, s, at_root_, places_, out, r, mine, in, root, both_);
    });
  }
}

TEST_F(BetweenGroups, FromAllToAll) {
  const Uses all, allgatherv = uses_of_allgatherv(true);
  const int mine = at_root_of(local_rank_);
  for_types([&](MPI_Datatype out, MPI_Datatype in) {
    const std::vector<MPI_Datatype> sent(static_cast<std::size_t>(remote_), out), received(sent.size(), in);
    GAPLESS_EXPECT_BLOCKING_FORMS(all, Allgather, s, 2, out, r, 2, in, both_);
    GAPLESS_EXPECT_BLOCKING_FORMS(allgatherv, Allgatherv, s, mine, out, r, at_root_, places_, in, both_);
    GAPLESS_EXPECT_BLOCKING_FORMS(all, Alltoall, s, 2, out, r, 2, in, both_);
    GAPLESS_EXPECT_BLOCKING_FORMS(all, Alltoallv, s, counts_, places_, out, r, counts_, places_, in, both_);
    GAPLESS_EXPECT_BLOCKING_FORMS(all, Alltoallw, s, counts_, bytes_, sent.data(), r, counts_, bytes_, received.data(),
                                  both_);
  });
}

TEST_F(BetweenGroups, ThatReduce) {
  Uses all;
  all.is_reduction = true;
  // Both groups share out as many elements.
  const int each = 60 / local_;
  const Counts shares(std::vector<int>(static_cast<std::size_t>(local_), each));
  GAPLESS_EXPECT_BLOCKING_FORMS(all, Allreduce, s, r, 100, MPI_INT, MPI_SUM, both_);
  GAPLESS_EXPECT_BLOCKING_FORMS(all, Reduce_scatter, s, r, shares, MPI_INT, MPI_SUM, both_);
  GAPLESS_EXPECT_BLOCKING_FORMS(all, Reduce_scatter_block, s, r, each, MPI_INT, MPI_SUM, both_);
  for (const int side : {0, 1}) {
    const Uses to_root{answers_root_of(side), is_root_of(side), true};
    GAPLESS_EXPECT_BLOCKING_FORMS(to_root, Reduce, s, r, 100, MPI_INT, MPI_MAX, root_of(side), both_);
  }
}

/// An operation of the program's own is called with the program's datatype, gaps included.
TEST_F(BetweenGroups, ThatReduceDatatypesWithGaps) {
  const Uses all{true, true, true};
  const Owned gaps(three_pairs());
  MPI_Op sum = sum_of_three_pairs();
  const int each = 12 / local_;
  const Counts shares(std::vector<int>(static_cast<std::size_t>(local_), each));
  GAPLESS_EXPECT_BLOCKING(all, Allreduce, Allreduce, s, r, 7, gaps, sum, both_);
  GAPLESS_EXPECT_BLOCKING(all, Reduce_scatter, Reduce_scatter, s, r, shares, gaps, sum, both_);
  GAPLESS_EXPECT_BLOCKING(all, Reduce_scatter_block, Reduce_scatter_block, s, r, each, gaps, sum, both_);
  for (const int side : {0, 1}) {
    const Uses to_root{answers_root_of(side), is_root_of(side), true};
    GAPLESS_EXPECT_BLOCKING(to_root, Reduce, Reduce, s, r, 7, gaps, sum, root_of(side), both_);
  }
  MPI_Op_free(&sum);
}

}  // namespace
}  // namespace gapless::test

// Exchanges on more communicators than there may be of gapless's own.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "by_messages/exchanges.hpp"
#include "support/environment.hpp"
#include "support/ints.hpp"

namespace gapless::test {
namespace {

constexpr int part = 2048;  // ints for each rank

int handled = 0;
void note_error(MPI_Comm*, int*, ...) { ++handled; }

/// Each rank sends every rank its own rank and the receiver's. True if all is where it belongs.
bool exchange(MPI_Comm communicator) {
  std::vector<int> out, expected;
  for (int peer = 0; peer < size(); ++peer) {
    out.insert(out.end(), part, 100 * rank() + peer);
    expected.insert(expected.end(), part, 100 * peer + rank());
  }
  Ints sent(out, true), received(std::vector<int>(out.size(), none), true);
  const int code = MPI_Alltoall(sent.data(), part, MPI_INT, received.data(), part, MPI_INT, communicator);
  return code == MPI_SUCCESS && received.values() == expected;
}

class ManyCommunicators : public testing::Test {
 protected:
  void SetUp() override {
    if (!may_go_by_messages() || !is_model_fixed() || library_reads_gpu() || size() != 2)
      GTEST_SKIP() << "two ranks whose exchanges all go by messages do for all";
    MPI_Comm_dup(MPI_COMM_WORLD, &parent_);
    MPI_Comm_set_errhandler(parent_, MPI_ERRORS_RETURN);
  }
  void TearDown() override {
    for (MPI_Comm& each : made_) MPI_Comm_free(&each);
    if (parent_ != MPI_COMM_NULL) MPI_Comm_free(&parent_);
  }
  /// Makes so many, unless the library has no more.
  void make(int count) {
    MPI_Comm next;
    for (int i = 0; i < count && MPI_Comm_dup(parent_, &next) == MPI_SUCCESS; ++i) made_.push_back(next);
  }

  MPI_Comm parent_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> made_;
};

TEST_F(ManyCommunicators, LeaveMostCommunicatorsToTheProgram) {
  constexpr int communicators = 530;
  constexpr std::uint64_t most_lanes = 512;
  make(communicators);
  ASSERT_EQ(communicators, static_cast<int>(made_.size()));
  const std::uint64_t before = by_messages();
  int right = 0;
  for (const MPI_Comm each : made_) right += exchange(each);
  EXPECT_EQ(communicators, right);
  EXPECT_GT(by_messages() - before, most_lanes / 2);
  EXPECT_LE(by_messages() - before, most_lanes);
}

/// MPICH has 2048 communicators; the program has taken the last.
TEST_F(ManyCommunicators, OfWhichNoneIsLeft) {
#if defined(OPEN_MPI)
  GTEST_SKIP() << "Open MPI has as many as there is memory for";
#endif
  make(5000);
  ASSERT_LT(made_.size(), 5000U);
  MPI_Errhandler counts;
  MPI_Comm_create_errhandler(note_error, &counts);
  MPI_Comm_set_errhandler(made_.back(), counts);
  const std::uint64_t before = by_messages();
  handled = 0;
  EXPECT_TRUE(exchange(made_.back()));
  EXPECT_EQ(before, by_messages());
  EXPECT_EQ(0, handled);
  // The program's handler is in force again.
  MPI_Errhandler found;
  MPI_Comm_get_errhandler(made_.back(), &found);
  EXPECT_EQ(counts, found);
  MPI_Errhandler_free(&found);
  MPI_Errhandler_free(&counts);
  EXPECT_TRUE(exchange(made_.back()));
}

}  // namespace
}  // namespace gapless::test

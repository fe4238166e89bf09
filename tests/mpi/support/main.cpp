// main() of every MPI test program: GoogleTest on all ranks at once. Each rank runs the same tests in step; rank 0
// tells the story, the others speak only of failures. Checks are EXPECT_, never ASSERT_: a rank that left early would
// hang the rest.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>
#include <string_view>

#include "support/environment.hpp"
#include "support/random.hpp"
#include "support/statistics.hpp"

namespace {

using gapless::test::rank;

class RankListener : public testing::EmptyTestEventListener {
 public:
  explicit RankListener(bool prints) : prints_(prints) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!prints_ || !result.failed()) return;
    std::cerr << "[rank " << rank() << "] " << (result.file_name() ? result.file_name() : "?") << ":"
              << result.line_number() << ": " << result.summary() << std::endl;
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    if (prints_ && info.result()->Failed()) std::cerr << "[rank " << rank() << "] " << info.name() << " failed\n";
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  bool prints_;
};

/// A run that was to be under gapless must be: the tests would pass without it just as well.
TEST(Setup, RunsUnderGaplessWhereAsked) { EXPECT_EQ(gapless::test::expect_gapless(), gapless::test::under_gapless()); }

/// The level that an argument asks for: --threads, --serialized or --funneled.
int wanted_level(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--threads") return MPI_THREAD_MULTIPLE;
    if (argument == "--serialized") return MPI_THREAD_SERIALIZED;
    if (argument == "--funneled") return MPI_THREAD_FUNNELED;
  }
  return MPI_THREAD_SINGLE;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int wanted = wanted_level(argc, argv);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  if (provided < wanted) {
    std::cerr << "This MPI library does not provide the thread level of this run\n";
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankListener(rank() != 0));
  if (rank() == 0) std::cout << "GAPLESS_TEST_SEED=" << gapless::test::seed() << std::endl;

  const int failed = RUN_ALL_TESTS();
  const int this_rank = rank();
  MPI_Finalize();
  const gapless::test::Leftovers left = gapless::test::leftovers();
  if (left.requests + left.buffers + left.registrations == 0) return failed;
  std::cerr << "[rank " << this_rank << "] gapless is left with " << left.requests << " requests, " << left.buffers
            << " buffers and " << left.registrations << " registrations\n";
  return 1;
}

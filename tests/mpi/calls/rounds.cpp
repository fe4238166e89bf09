// Rounds of blocking messages: which of them are tried together, with no MPI library around them.
#include "mpi/calls/tried/rounds.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>

namespace gapless::test {
namespace {

using mpi::rounds::Call;
using transfer::HostWay;

constexpr std::uint64_t sent = 1 << 12, received = 2 << 12, another = 3 << 12;

HostWay call(std::uint64_t key) {
  Call one(key);
  one.end(MPI_SUCCESS, false);
  return one.way();
}

/// Makes rounds of two messages until one is tried another way than predicted.
void try_another_way() {
  constexpr int more_than_enough = 10000;
  for (int round = 0; round < more_than_enough; ++round) {
    const HostWay way = call(sent);
    ASSERT_EQ(way, call(received)) << "all messages of a round go the same way";
    if (way != HostWay::predicted) return;
  }
  FAIL() << "nothing was tried";
}

TEST(Rounds, OtherMessagesThanThoseOfTheRoundGoAsPredicted) {
  try_another_way();
  EXPECT_EQ(HostWay::predicted, call(another));
}

/// After rounds of two.
TEST(Rounds, ALongerRoundIsLearntAnew) {
  constexpr int messages = 5;
  int tried_whole = 0;
  for (int round = 0; round < 1000; ++round) {
    int tried = 0;
    for (std::uint64_t k = 0; k < messages; ++k) tried += call(sent + (k << 8)) != HostWay::predicted ? 1 : 0;
    tried_whole += tried == messages ? 1 : 0;
  }
  EXPECT_GT(tried_whole, 0);
}

}  // namespace
}  // namespace gapless::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// Exchanges in host memory whose way the run itself decides: they are tried packed and left to the library, and right
// whichever way they go, at both ends in turn.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int rounds = 400, tag = 5;
constexpr int rows = 2048, row = 3, gap = 5;  // ints; so long that packing or slots pay with every library
constexpr std::size_t span = static_cast<std::size_t>(rows) * (row + gap);

/// Some rounds are packed, and some are left to the library, as the run finds out what is sooner.
class TriedWays : public testing::Test {
 protected:
  /// `parts`: that gapless counts of a round, sent or received.
  template <class Exchange>
  void run(int messages, int parts, Exchange exchange) {
    const int partner = size() - 1 - rank();
    const Owned type(strided(rows, row, row + gap));
    // Of what is sent and received. Fewer count after the first of the others: a datatype's first uses are left.
    const std::uint64_t all = 2 * static_cast<std::uint64_t>(parts);
    int packed_rounds = 0, left_rounds = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> mine = counting(span * static_cast<std::size_t>(messages), 100000 * rank() + round);
      std::vector<int> theirs(mine.size(), -1);
      const std::uint64_t before = packed_messages() + slots_messages();
      exchange(partner, mine, theirs, type);
      const bool is_packed = packed_messages() + slots_messages() - before >= all;
      packed_rounds += is_packed ? 1 : 0;
      left_rounds += !is_packed && packed_rounds > 0 ? 1 : 0;
      const std::vector<int> sent = counting(mine.size(), 100000 * partner + round);
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const bool is_data = i % (row + gap) < row;
        ASSERT_EQ(is_data ? sent[i] : -1, theirs[i]) << "round " << round << ", int " << i;
      }
    }
    if (!under_gapless()) return;
    if (is_everything_packed()) {
      EXPECT_EQ(rounds, packed_rounds);
    } else {
      EXPECT_GE(packed_rounds, 16);
      EXPECT_GE(left_rounds, 16);
    }
  }
};

TEST_F(TriedWays, OfSendrecv) {
  run(1, 1, [](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(mine.data(), 1, type, partner, tag, theirs.data(), 1, type, partner, tag,
                                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  });
}

TEST_F(TriedWays, OfAllThatAWaitallEnds) {
  constexpr int messages = 4;
  run(messages, messages, [](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    std::array<MPI_Request, 2 * messages> requests;
    for (std::size_t i = 0; i < messages; ++i) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(&theirs[i * span], 1, type, partner, tag + static_cast<int>(i), MPI_COMM_WORLD,
                                       &requests[i]));
    }
    for (std::size_t i = 0; i < messages; ++i) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Isend(&mine[i * span], 1, type, partner, tag + static_cast<int>(i), MPI_COMM_WORLD,
                                       &requests[messages + i]));
    }
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * messages, requests.data(), MPI_STATUSES_IGNORE));
  });
}

TEST_F(TriedWays, OfAlltoallw) {
  constexpr int messages = 2;
  run(messages, 1, [](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    std::vector<int> counts(static_cast<std::size_t>(size()), 0);
    counts[static_cast<std::size_t>(partner)] = messages;
    const std::vector<int> displacements(counts.size(), 0);
    const std::vector<MPI_Datatype> types(counts.size(), type);
    EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(mine.data(), counts.data(), displacements.data(), types.data(), theirs.data(),
                                         counts.data(), displacements.data(), types.data(), MPI_COMM_WORLD));
  });
}

}  // namespace
}  // namespace gapless::test

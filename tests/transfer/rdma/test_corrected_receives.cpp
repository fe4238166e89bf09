// Which scheme receives by a fabric take after others have been timed, with times that are injected.
#include <gtest/gtest.h>

#include <array>

#include "transfer/rdma/rendezvous/corrected_receives.hpp"

namespace gapless::transfer::rdma {
namespace {

class CorrectedFabric : public testing::Test {
 protected:
  /// 128 blocks of 8 KiB at both sides, which are predicted to be written straight.
  static Ends ends() {
    const Blocks blocks{1 << 20, 128, 8192, 2 << 20};
    Ends both{blocks, blocks, {}, 128 << 10};
    both.limits.gather_entries = both.limits.scatter_entries = 4;
    both.limits.operation_bytes = 1 << 30;
    both.limits.has_immediates = both.limits.follows_mappings = true;
    return both;
  }

  /// Receives messages that take `ns[scheme]` each, and says how many went which way.
  std::array<int, scheme_count> receive(int messages, const std::array<double, scheme_count>& ns, int rank = 1,
                                        unsigned allowed = ~0u) {
    std::array<int, scheme_count> ways{};
    for (int i = 0; i < messages; ++i) {
      const auto turn = corrected_.next(ends(), model::rdma_profile, &layout_, rank, allowed);
      ++ways[static_cast<std::size_t>(turn.scheme)];
      corrected_.note(turn, ns[static_cast<std::size_t>(turn.scheme)]);
    }
    return ways;
  }

  static constexpr auto multi = static_cast<std::size_t>(Scheme::multi_write);
  CorrectedReceives corrected_{true};

 private:
  int layout_ = 0;
};

constexpr std::array<double, scheme_count> multi_is_slow{500, 500, 500, 900}, multi_is_fast{5000, 5000, 5000, 500};

TEST_F(CorrectedFabric, ASchemeThatIsSlowerThanPredictedIsLeftForThatPeerAlone) {
  ASSERT_EQ(choose(ends(), model::rdma_profile), Scheme::multi_write);
  receive(2000, multi_is_slow);
  EXPECT_LT(receive(1000, multi_is_slow)[multi], 100);
  EXPECT_EQ(receive(32, multi_is_slow, 2)[multi], 32);
}

TEST_F(CorrectedFabric, TheFastestOfAllIsFoundAndNotOnlyTheNextBest) {
  for (const Scheme fastest : {Scheme::pipelined, Scheme::gather_write, Scheme::scatter_read}) {
    std::array<double, scheme_count> ns{1000, 1000, 1000, 1000};
    const auto index = static_cast<std::size_t>(fastest);
    ns[index] = 500;
    const int rank = static_cast<int>(index) + 10;
    receive(2000, ns, rank);
    EXPECT_GT(receive(1000, ns, rank)[index], 900) << name(fastest);
  }
}

TEST_F(CorrectedFabric, ASchemeThatIsFasterStays) {
  const auto ways = receive(100000, multi_is_fast);
  EXPECT_GT(ways[multi], 97000);
  EXPECT_LT(ways[multi], 100000);
}

TEST_F(CorrectedFabric, WhatIsAloneAllowedIsTaken) {
  EXPECT_EQ(receive(4000, multi_is_slow, 1, 1u << multi)[multi], 4000);
}

TEST_F(CorrectedFabric, WhatIsNotAllowedIsNotTried) {
  EXPECT_EQ(receive(4000, multi_is_slow, 1, ~1u)[0], 0);
  EXPECT_GT(receive(4000, multi_is_slow, 1, 1u | 1u << multi)[0], 2000);
}

TEST_F(CorrectedFabric, AFixedModelIsNotCorrected) {
  corrected_ = CorrectedReceives(false);
  EXPECT_EQ(receive(4000, multi_is_slow)[multi], 4000);
}

}  // namespace
}  // namespace gapless::transfer::rdma

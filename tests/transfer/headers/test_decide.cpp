// How a message by header is fetched, in every combination of what both sides say.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "transfer/headers/decide.hpp"

namespace gapless::transfer::headers {
namespace {

constexpr std::array ways = {WayKind::slots, WayKind::exported, WayKind::fabric, WayKind::pulled};
static_assert(ways.size() + 1 == way_count, "every way is enumerated");

WaySet subset(unsigned bits) {
  WaySet result;
  for (unsigned i = 0; i < ways.size(); ++i) {
    if ((bits >> i & 1) != 0) result.add(ways[i]);
  }
  return result;
}

/// Calls check(sender, receiver, decision) for every pair of sets of ways, both memories, and sizes about the room.
template <class Check>
void for_all(Check check) {
  constexpr unsigned sets = 1u << ways.size();
  constexpr std::uint64_t room = 4096;
  for (unsigned offered = 0; offered < sets; ++offered) {
    for (unsigned can = 0; can < sets; ++can) {
      for (const bool is_on_gpu : {false, true}) {
        for (const std::uint64_t bytes : {std::uint64_t{1024}, room - 1, room, room + 1, ~std::uint64_t{0}}) {
          for (const std::uint64_t lost : {0, 3}) {
            for (const bool is_exported_on_host : {false, true}) {
              const SenderFacts sender{bytes, subset(offered), is_exported_on_host};
              const ReceiverFacts receiver{room, bytes > room ? 0 : bytes - lost, is_on_gpu, subset(can)};
              check(sender, receiver, decide(sender, receiver));
            }
          }
        }
      }
    }
  }
}

TEST(Decide, WhatDoesNotFitIsTruncatedWhateverIsOffered) {
  for_all([](const SenderFacts& sender, const ReceiverFacts& receiver, const Decision& decision) {
    EXPECT_EQ(sender.bytes > receiver.room, decision.outcome == Outcome::truncated);
    if (decision.outcome == Outcome::truncated) {
      EXPECT_EQ((Decision{.outcome = Outcome::truncated}), decision);
    }
  });
}

TEST(Decide, AWayIsTakenThatBothSidesCanGoIfThereIsOne) {
  for_all([](const SenderFacts& sender, const ReceiverFacts& receiver, const Decision& decision) {
    if (decision.outcome == Outcome::truncated) return;
    bool is_there_one = false;
    for (const WayKind way : ways) is_there_one |= sender.ways.has(way) && receiver.ways.has(way);
    EXPECT_EQ(is_there_one, decision.way != WayKind::none);
    EXPECT_EQ(is_there_one, decision.outcome != Outcome::refused);
    if (!is_there_one) {
      EXPECT_EQ(Decision{}, decision);
      return;
    }
    EXPECT_TRUE(sender.ways.has(decision.way) && receiver.ways.has(decision.way));
    EXPECT_EQ(receiver.whole, decision.bytes);
    EXPECT_EQ(receiver.whole == sender.bytes ? Outcome::whole : Outcome::partial, decision.outcome);
  });
}

TEST(Decide, WhatTheOtherSideReachesGoesByPackedMemory) {
  for_all([](const SenderFacts& sender, const ReceiverFacts& receiver, const Decision& decision) {
    const bool is_of_gpu =
        decision.way == WayKind::pulled || (decision.way == WayKind::exported && !sender.is_exported_on_host);
    const bool is_across =
        receiver.is_on_gpu ? decision.way == WayKind::slots || decision.way == WayKind::fabric : is_of_gpu;
    EXPECT_EQ(is_across, decision.goes_by_packed_memory);
  });
}

TEST(Decide, GpuMemoryIsPreferred) {
  const SenderFacts sender{2048, {WayKind::slots, WayKind::exported}};
  const ReceiverFacts receiver{2048, 2048, true, {WayKind::slots, WayKind::exported}};
  EXPECT_EQ((Decision{Outcome::whole, WayKind::exported, 2048, false}), decide(sender, receiver));
}

}  // namespace
}  // namespace gapless::transfer::headers

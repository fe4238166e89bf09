// Which way exchanges in host memory go after others like them, with times that are injected.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "layout/datatype/datatype.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/corrected_send.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::tests {
namespace {

using transfer::HostTrial, transfer::HostWay, transfer::Scheme, transfer::Side;

class HostTrials : public ::testing::Test {
 protected:
  void SetUp() override { transfer::set_correction(true); }
  void TearDown() override {
    transfer::force_scheme(std::nullopt);
    transfer::set_correction(true);
  }
};

using Ways = std::array<int, transfer::host_way_count>;
using Times = std::array<double, transfer::host_way_count>;

/// How many of so many exchanges go each way, of which one takes that long, and is followed by the next after so long.
Ways exchange(int times, std::uint64_t key, const Times& ns, const Times& until_next_ns, std::uint64_t whole = 0) {
  Ways ways{};
  for (int i = 0; i < times; ++i) {
    HostTrial trial(key);
    const auto way = static_cast<std::size_t>(trial.way());
    ++ways[way];
    trial.end(ns[way], until_next_ns[way], whole);
  }
  return ways;
}

/// The same of exchanges that the program does nothing between.
Ways exchange(int times, std::uint64_t key, const Times& ns, std::uint64_t whole = 0) {
  return exchange(times, key, ns, ns, whole);
}

constexpr std::size_t predicted = 0, native = 1, packed = 2;
constexpr Times packing_is_best{1000, 1000, 500}, library_is_best{1000, 600, 1500}, model_is_best{1000, 2000, 3000};

TEST_F(HostTrials, TheWayThatTakesTheLeastIsTaken) {
  exchange(2000, 11 << 8, packing_is_best);
  EXPECT_GT(exchange(1000, 11 << 8, packing_is_best)[packed], 900);
  exchange(2000, 12 << 8, library_is_best);
  EXPECT_GT(exchange(1000, 12 << 8, library_is_best)[native], 900);
  exchange(2000, 13 << 8, model_is_best);
  EXPECT_GT(exchange(10000, 13 << 8, model_is_best)[predicted], 9000);
}

/// As predicted, a send is over at once, and then its receiver is waited for.
TEST_F(HostTrials, WhereTheyTakeMostOfTheTimeWhatIsWaitedForAfterwardsCounts) {
  constexpr Times sent{100, 600, 1500}, received{1000, 700, 1600};
  exchange(2000, 71 << 8, sent, received);
  EXPECT_GT(exchange(1000, 71 << 8, sent, received)[native], 900);
}

TEST_F(HostTrials, WhatTheProgramComputesBetweenDoesNotCount) {
  constexpr Times sent{1000, 600, 1500}, with_computing{21000, 22000, 21500};
  exchange(2000, 72 << 8, sent, with_computing);
  EXPECT_GT(exchange(1000, 72 << 8, sent, with_computing)[native], 900);
}

TEST_F(HostTrials, TheTimeUntilTheNextIsThatToTheNextTrialOfAnyKind) {
  const auto spend = [](std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  // Natively the call itself takes all of the time; otherwise longer is waited for the receiver after it.
  Ways ways{};
  for (int i = 0; i < 1500; ++i) {
    HostTrial trial(73 << 8);
    const bool is_native = trial.way() == HostWay::native;
    ++ways[static_cast<std::size_t>(trial.way())];
    spend(std::chrono::microseconds(is_native ? 40 : 10));
    trial.end();
    if (!is_native) spend(std::chrono::microseconds(150));
  }
  EXPECT_GT(ways[native], 750);
}

TEST_F(HostTrials, OneKindSaysNothingOfAnother) {
  exchange(2000, 21 << 8, library_is_best);
  EXPECT_EQ(exchange(30, 22 << 8, library_is_best)[native], 0);
  std::thread([] { EXPECT_EQ(exchange(30, 21 << 8, library_is_best)[native], 0); }).join();
}

/// More kinds of one place than are looked for there: each begins anew, and none is wrong.
TEST_F(HostTrials, KindsThatShareAPlaceDriveEachOtherOut) {
  for (int i = 0; i < 100; ++i) {
    for (std::uint64_t kind = 0; kind < 6; ++kind) exchange(1, 31 << 8 | kind << 16, library_is_best);
  }
  exchange(2000, 31 << 8, library_is_best);
  EXPECT_GT(exchange(100, 31 << 8, library_is_best)[native], 80);
}

/// What begins alike and is not the same is not compared.
TEST_F(HostTrials, OfAnotherWholeNothingIsLearnt) {
  Ways ways{};
  for (int i = 0; i < 4000; ++i) {
    const Ways one = exchange(1, 41 << 8, library_is_best, static_cast<std::uint64_t>(i));
    for (std::size_t way = 0; way < ways.size(); ++way) ways[way] += one[way];
  }
  EXPECT_EQ(ways[predicted], 4000);
}

TEST_F(HostTrials, WhatIsOftenLeftAloneIsTriedNoMore) {
  for (unsigned i = 0; i < HostTrial::left_alone_until_tried_no_more; ++i) HostTrial(51 << 8).went_native();
  EXPECT_EQ(exchange(4000, 51 << 8, library_is_best)[predicted], 4000);
}

TEST_F(HostTrials, AForcedSchemeAndAFixedModelAreNotTried) {
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(exchange(4000, 61 << 8, library_is_best)[predicted], 4000);
  transfer::force_scheme(std::nullopt);
  transfer::set_correction(false);
  EXPECT_EQ(exchange(4000, 62 << 8, library_is_best)[predicted], 4000);
}

TEST_F(HostTrials, AScopeDecidesForNoncontiguousHostMemoryAndEndsWithIts) {
  const layout::Datatype type = layout::vector(64, 1, 66, layout::named(8, 8)), row = layout::named(8, 8);
  const transfer::Described described{type.layout, layout::facts_of(*type.layout), type.extent()};
  const transfer::Described contiguous{row.layout, layout::facts_of(*row.layout), row.extent(), true};
  const transfer::Buffer buffer{&described, 1, nullptr, {}}, plain{&contiguous, 1, nullptr, {}};
  const Scheme before = transfer::choose(buffer, Side::sender);
  {
    const auto outer = transfer::choose_always(HostWay::native);
    EXPECT_EQ(transfer::choose(buffer, Side::sender), Scheme::native);
    EXPECT_FALSE(transfer::goes_by_header(buffer));
    {
      const auto inner = transfer::choose_always(HostWay::packed);
      EXPECT_EQ(transfer::choose(buffer, Side::receiver), Scheme::packed);
      EXPECT_EQ(transfer::choose(plain, Side::receiver), Scheme::native);
      EXPECT_TRUE(transfer::is_worth_a_request(buffer));
    }
    EXPECT_EQ(transfer::choose(buffer, Side::sender), Scheme::native);
  }
  EXPECT_EQ(transfer::choose(buffer, Side::sender), before);
}

}  // namespace
}  // namespace gapless::tests

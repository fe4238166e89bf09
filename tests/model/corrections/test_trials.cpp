// Which of several ways messages go, with times that are injected.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <limits>
#include <random>

#include "model/corrections/trials.hpp"

namespace gapless::tests {
namespace {

using model::Trials;

constexpr double never = std::numeric_limits<double>::infinity();

/// Messages of which one takes that long each way.
struct Program {
  Trials trials;
  std::array<float, 3> ns;
  std::array<int, 3> ways{};
  double total_ns = 0;

  void move(int count) {
    for (int i = 0; i < count; ++i) {
      const Trials::Turn turn = trials.next();
      ++ways[turn.way];
      total_ns += static_cast<double>(ns[turn.way]);
      if (turn.is_timed) trials.note(turn, ns[turn.way]);
    }
  }
};

Trials predicted(double a, double b, double c) { return Trials(std::array{a, b, c}); }

TEST(Trials, TheFirstMessagesGoAsPredicted) {
  Program program{predicted(200, 100, 300), {100, 100, 100}};
  program.move(2 * Trials::run);
  EXPECT_EQ(program.ways[1], static_cast<int>(2 * Trials::run));
}

TEST(Trials, TheFastestIsFound) {
  for (std::uint8_t fastest = 0; fastest < 3; ++fastest) {
    Program program{predicted(200, 100, 300), {100, 100, 100}};
    program.ns[fastest] = 80;
    program.move(1000);
    EXPECT_EQ(program.trials.in_use(), fastest);
  }
}

/// Claimed messages go the way of the message before them, and the fastest way is found all the same.
TEST(Trials, WhatNobodyTimesOfARunCanBeClaimed) {
  Trials trials = predicted(200, 100, 300);
  constexpr std::array<float, 3> ns{80, 100, 100};
  int asked = 0, claimed = 0;
  while (asked + claimed < 20000) {
    const Trials::Turn turn = trials.next();
    ++asked;
    if (turn.is_timed) trials.note(turn, ns[turn.way]);
    const std::uint32_t more = trials.claim_rest();
    EXPECT_LT(more, Trials::run);
    claimed += static_cast<int>(more);
  }
  EXPECT_EQ(trials.in_use(), 0);
  EXPECT_LT(8 * asked, claimed);
}

TEST(Trials, AWayThatIsBarelyBetterIsNotTaken) {
  Program program{predicted(200, 100, 300), {97, 100, 97}};
  program.move(100000);
  EXPECT_EQ(program.trials.in_use(), 1);
}

TEST(Trials, WhatHasBeenLeftIsTakenAgainWhenItIsBetter) {
  Program program{predicted(100, 110, never), {100, 50, 0}};
  program.move(2000);
  ASSERT_EQ(program.trials.in_use(), 1);
  program.ns = {20, 50, 0};
  program.move(20000);
  EXPECT_EQ(program.trials.in_use(), 0);
}

TEST(Trials, WhatIsPredictedToBeMuchSlowerOrIsNotThereIsNeverTried) {
  Program program{predicted(100, 100 * Trials::worth_trying + 1, never), {100, 1, 1}};
  program.move(100000);
  EXPECT_EQ(program.ways[0], 100000);
}

TEST(Trials, TryingSlowWaysCostsLittle) {
  for (const float times : {2.0F, 10.0F, 100.0F}) {
    Program program{predicted(100, 110, 120), {100, 100 * times, 100 * times}};
    program.move(10000);  // the first trials tell how slow they are
    program.total_ns = 0;
    program.ways = {};
    program.move(10000000);
    EXPECT_EQ(program.trials.in_use(), 0);
    EXPECT_LT(program.total_ns / 10000000 / 100, 1 + 1.0 / 16 + 0.01) << times;
    EXPECT_GT(program.ways[1], 0) << times;
    EXPECT_GT(program.ways[2], 0) << times;
  }
}

/// What is predicted to be little slower, and is ten times as slow, takes four messages each time.
TEST(Trials, AHopelessTrialEndsEarly) {
  Program program{predicted(100, 110, never), {100, 1000, 0}};
  program.move(2 * Trials::run + Trials::first_looks);
  EXPECT_EQ(program.ways[1], static_cast<int>(Trials::first_looks));
  program.move(1);
  EXPECT_EQ(program.ways[1], static_cast<int>(Trials::first_looks));
  program.move(20000);
  EXPECT_GT(program.ways[1], static_cast<int>(Trials::first_looks));
  EXPECT_EQ(program.ways[1] % static_cast<int>(Trials::first_looks), 0);
  EXPECT_EQ(program.trials.in_use(), 0);
}

/// Its first messages are slow, for instance because memory is got for them.
TEST(Trials, ATrialThatBeginsSlowlyIsNotHopeless) {
  Program program{predicted(100, 110, never), {100, 80, 0}};
  for (int i = 0; i < 2000; ++i) {
    const bool is_first = program.trials.in_use() == 0 && program.ways[1] % static_cast<int>(Trials::run) < 3;
    program.ns[1] = is_first ? 10000 : 80;
    program.move(1);
  }
  EXPECT_EQ(program.trials.in_use(), 1);
}

/// Where messages differ so that few of them can be noted, most trials end without a comparison.
TEST(Trials, TrialsThatShowNothingCostLittle) {
  constexpr unsigned seed = 7;
  std::mt19937 random(seed);
  Trials trials = predicted(100, 110, 120);
  constexpr int messages = 1000000;
  int tried = 0, timed = 0;
  for (int i = 0; i < messages; ++i) {
    const Trials::Turn turn = trials.next();
    tried += turn.way != 0;
    timed += turn.is_timed;
    if (turn.is_timed && random() % 100 == 0) trials.note(turn, 100.0F * static_cast<float>(1 + turn.way));
  }
  EXPECT_GT(tried, 0) << "seed " << seed;
  EXPECT_LT(tried, messages / 50) << "seed " << seed;
}

TEST(Trials, AFewRunsThatAreDisturbedDecideNothing) {
  Program program{predicted(100, 110, never), {100, 120, 0}};
  for (int i = 0; i < 400; ++i) {
    program.ns = i % 4 == 3 ? std::array{500.0F, 120.0F, 0.0F} : std::array{100.0F, 120.0F, 0.0F};
    program.move(Trials::run);
  }
  EXPECT_EQ(program.trials.in_use(), 0);
}

/// Now and then the program does something else between two messages, whichever way these go.
TEST(Trials, WhatIsLongNowAndThenDoesNotCount) {
  for (const std::uint8_t fastest : {std::uint8_t{0}, std::uint8_t{1}}) {
    Program program{predicted(100, 110, never), {100, 100, 0}};
    program.ns[fastest] = 80;
    const auto usual = program.ns;
    for (int i = 0; i < 4000; ++i) {
      program.ns = usual;
      if (i % 6 == 5) program.ns = {10000, 10000, 0};
      program.move(1);
    }
    EXPECT_EQ(program.trials.in_use(), fastest);
  }
}

TEST(Trials, AMachineThatGetsSlowerIsNoReasonToLeaveAWay) {
  Program program{predicted(100, 110, 110), {100, 104, 104}};
  for (int i = 0; i < 400; ++i) {
    const auto load = static_cast<float>(i % 100 < 50 ? 1 + i % 50 : 50 - i % 50);
    program.ns = {100 * load, 104 * load, 104 * load};
    program.move(Trials::run);
  }
  EXPECT_EQ(program.trials.in_use(), 0);
}

TEST(Trials, MessagesUnderWayAtTheSameTimeAreCountedForTheirOwnRun) {
  Trials trials = predicted(100, 110, never);
  std::deque<Trials::Turn> under_way;
  float of_way[2] = {100, 50};
  for (int i = 0; i < 4000; ++i) {
    under_way.push_back(trials.next());
    if (under_way.size() < Trials::run / 2) continue;
    if (under_way.front().is_timed) trials.note(under_way.front(), of_way[under_way.front().way]);
    under_way.pop_front();
  }
  EXPECT_EQ(trials.in_use(), 1);
}

}  // namespace
}  // namespace gapless::tests

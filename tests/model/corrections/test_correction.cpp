// Which way messages go, and which are timed, with times that are injected.
#include <gtest/gtest.h>

#include <array>

#include "model/corrections/correction.hpp"

namespace gapless::tests {
namespace {

using model::Correction;
using Way = Correction::Way;

/// Messages of which one takes that long each way.
struct Program {
  Correction correction;
  float predicted_ns, other_ns;
  int trials = 0, timed = 0, messages = 0;
  double total_ns = 0;

  void send(int count) {
    for (int i = 0; i < count; ++i) {
      const Correction::Turn turn = correction.next();
      const float ns = turn.way == Way::predicted ? predicted_ns : other_ns;
      ++messages;
      total_ns += static_cast<double>(ns);
      trials += turn.way != correction.in_use() ? 1 : 0;
      timed += turn.is_timed ? 1 : 0;
      if (turn.is_timed) correction.note(turn.way, ns, ns);
    }
  }
};

TEST(Correction, NothingIsTriedInTheFirstMessages) {
  Program run{{}, 100, 10};
  run.send(static_cast<int>(Correction::before_other) - 1);
  EXPECT_EQ(run.trials, 0);
  EXPECT_EQ(run.timed, 7);
  run.send(1);
  EXPECT_EQ(run.trials, 1);
}

TEST(Correction, OneOfSixtyFourMessagesIsTimed) {
  Program run{{}, 100, 1e9F};
  run.send(64000);
  EXPECT_NEAR(run.timed, 1000, 20);
}

TEST(Correction, AWayThatIsSlowerThanTheOtherIsLeft) {
  Program run{{}, 100, 80};
  run.send(80);
  EXPECT_EQ(run.correction.in_use(), Way::predicted);
  run.send(120);
  EXPECT_EQ(run.correction.in_use(), Way::other);
}

TEST(Correction, AWayThatIsBarelyBetterIsNotTaken) {
  Program run{{}, 100, 95};
  run.send(100000);
  EXPECT_EQ(run.correction.in_use(), Way::predicted);
}

TEST(Correction, WhatHasBeenLeftIsTakenAgainWhenItIsBetter) {
  Program run{{}, 100, 50};
  run.send(4000);
  ASSERT_EQ(run.correction.in_use(), Way::other);
  run.predicted_ns = 20;
  run.send(4000);
  EXPECT_EQ(run.correction.in_use(), Way::predicted);
}

TEST(Correction, TryingASlowWayCostsLittle) {
  for (const float times : {2.0F, 10.0F, 100.0F}) {
    Program run{{}, 100, 100 * times};
    run.send(1000000);
    EXPECT_EQ(run.correction.in_use(), Way::predicted);
    EXPECT_LT(run.total_ns / run.messages / 100, 1.03) << times;
    EXPECT_GT(run.trials, 10) << times;
  }
}

TEST(Correction, AFewMessagesThatWaitForTheirPeersDecideNothing) {
  Correction correction;
  const auto note = [&](Way way, float ns) { correction.note(way, ns, ns); };
  for (std::size_t i = 0; i < Correction::fewest; ++i) {
    note(Way::predicted, i < 3 ? 1e6F : 100);
    note(Way::other, i < 3 ? 1 : 120);
  }
  EXPECT_EQ(correction.in_use(), Way::predicted);
}

TEST(Correction, FewTimesDecideNothing) {
  Correction correction;
  const auto note = [&](Way way, float ns) { correction.note(way, ns, ns); };
  for (std::size_t i = 0; i + 1 < Correction::fewest; ++i) {
    note(Way::predicted, 100);
    note(Way::other, 1);
  }
  EXPECT_EQ(correction.in_use(), Way::predicted);
  note(Way::other, 1);
  EXPECT_EQ(correction.in_use(), Way::predicted);
  note(Way::predicted, 100);
  EXPECT_EQ(correction.in_use(), Way::other);
}

/// Of each way, the time of the call and that until the next one.
Way after(std::array<float, 2> predicted, std::array<float, 2> other) {
  Correction correction;
  for (std::size_t i = 0; i < Correction::fewest; ++i) {
    correction.note(Way::predicted, predicted[0], predicted[1]);
    correction.note(Way::other, other[0], other[1]);
  }
  return correction.in_use();
}

TEST(Correction, WhatIsOverSoonerAndWaitedForLongerIsLeft) {
  EXPECT_EQ(after({10, 100}, {40, 70}), Way::other);
  EXPECT_EQ(after({40, 70}, {10, 100}), Way::predicted);
}

TEST(Correction, WhereTheProgramDoesSomethingElseTheCallDecides) {
  EXPECT_EQ(after({40, 10000}, {10, 10300}), Way::other);
  EXPECT_EQ(after({10, 10300}, {40, 10000}), Way::predicted);
}

}  // namespace
}  // namespace gapless::tests

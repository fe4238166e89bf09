// How memory that another process reads is filled, with times that are injected.
#include <gtest/gtest.h>

#include "model/corrections/filling.hpp"

namespace gapless::tests {
namespace {

using model::Filling;

/// Pieces whose copies take so long for each byte; by ordinary stores, so much longer than in the writer's own memory.
struct Writer {
  Filling filling{};
  float ordinary_ns, by_string_ns;
  int copied = 0, timed = 0, by_string = 0;

  void fill(unsigned count) {
    copied = timed = by_string = 0;
    for (unsigned i = 0; i < count; ++i) {
      const Filling::Turn turn = filling.next();
      EXPECT_TRUE(turn.is_copied() || !(turn.is_timed || turn.is_by_string)) << i;
      copied += turn.is_copied();
      timed += turn.is_timed;
      by_string += turn.is_by_string;
      if (turn.is_timed) filling.note(turn, turn.is_by_string ? by_string_ns : ordinary_ns);
    }
  }
};

constexpr unsigned first_times = 2 * Filling::enough * Filling::timed_at_first;

TEST(Filling, IsStraightWhereTheMemoryIsTouchedForTheFirstTime) {
  Writer writer{.ordinary_ns = 10, .by_string_ns = 1};
  writer.fill(Filling::untimed);
  EXPECT_EQ(0, writer.copied);
}

TEST(Filling, StaysStraightNearTheReader) {
  Writer writer{.ordinary_ns = 1.4F, .by_string_ns = 1};
  writer.fill(Filling::untimed + first_times);
  EXPECT_EQ(2 * static_cast<int>(Filling::enough), writer.timed);
  EXPECT_EQ(writer.timed, writer.copied);
  EXPECT_EQ(writer.timed / 2, writer.by_string);
  writer.fill(10 * Filling::timed_later);
  EXPECT_EQ(10, writer.timed);
  EXPECT_EQ(10, writer.copied);
  EXPECT_FALSE(writer.filling.is_far());
}

TEST(Filling, IsByStringCopiesFarFromTheReader) {
  Writer writer{.ordinary_ns = 5, .by_string_ns = 1};
  writer.fill(Filling::untimed + first_times);
  EXPECT_TRUE(writer.filling.is_far());
  constexpr int later = 10 * Filling::timed_later;
  writer.fill(later);
  EXPECT_EQ(later, writer.copied);
  EXPECT_EQ(later - 5, writer.by_string);
}

TEST(Filling, FollowsAProcessThatMoves) {
  Writer writer{.ordinary_ns = 5, .by_string_ns = 1};
  writer.fill(Filling::untimed + first_times);
  ASSERT_TRUE(writer.filling.is_far());
  writer.ordinary_ns = 1;
  writer.fill(2 * Filling::enough * Filling::timed_later);
  EXPECT_FALSE(writer.filling.is_far());
  writer.ordinary_ns = 5;
  writer.fill(2 * Filling::enough * Filling::timed_later);
  EXPECT_TRUE(writer.filling.is_far());
}

/// One time of three is that of a piece during which the writer was interrupted.
TEST(Filling, DoesNotFollowOneDisturbance) {
  Writer writer{.ordinary_ns = 1, .by_string_ns = 1};
  writer.fill(Filling::untimed + first_times);
  writer.filling.note({.is_timed = true, .is_by_string = false}, 1000);
  EXPECT_FALSE(writer.filling.is_far());
}

}  // namespace
}  // namespace gapless::tests

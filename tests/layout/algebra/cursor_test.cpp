// Cursors on layouts too large to enumerate; property_test.cpp does the small ones exhaustively.
#include "layout/algebra/cursor.hpp"

#include <gtest/gtest.h>

#include "check_layout.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

TEST(Cursor, SeeksInLargeNestsWithoutWalkingThere) {
  const Segment fields[] = {{0, 8}, {12, 4}};
  const LayoutPointer structs = repeat(segments(fields), Offset{1} << 40, 16);
  const Offset middle = (Offset{1} << 39) * 12;
  Cursor cursor(*structs, {1, 0}, middle + 3, middle + 15);
  Segment run;
  const Offset at = (Offset{1} << 39) * 16;
  ASSERT_TRUE(cursor.next(run));
  EXPECT_EQ(run, (Segment{at + 3, 5}));
  ASSERT_TRUE(cursor.next(run));
  EXPECT_EQ(run, (Segment{at + 12, 4}));
  ASSERT_TRUE(cursor.next(run));
  EXPECT_EQ(run, (Segment{at + 16, 3}));
  EXPECT_FALSE(cursor.next(run));
  EXPECT_FALSE(cursor.next(run));
}

TEST(Cursor, EmptyRangesAndLayoutsHaveNoRuns) {
  Segment run;
  EXPECT_FALSE(Cursor(*empty(), {5, 8}, 0, 0).next(run));
  EXPECT_FALSE(Cursor(*block(0, 8), {5, 8}, 16, 16).next(run));
  EXPECT_FALSE(Cursor(*block(0, 8), {0, 8}, 0, 0).next(run));
}

TEST(Cursor, MovesKeepTheirPlace) {
  const LayoutPointer layout = repeat(block(0, 4), 3, 10);
  Cursor first(*layout, {2, 100}, 0, 24);
  Segment run;
  ASSERT_TRUE(first.next(run));
  Cursor second = std::move(first);
  ASSERT_TRUE(second.next(run));
  EXPECT_EQ(run, (Segment{10, 4}));
}

TEST(Cursor, WalksIndexesAndSumsOfLargeParts) {
  const LayoutPointer vector = repeat(block(0, 8), 100'000, 16), other = repeat(block(0, 4), 70'000, 12);
  const Offset offsets[] = {5'000'000, 0, 20'000'000};
  const LayoutPointer terms[] = {index(vector, offsets), shift(other, 40'000'000), vector};
  const LayoutPointer sum = concatenate(terms);
  ASSERT_EQ(sum->core, Core::sum);
  // Around every seam.
  Offset seam = 0;
  for (const Offset part : {vector->size, vector->size, vector->size, other->size}) {
    seam += part;
    std::vector<Offset> visited, expected;
    for (const Segment& run : segments_of(*sum, {2, 100'000'000}, seam - 13, seam + 13)) {
      for (Offset i = 0; i < run.length; ++i) visited.push_back(run.offset + i);
    }
    for (Offset k = seam - 13; k < seam + 13; ++k) expected.push_back(offset_of(*sum, k));
    EXPECT_EQ(visited, expected);
  }
  EXPECT_EQ(segment_count(*sum), 470'000);
  const std::vector<Segment> across = segments_of(*sum, {2, 100'000'000}, sum->size - 1, sum->size + 1);
  ASSERT_EQ(across.size(), 2u);
  EXPECT_EQ(across[1], (Segment{105'000'000, 1}));
}

}  // namespace
}  // namespace gapless::testing

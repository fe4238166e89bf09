// Which pairs of layouts have a common refinement; property_test.cpp checks what it says.
#include "layout/algebra/refine.hpp"

#include <gtest/gtest.h>

#include "layout/algebra/canonical.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

TEST(Refine, ContiguousAgainstAnything) {
  const LayoutPointer strided = repeat(repeat(block(3, 4), 5, 16), 7, 1000);
  const std::optional<PairedStrided> paired = refine(*block(100, 140), *strided);
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->length, 4);
  EXPECT_EQ(paired->source_base, 100);
  EXPECT_EQ(paired->destination_base, 3);
  EXPECT_EQ(paired->modes, (std::vector<PairedMode>{{5, 4, 16}, {7, 20, 1000}}));
}

TEST(Refine, MergesWhatBothSidesContinue) {
  const LayoutPointer a = repeat(block(0, 4), 12, 8), b = repeat(repeat(block(0, 4), 3, 16), 4, 48);
  const std::optional<PairedStrided> paired = refine(*a, *b);
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->modes, (std::vector<PairedMode>{{12, 8, 16}}));
}

TEST(Refine, SplitsAtTheFinerBoundary) {
  const std::optional<PairedStrided> paired =
      refine(*repeat(block(0, 8), 6, 24), *repeat(repeat(block(0, 2), 4, 10), 6, 100));
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->length, 2);
  EXPECT_EQ(paired->modes, (std::vector<PairedMode>{{4, 2, 10}, {6, 24, 100}}));
}

TEST(Refine, RefusesWhatDoesNotDivide) {
  const LayoutPointer fours = repeat(block(0, 4), 6, 8), sixes = repeat(block(0, 6), 4, 8);
  EXPECT_FALSE(refine(*fours, *sixes));
  EXPECT_FALSE(refine(*fours, *block(0, 23)));
  const Offset offsets[] = {0, 10, 90};
  EXPECT_FALSE(refine(*index(block(0, 8), offsets), *fours));
}

TEST(Refine, EmptyPairsWithEmpty) {
  const std::optional<PairedStrided> paired = refine(*empty(), *empty());
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->length, 0);
  EXPECT_TRUE(paired->modes.empty());
}

}  // namespace
}  // namespace gapless::testing

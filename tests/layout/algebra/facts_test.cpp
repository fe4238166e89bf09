// Facts of large layouts, and how far overlap can be decided; property_test.cpp checks small ones exhaustively.
#include "layout/algebra/facts.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "layout/algebra/canonical.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

constexpr Offset many = static_cast<Offset>(recognition_budget) * 4;

TEST(Facts, OfALargeSubarray) {
  // 4-D box inside 64^4 doubles.
  LayoutPointer box = block(8, 62 * 8);
  for (const Offset stride : {64 * 8, 64 * 64 * 8, 64 * 64 * 64 * 8}) box = repeat(box, 62, stride);
  const Facts facts = facts_of(*box);
  EXPECT_EQ(facts.block_count, 62 * 62 * 62);
  EXPECT_EQ(facts.shortest_block, 496);
  EXPECT_EQ(facts.longest_block, 496);
  EXPECT_EQ(facts.alignment, 16);
  EXPECT_TRUE(is_injective(*box, {1, 0}));
  EXPECT_EQ(facts.true_lower_bound, 8);
  EXPECT_EQ(facts.true_upper_bound, 8 + 61 * (64 + 64 * 64 + 64 * 64 * 64) * 8 + 496);
}

TEST(Facts, OfTheEmptyLayout) {
  const Facts facts = facts_of(*empty());
  EXPECT_EQ(facts.size, 0);
  EXPECT_EQ(facts.block_count, 0);
  EXPECT_EQ(facts.shortest_block, 0);
  EXPECT_EQ(facts.alignment, 1);
  EXPECT_TRUE(is_injective(*empty(), {1, 0}));
}

TEST(Facts, RowsAreBegunOncePerListEntryOrNestRow) {
  const auto rows = [](const LayoutPointer& layout) { return facts_of(*layout).row_count; };
  EXPECT_EQ(rows(empty()), 0);
  EXPECT_EQ(rows(block(0, 100)), 1);
  const LayoutPointer row = repeat(block(0, 4), 10, 16);
  EXPECT_EQ(rows(row), 1);
  EXPECT_EQ(rows(repeat(repeat(row, 5, 1000), 3, 10'000)), 15);
  const Offset places[] = {0, 500, 900, 3000};
  EXPECT_EQ(rows(index(block(0, 4), places)), 4);
  EXPECT_EQ(rows(repeat(index(row, places), 7, 10'000)), 28);
  const LayoutPointer ragged[] = {block(0, 4), block(100, 9), block(300, 5)};
  EXPECT_EQ(rows(repeat(concatenate(ragged), 6, 1000)), 18);
  const LayoutPointer parts[] = {row, repeat(repeat(block(1000, 8), 4, 24), 3, 500)};
  EXPECT_EQ(rows(concatenate(parts)), 4);
}

TEST(Facts, EveryBlockOfALargeTransposeIsARow) {
  const auto rows = [](Offset count, Offset within, Offset between) {
    return facts_of(*repeat(repeat(block(0, 8), count, within), 100, between)).row_count;
  };
  EXPECT_EQ(rows(513, 1040, 8), 51'300);
  EXPECT_EQ(rows(513, -1040, -8), 51'300);
  EXPECT_EQ(rows(512, 1040, 8), 100) << "its lines stay in the first-level cache";
  EXPECT_EQ(rows(33, 1024, 8), 3'300) << "its lines share four sets";
  EXPECT_EQ(rows(32, 1024, 8), 100);
  EXPECT_EQ(rows(513, 1040, 64), 100) << "no two blocks share a cache line";
  EXPECT_EQ(rows(513, 16, 10'000), 100);
}

TEST(Injective, LargeNestsInAnyOrderAndDirection) {
  EXPECT_TRUE(is_injective(*repeat(repeat(block(0, 8), many, 800), 100, 8), {1, 0}));
  EXPECT_TRUE(is_injective(*repeat(repeat(block(0, 8), many, -800), 100, 8), {1, 0}));
  EXPECT_FALSE(is_injective(*repeat(repeat(block(0, 8), many, 800), 101, 8), {1, 0}));
  EXPECT_FALSE(is_injective(*repeat(block(0, 8), many, 7), {1, 0}));
  EXPECT_FALSE(is_injective(*repeat(block(0, 8), many, 0), {1, 0}));
}

TEST(Injective, RepetitionsByTheirExtent) {
  const LayoutPointer column = repeat(block(0, 8), many, 800);
  EXPECT_TRUE(is_injective(*column, {100, 8}));
  EXPECT_FALSE(is_injective(*column, {101, 8}));
  EXPECT_FALSE(is_injective(*column, {2, 0}));
  EXPECT_TRUE(is_injective(*column, {1, 0}));
  EXPECT_TRUE(is_injective(*column, {0, 0}));
  constexpr Offset most = std::numeric_limits<Offset>::max();
  EXPECT_FALSE(is_injective(*column, {most, most})) << "reaches beyond 63 bits, so nothing is shown";
}

TEST(Injective, LargeLists) {
  std::vector<Offset> offsets;
  for (Offset i = 0; i < many; ++i) offsets.push_back(i * 7919 % many * 8);
  EXPECT_TRUE(is_injective(*index(block(0, 8), offsets), {1, 0}));
  EXPECT_TRUE(is_injective(*index(block(0, 8), offsets), {10, many * 8}));
  offsets[5] += 4;
  EXPECT_FALSE(is_injective(*index(block(0, 8), offsets), {1, 0}));
  offsets[5] = offsets[1000];
  EXPECT_FALSE(is_injective(*index(block(0, 8), offsets), {1, 0}));
}

TEST(Injective, RunsOfAListApartThoughTheirEntriesInterleave) {
  // Some columns here, some there: each column's hull holds its neighbours.
  std::vector<Offset> columns;
  for (Offset i = 0, first = 0; i < 4; ++i, first += 10'000'000) {
    for (Offset column = 0; column < 700 + 50 * i; ++column) columns.push_back(first + 8 * column);
  }
  const LayoutPointer panels = index(repeat(block(0, 8), 1000, 8000), columns);
  ASSERT_EQ(panels->core, Core::index);
  ASSERT_TRUE(panels->offsets.has_runs());
  EXPECT_TRUE(is_injective(*panels, {1, 0}));
  EXPECT_TRUE(is_injective(*panels, {2, 40'000'000}));
  EXPECT_FALSE(is_injective(*panels, {2, 5'000'000}));
  columns.back() = columns.front();
  EXPECT_FALSE(is_injective(*index(repeat(block(0, 8), 1000, 8000), columns), {1, 0}));
}

TEST(Injective, FieldsOfOneStructGatheredOneByOne) {
  // x of every particle, then y, then z: the parts interleave in memory.
  const LayoutPointer field = repeat(block(0, 8), many, 24);
  const LayoutPointer terms[] = {field, shift(field, 8), shift(field, 16)};
  EXPECT_TRUE(is_injective(*concatenate(terms), {1, 0}));
  const LayoutPointer overlapping[] = {field, repeat(block(4, 8), many, 24), repeat(block(16, 8), many, 24)};
  EXPECT_FALSE(is_injective(*concatenate(overlapping), {1, 0}));
  const LayoutPointer wide = repeat(block(8, 16), many + 5, 24);
  const LayoutPointer mixed[] = {field, wide};
  EXPECT_TRUE(is_injective(*concatenate(mixed), {1, 0}));
  const LayoutPointer wider[] = {field, repeat(block(8, 17), many, 24)};
  EXPECT_FALSE(is_injective(*concatenate(wider), {1, 0}));
}

TEST(Injective, ListsRepeatedInsideTheirOwnGaps) {
  // Element i of three arrays, for every i: the mode steps inside the list's gaps.
  const Offset arrays[] = {0, 1'000'000, 4'000'000};
  EXPECT_TRUE(is_injective(*repeat(index(block(0, 8), arrays), many, 8), {1, 0}));
  EXPECT_FALSE(is_injective(*repeat(index(block(0, 8), arrays), many, 7), {1, 0}));
  EXPECT_FALSE(is_injective(*repeat(index(block(0, 8), arrays), 1'000'000, 8), {1, 0}));
  // The same by whole parts, and repeated by the caller.
  const LayoutPointer terms[] = {repeat(block(0, 8), many, 16), repeat(block(8, 4), many + 1, 32)};
  EXPECT_TRUE(is_injective(*concatenate(terms), {1, 0}));
  EXPECT_TRUE(is_injective(*concatenate(terms), {2, Offset{32} * (many + 1)}));
  EXPECT_FALSE(is_injective(*concatenate(terms), {2, 8}));
}

}  // namespace
}  // namespace gapless::testing

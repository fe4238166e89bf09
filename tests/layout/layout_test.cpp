// Tables, equality, hash and offsets of layouts.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "check_layout.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

TEST(OffsetTable, IsNarrowWhereEveryValueFits) {
  constexpr Offset least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  const Offset fits[] = {0, least, most}, high[] = {0, most + 1}, low[] = {0, least - 1};
  const OffsetTable narrow(fits);
  EXPECT_TRUE(narrow.is_narrow());
  EXPECT_EQ(narrow.memory_bytes(), 12u);
  EXPECT_EQ(narrow[1], least);
  EXPECT_EQ(narrow[2], most);
  for (const auto& values : {high, low}) {
    const OffsetTable wide({values, 2});
    EXPECT_FALSE(wide.is_narrow());
    EXPECT_EQ(wide.memory_bytes(), 16u);
    EXPECT_EQ(wide[1], values[1]);
  }
}

TEST(OffsetTable, ComparesEntriesAndSharesThemInCopies) {
  const Offset values[] = {1, 2, 3}, others[] = {1, 2, 4};
  const OffsetTable table(values), copy = table;
  EXPECT_EQ(copy.narrow().data(), table.narrow().data());
  EXPECT_EQ(table, copy);
  EXPECT_EQ(table, OffsetTable(values));
  EXPECT_NE(table, OffsetTable(others));
  EXPECT_NE(table, OffsetTable{});
  EXPECT_TRUE(OffsetTable{}.empty());
  EXPECT_EQ(OffsetTable{}, OffsetTable(std::span<const Offset>{}));
}

TEST(OffsetTable, KeepsRunsWhereTheySaveMemory) {
  std::vector<Offset> values, irregular;
  for (Offset run = 0; run < 100; ++run) {
    for (Offset i = 0; i < 5 + run % 7; ++i) values.push_back(run * run * 1000 - 12 * i);
    irregular.push_back(run * run);
  }
  const OffsetTable table = OffsetTable::compressed(values);
  ASSERT_TRUE(table.has_runs());
  EXPECT_EQ(table.run_count(), 100u);
  EXPECT_LT(table.memory_bytes(), OffsetTable(values).memory_bytes() / 2);
  ASSERT_EQ(table.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(table[i], values[i]);
    const OffsetRun run = table.run(table.run_of(static_cast<Offset>(i)));
    EXPECT_TRUE(run.first <= static_cast<Offset>(i) && static_cast<Offset>(i) < run.first + run.count);
  }
  EXPECT_EQ(table.expanded(), OffsetTable(values));
  EXPECT_EQ(table, OffsetTable::compressed(values));
  values.back() += 1;
  EXPECT_NE(table, OffsetTable::compressed(values));
  EXPECT_FALSE(OffsetTable::compressed(irregular).has_runs());
  EXPECT_EQ(OffsetTable::compressed(irregular), OffsetTable(irregular));
}

TEST(OffsetTable, RunsAreNarrowWhereTheyCanBe) {
  std::vector<OffsetRun> runs{{0, 0, 1000, 1 << 20}, {1000, -500, 2000, 1 << 20}};
  EXPECT_EQ(OffsetTable::of_runs(runs)[2999], -500 + 1999 * (Offset{1} << 20));
  runs.push_back({3000, Offset{1} << 40, Offset{1} << 33, 1 << 20});
  const OffsetTable table = OffsetTable::of_runs(runs);
  EXPECT_EQ(table.size(), 3000 + (std::size_t{1} << 33));
  EXPECT_EQ(table[3001], (Offset{1} << 40) + (1 << 20));
}

TEST(Equality, SeesEveryField) {
  const Offset offsets[] = {0, 16, 40}, moved[] = {0, 16, 48};
  const Segment runs[] = {{0, 8}, {16, 4}, {40, 1}}, longer[] = {{0, 8}, {16, 4}, {40, 2}};
  const LayoutPointer terms[] = {repeat(block(0, 8), 99, 16), repeat(block(9000, 4), 99, 8)};
  const LayoutPointer other_terms[] = {repeat(block(0, 8), 99, 16), repeat(block(9000, 4), 99, 12)};
  const LayoutPointer all[] = {empty(),
                               block(0, 8),
                               block(8, 8),
                               block(0, 16),
                               repeat(block(0, 8), 3, 16),
                               repeat(block(0, 8), 3, 24),
                               repeat(block(0, 8), 4, 16),
                               repeat(block(0, 4), 6, 16),
                               index(block(0, 8), offsets),
                               index(block(0, 8), moved),
                               index(block(0, 4), offsets),
                               segments(runs),
                               segments(longer),
                               concatenate(terms),
                               concatenate(other_terms)};
  std::set<std::size_t> hashes;
  for (std::size_t i = 0; i < std::size(all); ++i) {
    for (std::size_t j = 0; j < std::size(all); ++j) EXPECT_EQ(*all[i] == *all[j], i == j) << i << " " << j;
    hashes.insert(hash(*all[i]));
  }
  EXPECT_EQ(hashes.size(), std::size(all));
}

TEST(OffsetOf, IsExactBeyondFourGigabytes) {
  // 3 GiB rows, 5 GiB apart, 2^20 of them, moved below zero.
  const Offset gigabyte = Offset{1} << 30;
  const LayoutPointer rows = repeat(block(-gigabyte * 7, 3 * gigabyte), 1 << 20, 5 * gigabyte);
  EXPECT_EQ(rows->size, 3 * gigabyte << 20);
  EXPECT_EQ(offset_of(*rows, 0), -7 * gigabyte);
  EXPECT_EQ(offset_of(*rows, 3 * gigabyte * 1000 + 123), -7 * gigabyte + 5 * gigabyte * 1000 + 123);
  // Lists whose offsets and packed positions need more than 32 bits.
  const Segment runs[] = {{0, 6 * gigabyte}, {gigabyte * 100, 1}, {gigabyte * 50, 9 * gigabyte}};
  const LayoutPointer list = segments(runs);
  EXPECT_EQ(offset_of(*list, 6 * gigabyte - 1), 6 * gigabyte - 1);
  EXPECT_EQ(offset_of(*list, 6 * gigabyte), gigabyte * 100);
  EXPECT_EQ(offset_of(*list, list->size - 1), gigabyte * 59 - 1);
  expect_invariants(*list);
}

}  // namespace
}  // namespace gapless::testing

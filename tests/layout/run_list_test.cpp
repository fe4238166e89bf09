// Gathered runs against a plain list of them.
#include "layout/run_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "../support/seed.hpp"
#include "layout/algebra/build.hpp"

namespace gapless::layout {
namespace {

using build::RunList;
using build::Runs;

/// What append() promises, in as few words.
std::vector<Segment> fused(const std::vector<Segment>& runs) {
  std::vector<Segment> list;
  for (const Segment& run : runs) {
    if (run.length == 0) continue;
    if (!list.empty() && list.back().offset + list.back().length == run.offset) {
      list.back().length += run.length;
    } else {
      list.push_back(run);
    }
  }
  return list;
}

void expect_gathers(const std::vector<Segment>& runs) {
  const std::vector<Segment> expected = fused(runs);
  RunList list;
  for (const Segment& run : runs) list.append(run);
  ASSERT_EQ(expected.size(), list.size());
  if (expected.empty()) return;
  const Runs all = list.runs();
  Offset end = 0;
  std::vector<Offset> ends;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i], all[i]) << i;
    ASSERT_EQ(expected[i], all.from(i)[0]) << i;
    ASSERT_EQ(expected[i], all.first(i + 1).back()) << i;
    ends.push_back(end += expected[i].length);
  }
  const OffsetTable stored_ends = list.take_ends();
  const OffsetTable offsets = list.take_offsets(expected.size() % 2 == 0);
  ASSERT_EQ(expected.size(), offsets.size());
  ASSERT_EQ(expected.size(), stored_ends.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].offset - expected[0].offset, offsets[i]) << i;
    ASSERT_EQ(ends[i], stored_ends[i]) << i;
  }
}

constexpr Offset far_away = Offset{1} << 40;

TEST(RunList, KeepsRunsOfEveryWidth) {
  expect_gathers({});
  expect_gathers({{5, 0}});
  expect_gathers({{far_away, 4}});
  expect_gathers({{0, 4}, {8, 4}, {16, 4}});
  expect_gathers({{0, 4}, {4, 4}, {16, 4}, {20, 4}, {32, 4}});             // all of double length
  expect_gathers({{0, 4}, {8, 4}, {16, 5}, {32, 4}});                      // lengths begin to differ late
  expect_gathers({{far_away, 4}, {far_away + 8, 4}, {far_away - 9, 4}});   // near each other
  expect_gathers({{0, 4}, {8, 5}, {far_away, 4}, {16, 4}});                // one is not
  expect_gathers({{0, far_away}, {2 * far_away, far_away}});               // long, of one length
  expect_gathers({{0, 4}, {far_away, far_away}, {5 * far_away, 4}});       // long, of different lengths
  expect_gathers({{0, far_away}, {far_away + 8, 4}, {far_away + 16, 8}});  // the first is long
}

TEST(RunList, KeepsRandomRuns) {
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 300; ++round) {
    std::vector<Segment> runs;
    const auto width = random() % 3 == 0 ? far_away : Offset{1000};
    Offset next = 0;
    for (auto i = random() % 40; i > 0; --i) {
      const auto length = static_cast<Offset>(random() % (round % 2 == 0 ? 3 : 2)) * 4;
      runs.push_back({next, length});
      next = random() % 2 == 0 ? next + length : static_cast<Offset>(random() % static_cast<unsigned long>(width));
    }
    expect_gathers(runs);
  }
}

/// By trying every one.
std::size_t smallest_period_of(const std::vector<int>& items, int last_gap) {
  const std::size_t count = items.size();
  for (std::size_t p = 1; p < count; ++p) {
    if (count % p != 0) continue;
    bool is_period = true;
    for (std::size_t i = 0; i + p + 1 < count; ++i) is_period = is_period && items[i] == items[i + p];
    if (is_period && items[count - 1 - p] / last_gap == items[count - 1] / last_gap) return p;
  }
  return 0;
}

TEST(SmallestPeriod, IsTheOneFoundByTryingAll) {
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 5000; ++round) {
    std::vector<int> items(1 + random() % 36);
    const std::size_t period = 1 + random() % items.size();
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i] = i < period ? static_cast<int>(random() % 2) : items[i - period];
    }
    if (random() % 4 == 0) items[random() % items.size()] ^= 1;
    // Items are compared whole, the last one without its lowest bit.
    const std::size_t found = build::smallest_period(
        items.size(), [&](std::size_t i, std::size_t j) { return items[i] == items[j]; },
        [&](std::size_t i) { return items[i] / 2 == items.back() / 2; });
    ASSERT_EQ(smallest_period_of(items, 2), found) << "round " << round;
  }
}

}  // namespace
}  // namespace gapless::layout

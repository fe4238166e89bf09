// Whether the copies of single runs move exactly the bytes of the type map, whatever their order, for every range of
// it, and are refused where that needs an order or more copies than there is room for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "job_on_paper.hpp"
#include "pack/cuda/run_copies.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using layout::Mode;
using pack::Direction;
using pack::Job;
using pack::cuda::estimated_runs;
using pack::cuda::most_runs;
using pack::cuda::plan_runs;
using pack::cuda::RunCopies;

/// Where packed byte begin + k goes, by the copies as CUDA documents them; fails where a copy moves no byte, or a byte
/// is written twice.
std::vector<Offset> places_of(const RunCopies& runs, Offset bytes) {
  std::vector<Offset> places(static_cast<std::size_t>(bytes), -(Offset{1} << 50));
  std::map<std::uintptr_t, int> written;
  for (std::size_t i = 0; i < runs.count; ++i) {
    const auto to = reinterpret_cast<std::uintptr_t>(runs.destinations[i]),
               from = reinterpret_cast<std::uintptr_t>(runs.sources[i]);
    const std::uintptr_t memory = runs.unpack ? to : from, packed = runs.unpack ? from : to;
    EXPECT_GT(runs.bytes[i], 0U);
    for (std::size_t byte = 0; byte < runs.bytes[i]; ++byte) {
      EXPECT_EQ(++written[to + byte], 1) << "in any order";
      places.at(packed - packed_origin + byte) = static_cast<Offset>(memory - origin + byte);
    }
  }
  return places;
}

/// The plan for a range moves what the map says; returns whether there is a plan.
bool is_planned_right(const LayoutPointer& layout, Mode outer, const std::vector<Offset>& map, Offset begin, Offset end,
                      Direction direction) {
  static RunCopies runs;
  if (!plan_runs(job_of(layout, outer, begin, end, direction), runs)) return false;
  EXPECT_EQ(runs.unpack, direction == Direction::unpack);
  const std::vector<Offset> expected(map.begin() + begin, map.begin() + end);
  EXPECT_EQ(places_of(runs, end - begin), expected) << "[" << begin << ", " << end << ")";
  return true;
}

TEST(RunCopies, EveryRangeOfListsAndStructs) {
  const auto runs = layout::segments(std::vector<layout::Segment>{{4, 5}, {12, 3}, {20, 9}, {40, 2}});
  const auto blocks = layout::index(layout::block(0, 4), std::vector<Offset>{0, 7, 20, 30});
  const auto rows = layout::repeat(layout::block(0, 3), 4, 6);
  const auto fields = layout::concatenate(
      std::vector{layout::shift(rows, 2), layout::shift(layout::block(0, 11), 40), runs, layout::shift(blocks, 100)});
  for (const LayoutPointer& layout : {runs, blocks, rows, fields, layout::repeat(runs, 3, 64),
                                      layout::index(runs, std::vector<Offset>{0, 60, 200})}) {
    for (const Mode outer : {Mode{1, 0}, Mode{3, 1000}, Mode{2, -1000}}) {
      std::vector<Offset> once;
      for (Offset k = 0; k < layout->size; ++k) once.push_back(offset_of(*layout, k));
      const auto map = repeated_map(once, outer.count, outer.stride);
      const auto size = static_cast<Offset>(map.size());
      for (Offset begin = 0; begin <= size; ++begin) {
        for (Offset end = begin; end <= size; end += 1 + (end - begin) / 8) {
          EXPECT_TRUE(is_planned_right(layout, outer, map, begin, end, Direction::pack)) << begin << ", " << end;
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(RunCopies, RandomLayoutsAndRangesBothWays) {
  RandomLayouts random(test_seed());
  int planned[2] = {};
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = random.next(i % 4 == 0);
    const Offset count = random.number(1, 3);
    const Mode outer{count, random.number(0, 3) == 0 ? random.number(-64, 64) : sample.high() - sample.low()};
    const auto map = repeated_map(sample.map, count, outer.stride);
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = random.number(0, size), end = random.number(begin, size);
    for (const Direction direction : {Direction::pack, Direction::unpack}) {
      planned[int(direction)] += is_planned_right(sample.layout, outer, map, begin, end, direction) ? 1 : 0;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(planned[int(Direction::pack)], 2000) << "of 3000; the rest has too many runs";
  EXPECT_GT(planned[int(Direction::unpack)], 800) << "the rest goes back and forth in memory, too";
}

TEST(RunCopies, AsManyAsThereIsRoomFor) {
  static RunCopies runs;
  std::vector<layout::Segment> list;
  for (Offset i = 0; i <= most_runs; ++i) list.push_back({i * 20 + i % 3, 8 + i % 5});
  const auto too_many = layout::segments(list);
  EXPECT_FALSE(plan_runs(job_of(too_many, {1, 0}, 0, too_many->size, Direction::pack), runs));
  EXPECT_TRUE(plan_runs(job_of(too_many, {1, 0}, list[0].length, too_many->size, Direction::pack), runs));
  EXPECT_EQ(runs.count, most_runs);
  EXPECT_TRUE(plan_runs(job_of(too_many, {5, 1 << 20}, 3, 3, Direction::pack), runs)) << "nothing";
  EXPECT_EQ(runs.count, 0U);
}

TEST(RunCopies, WhereTheOrderMattersThereAreNone) {
  static RunCopies runs;
  const auto is_planned = [&](std::vector<layout::Segment> list, Direction direction, Mode outer = {1, 0}) {
    const auto layout = layout::segments(list);
    return plan_runs(job_of(layout, outer, 0, layout->size * outer.count, direction), runs);
  };
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    EXPECT_TRUE(is_planned({{0, 8}, {9, 5}, {20, 4}}, direction));
    EXPECT_TRUE(is_planned({{20, 4}, {9, 5}, {0, 8}}, direction)) << "downwards";
    EXPECT_EQ(is_planned({{0, 8}, {7, 5}, {20, 4}}, direction), direction == Direction::pack)
        << "a byte is there twice";
    EXPECT_EQ(is_planned({{20, 4}, {9, 5}, {4, 6}}, direction), direction == Direction::pack);
    EXPECT_EQ(is_planned({{0, 8}, {20, 4}, {3, 2}}, direction), direction == Direction::pack) << "back into the first";
    EXPECT_EQ(is_planned({{0, 8}, {9, 5}, {20, 4}}, direction, {2, 16}), direction == Direction::pack);
  }
}

TEST(RunCopies, EstimatesCountWhatIsListed) {
  static RunCopies runs;
  const auto list = layout::segments(std::vector<layout::Segment>{{4, 5}, {12, 3}, {20, 9}, {40, 2}});
  const auto blocks = layout::index(layout::repeat(layout::block(0, 4), 3, 8), std::vector<Offset>{0, 70, 200});
  const auto fields = layout::concatenate(std::vector{layout::block(0, 10), layout::shift(layout::block(0, 11), 40)});
  for (const auto& layout : {list, blocks, fields, layout::repeat(list, 3, 64), layout::block(0, 5)}) {
    for (const Mode outer : {Mode{1, 0}, Mode{4, 1000}}) {
      const Job job = job_of(layout, outer, 0, layout->size * outer.count, Direction::pack);
      ASSERT_TRUE(plan_runs(job, runs));
      // A whole job's estimate may be off by what rounding the mean length does.
      EXPECT_GE(estimated_runs(job), static_cast<Offset>(runs.count));
      EXPECT_LE(estimated_runs(job), static_cast<Offset>(runs.count) * 3 / 2);
    }
    EXPECT_EQ(estimated_runs(job_of(layout, {1, 0}, 0, 1, Direction::pack)), 1);
    EXPECT_EQ(estimated_runs(job_of(layout, {1, 0}, 1, 1, Direction::pack)), 0);
  }
}

}  // namespace
}  // namespace gapless::tests

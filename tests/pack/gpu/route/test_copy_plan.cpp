// Whether the copies of a plan move exactly the bytes of the type map, for every range of it, and only where boxes can.
#include <gtest/gtest.h>

#include <cstring>

#include "job_on_paper.hpp"
#include "pack/gpu/route/copy_plan.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using pack::Direction;
using pack::gpu::BoxCopy;
using pack::gpu::CopyPlan;

/// Where packed byte begin + k goes, by the copies as CUDA documents them; fails where a byte is copied twice.
std::vector<Offset> places_of(const CopyPlan& plan, Offset bytes) {
  std::vector<Offset> places(static_cast<std::size_t>(bytes), -(Offset{1} << 50));
  for (int i = 0; i < plan.count; ++i) {
    const BoxCopy& box = plan.copies[i];
    std::uint64_t k = box.packed - packed_origin;
    for (std::uint64_t plane = 0; plane < box.planes; ++plane) {
      for (std::uint64_t row = 0; row < box.rows; ++row) {
        for (std::uint64_t byte = 0; byte < box.row; ++byte, ++k) {
          EXPECT_LT(places.at(k), -(Offset{1} << 49)) << "twice";
          places[k] =
              static_cast<Offset>(box.memory + plane * box.plane_distance + row * box.row_distance + byte - origin);
        }
      }
    }
  }
  return places;
}

/// What cudaMemcpy2D and 3D demand.
void expect_allowed(const CopyPlan& plan) {
  ASSERT_LE(plan.count, pack::gpu::most_copies);
  for (int i = 0; i < plan.count; ++i) {
    const BoxCopy& box = plan.copies[i];
    ASSERT_GT(box.row * box.rows * box.planes, 0U);
    if (box.rows > 1) {
      EXPECT_GE(box.row_distance, box.row);
      EXPECT_LT(box.row_distance, std::uint64_t{1} << 31);
    }
    if (box.planes > 1) {
      EXPECT_GE(box.plane_distance, box.rows * box.row_distance);
      EXPECT_EQ(box.plane_distance % box.row_distance, 0U);
    }
  }
}

/// The plan for a range moves what the map says; returns whether there is a plan.
bool is_planned_right(const LayoutPointer& layout, layout::Mode outer, const std::vector<Offset>& map, Offset begin,
                      Offset end) {
  CopyPlan plan;
  if (!plan_copies(job_of(layout, outer, begin, end, Direction::pack), plan)) return false;
  expect_allowed(plan);
  const std::vector<Offset> expected(map.begin() + begin, map.begin() + end);
  EXPECT_EQ(places_of(plan, end - begin), expected) << "[" << begin << ", " << end << ")";
  return true;
}

TEST(CopyPlan, EveryRangeOfBoxes) {
  // Rows, planes and volumes; rows dense in a plane, planes not a whole number of rows apart, a hole before the end.
  const auto rows = layout::repeat(layout::block(3, 4), 5, 12);
  const LayoutPointer shapes[] = {layout::block(-7, 40),       rows,
                                  layout::repeat(rows, 3, 60), layout::repeat(rows, 3, 72),
                                  layout::repeat(rows, 3, 70), layout::repeat(layout::repeat(rows, 2, 60), 2, 240),
                                  layout::repeat(rows, 3, -84)};
  for (const LayoutPointer& shape : shapes) {
    std::vector<Offset> map;
    for (Offset k = 0; k < shape->size; ++k) map.push_back(offset_of(*shape, k));
    for (Offset begin = 0; begin <= shape->size; ++begin) {
      for (Offset end = begin; end <= shape->size; ++end) {
        EXPECT_TRUE(is_planned_right(shape, {1, 0}, map, begin, end)) << begin << ", " << end;
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(CopyPlan, RandomLayoutsAndRanges) {
  RandomLayouts random(random_seed());
  int planned = 0;
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = random.next(i % 4 == 0);
    const Offset count = random.number(1, 3);
    const layout::Mode outer{count, random.number(0, 3) == 0 ? random.number(-64, 64) : sample.high() - sample.low()};
    const auto map = repeated_map(sample.map, count, outer.stride);
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = random.number(0, size), end = random.number(begin, size);
    planned += is_planned_right(sample.layout, outer, map, begin, end) ? 1 : 0;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(planned, 500) << "of 3000; the rest has too many blocks";
}

TEST(CopyPlan, ARangeInOneRowIsOneCopy) {
  const auto rows = layout::repeat(layout::block(0, 4096), 512, 8192);
  CopyPlan plan;
  ASSERT_TRUE(plan_copies(job_of(rows, {1, 0}, 0, rows->size, Direction::unpack), plan));
  EXPECT_EQ(plan.count, 1);
  EXPECT_EQ(plan.rows, 512U);
  EXPECT_TRUE(plan.unpack);
  ASSERT_TRUE(plan_copies(job_of(rows, {1, 0}, 4100, 5000, Direction::pack), plan));
  EXPECT_EQ(plan.count, 1);
  EXPECT_FALSE(plan.unpack);
  ASSERT_TRUE(plan_copies(job_of(rows, {1, 0}, 1, rows->size - 1, Direction::pack), plan));
  EXPECT_EQ(plan.count, 3) << "a head, whole rows and a tail";
  ASSERT_TRUE(plan_copies(job_of(rows, {4, 512 * 8192}, 0, 4 * rows->size, Direction::pack), plan));
  EXPECT_EQ(plan.count, 1) << "the repetition is more rows";
  EXPECT_EQ(plan.rows, 2048U);
}

TEST(CopyPlan, WhatIsNoFewBoxes) {
  CopyPlan plan;
  const auto has_plan = [&](const LayoutPointer& layout, layout::Mode outer = {1, 0}) {
    return plan_copies(job_of(layout, outer, 0, layout->size * outer.count, Direction::pack), plan);
  };
  const auto rows = layout::repeat(layout::block(0, 4), 9, 8);
  EXPECT_FALSE(has_plan(layout::repeat(layout::block(0, 4), 9, -8))) << "backwards";
  EXPECT_TRUE(has_plan(layout::repeat(layout::block(0, 4), 8, -8))) << "but few may be";
  EXPECT_FALSE(has_plan(layout::repeat(layout::block(0, 4), 9, 0))) << "again and again";
  EXPECT_FALSE(has_plan(layout::repeat(rows, 9, 76))) << "planes that are no whole number of rows apart";
  EXPECT_FALSE(has_plan(layout::repeat(layout::block(0, 4), 9, Offset{1} << 31))) << "further apart than CUDA allows";
  std::vector<layout::Segment> runs;
  for (Offset i = 0; i < 9; ++i) runs.push_back({i * i * 20, 4 + i});
  EXPECT_FALSE(has_plan(layout::segments(runs)));
  runs.pop_back();
  EXPECT_TRUE(has_plan(layout::segments(runs)));
  EXPECT_EQ(plan.count, 8);
  EXPECT_FALSE(has_plan(layout::segments(runs), {2, 4000}));
}

TEST(CopyPlan, NothingTakesNoCopies) {
  CopyPlan plan;
  ASSERT_TRUE(plan_copies(job_of(layout::empty(), {5, 0}, 0, 0, Direction::pack), plan));
  EXPECT_EQ(plan.count, 0);
}

}  // namespace
}  // namespace gapless::tests

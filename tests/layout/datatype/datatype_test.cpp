// Constructors: the cases that others got wrong, bounds, limits and refusals.
#include <gtest/gtest.h>

#include <limits>

#include "check_layout.hpp"
#include "layout/algebra/facts.hpp"
#include "layout/datatype/names.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;
using List = std::vector<Offset>;

const Datatype int_type = named(4, 4);
const TypeMap int_map = type_map::basic(4);
constexpr Offset most = std::numeric_limits<Offset>::max();

TEST(Subarray, DimensionsOfSubsizeOneKeepTheirStart) {
  // All 26 halo faces, edges and corners of a 6 x 6 x 6 array, sent and received.
  const List sizes = {6, 6, 6};
  int boxes = 0;
  for (Offset code = 0; code < 27 * 2; ++code) {
    List subsizes, starts;
    for (Offset d = 0, rest = code / 2; d < 3; ++d, rest /= 3) {
      const Offset side = rest % 3, ghost = code % 2;
      subsizes.push_back(side == 1 ? 4 : 1);
      starts.push_back(side == 0 ? 1 - ghost : side == 1 ? 1 : 4 + ghost);
    }
    expect_same(subarray(sizes, subsizes, starts, ArrayOrder::c, int_type),
                type_map::subarray(sizes, subsizes, starts, false, int_map));
    expect_same(subarray(sizes, subsizes, starts, ArrayOrder::fortran, int_type),
                type_map::subarray(sizes, subsizes, starts, true, int_map));
    ++boxes;
  }
  EXPECT_EQ(boxes, 54);
}

TEST(Subarray, AllConstructionsOfOneBoxAreOneLayout) {
  const List sizes = {16, 20, 24}, subsizes = {3, 5, 7}, starts = {2, 4, 6};
  const Datatype box = subarray(sizes, subsizes, starts, ArrayOrder::c, int_type);
  const Datatype rows = hvector(5, 7, 24 * 4, int_type);
  const Offset displacement = ((2 * 20 + 4) * 24 + 6) * 4;
  const Datatype planes = hvector(3, 1, 20 * 24 * 4, rows);
  EXPECT_EQ(*shift(planes.layout, displacement), *box.layout);
  EXPECT_EQ(*hindexed_block(1, List{displacement}, planes).layout, *box.layout);
  List lengths, displacements;
  for (Offset i = 0; i < 3; ++i) {
    for (Offset j = 0; j < 5; ++j) {
      lengths.push_back(7);
      displacements.push_back(((i + 2) * 20 + j + 4) * 24 + 6);
    }
  }
  EXPECT_EQ(*indexed(lengths, displacements, int_type).layout, *box.layout);
  EXPECT_EQ(box.extent(), 16 * 20 * 24 * 4);
}

TEST(Subarray, PartsOutsideTheArrayAreRefused) {
  const List sizes = {4, 4};
  const auto make = [&](const List& subsizes, const List& starts) {
    return subarray(sizes, subsizes, starts, ArrayOrder::c, int_type);
  };
  EXPECT_NO_THROW(make({4, 4}, {0, 0}));
  EXPECT_THROW(make({4, 4}, {0, 1}), std::invalid_argument);
  EXPECT_THROW(make({5, 1}, {0, 0}), std::invalid_argument);
  EXPECT_THROW(make({-1, 1}, {0, 0}), std::invalid_argument);
  EXPECT_THROW(make({1, 1}, {-1, 0}), std::invalid_argument);
  EXPECT_THROW(make({1, 1}, {most, 0}), std::invalid_argument);
  EXPECT_THROW(make({1}, {0, 0}), std::invalid_argument);
}

TEST(Vector, TransposesKeepTheirOrder) {
  const Datatype column = resized(vector(5, 1, 7, int_type), 0, 4);
  expect_same(contiguous(7, column),
              type_map::contiguous(7, type_map::resized(type_map::vector(5, 1, 7, int_map), 0, 4)));
}

TEST(Vector, CountsBeyondOneUseTheExtent) {
  // The next vector begins where the last block ends, not a stride later.
  const Datatype two = contiguous(2, vector(3, 2, 4, int_type));
  expect_same(two, type_map::contiguous(2, type_map::vector(3, 2, 4, int_map)));
  EXPECT_EQ(offset_of(*two.layout, 24), 40);
}

TEST(Vector, ZeroCountsAndBlocksNameNothing) {
  for (const Datatype& type : {vector(0, 3, 5, int_type), vector(3, 0, 5, int_type), contiguous(0, int_type),
                               indexed(List{0, 0}, List{3, 9}, int_type), indexed_block(0, List{3, 9}, int_type),
                               structure({}, {}, {}), contiguous(7, contiguous(0, int_type))}) {
    expect_same(type, TypeMap{});
  }
}

TEST(Vector, NegativeStridesReachBelowTheOrigin) {
  const Datatype type = vector(4, 2, -3, int_type);
  expect_same(type, type_map::vector(4, 2, -3, int_map));
  EXPECT_EQ(type.lower_bound, -36);
  EXPECT_EQ(type.true_lower_bound, -36);
}

TEST(Vector, ObjectsBeyondFourGigabytes) {
  const Datatype type = vector(Offset{1} << 20, 1 << 10, 1 << 12, named(8, 8));
  EXPECT_EQ(type.size(), Offset{1} << 33);
  EXPECT_EQ(type.extent(), (((Offset{1} << 20) - 1) << 15) + (1 << 13));
  EXPECT_EQ(offset_of(*type.layout, (Offset{1} << 33) - 1), type.extent() - 1);
}

TEST(Pair, NamesKeepTheirGaps) {
  const Datatype type = contiguous(3, pair(8, 4, 8, 16));
  expect_same(type, type_map::contiguous(3, type_map::pair(8, 4, 8, 16)));
  EXPECT_EQ(type.size(), 36);
  EXPECT_EQ(type.extent(), 48);
  EXPECT_EQ(type.true_upper_bound, 44);
}

TEST(Indexed, EmptyBlocksDoNotCountForBounds) {
  const List lengths = {0, 2, 0}, displacements = {-1000, 3, 1000};
  const Datatype type = indexed(lengths, displacements, int_type);
  expect_same(type, type_map::indexed(lengths, displacements, int_map));
  EXPECT_EQ(type.lower_bound, 12);
  EXPECT_EQ(type.upper_bound, 20);
}

TEST(Indexed, LongListsOverGappedChildren) {
  // Beyond the budget, so the runs are not listed: equal blocks, a few elements each, and many each.
  const Datatype gapped = resized(int_type, 0, 12);
  const TypeMap gapped_map = type_map::resized(int_map, 0, 12);
  for (const Offset longest : {1, 4, 3000}) {
    List lengths, displacements;
    Offset next = 0;
    for (Offset total = 0, i = 0; total < 70'000; ++i) {
      lengths.push_back(longest == 1 ? 5 : 1 + i * i * 17 % longest);
      displacements.push_back(next);
      total += lengths.back();
      next += lengths.back() + 1 + i * 5 % 3;
    }
    SCOPED_TRACE(longest);
    expect_same(indexed(lengths, displacements, gapped), type_map::indexed(lengths, displacements, gapped_map));
  }
}

TEST(Indexed, LongBlocksAtTheLeastOffset) {
  const Offset least = std::numeric_limits<Offset>::min();
  const Datatype type = hindexed(List{20'000, 3}, List{least + 1'000'000, least}, resized(named(1, 1), 0, 2));
  EXPECT_EQ(type.size(), 20'003);
  EXPECT_EQ(type.true_lower_bound, least);
  EXPECT_EQ(type.true_upper_bound, least + 1'000'000 + 2 * 19'999 + 1);
  EXPECT_EQ(offset_of(*type.layout, 0), least + 1'000'000);
  EXPECT_EQ(offset_of(*type.layout, 20'002), least + 4);
}

TEST(Struct, LongListsOfMixedFields) {
  const Datatype column = vector(9000, 1, 2, int_type);
  const TypeMap column_map = type_map::vector(9000, 1, 2, int_map);
  const List lengths = {1, 1, 2, 0, 1, 3}, displacements = {-8, 0, 80'000, 5, 300'000, 300'004};
  expect_same(
      structure(lengths, displacements, std::vector<Datatype>{int_type, column, column, column, int_type, int_type}),
      type_map::structure(lengths, displacements, {int_map, column_map, column_map, column_map, int_map, int_map}));
}

TEST(Resized, BoundsStickAndAloneDecide) {
  const Datatype inner = resized(int_type, -4, 20);
  const Datatype outer = structure(List{1, 1}, List{0, 100}, std::vector<Datatype>{inner, int_type});
  EXPECT_EQ(outer.lower_bound, -4);
  EXPECT_EQ(outer.upper_bound, 16);
  EXPECT_EQ(outer.true_upper_bound, 104);
  EXPECT_TRUE(outer.has_explicit_bounds);
  // Bounds without bytes count too.
  const Datatype hollow = resized(contiguous(0, int_type), 8, 8);
  EXPECT_EQ(contiguous(3, hollow).extent(), 24);
  EXPECT_EQ(contiguous(3, hollow).size(), 0);
}

TEST(Resized, NegativeExtentRunsBackwards) {
  const Datatype type = contiguous(3, resized(int_type, 0, -4));
  EXPECT_EQ(enumerate(*type.layout), (List{0, 1, 2, 3, -4, -3, -2, -1, -8, -7, -6, -5}));
}

TEST(Darray, EveryRankOwnsItsShareAndTogetherTheyOwnAll) {
  const List sizes = {7, 9}, grid = {2, 3};
  const std::vector<Distribution> distributions = {Distribution::cyclic, Distribution::block};
  const List arguments = {2, default_distribution_argument}, blocks = {2, 3};
  for (const ArrayOrder order : {ArrayOrder::c, ArrayOrder::fortran}) {
    List all;
    for (Offset rank = 0; rank < 6; ++rank) {
      const Datatype type = darray(6, rank, sizes, distributions, arguments, grid, order, int_type);
      expect_same(type, type_map::darray(rank, sizes, blocks, grid, order == ArrayOrder::fortran, int_map));
      const List mine = enumerate(*type.layout);
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, type_map::basic(7 * 9 * 4).bytes);
  }
}

TEST(Darray, MoreProcessesThanElementsLeaveSomeEmpty) {
  const Datatype type = darray(5, 4, List{3}, std::vector{Distribution::block}, List{default_distribution_argument},
                               List{5}, ArrayOrder::c, int_type);
  EXPECT_TRUE(type.layout->is_empty());
  EXPECT_EQ(type.extent(), 12);
}

/// The blocks are far longer than what there is of them: their distances do not fit in 63 bits.
TEST(Darray, BlocksLongerThanTheDimensionEndWithIt) {
  constexpr Offset longest = std::numeric_limits<std::int32_t>::max(), row = Offset{1} << 32;
  const Datatype child = resized(int_type, 0, row);
  for (const Distribution distribution : {Distribution::block, Distribution::cyclic}) {
    const auto of_rank = [&](Offset rank, Offset size) {
      return darray(2, rank, List{size}, std::vector{distribution}, List{longest}, List{2}, ArrayOrder::c, child);
    };
    EXPECT_EQ(*of_rank(0, 10).layout, *contiguous(10, child).layout);
    EXPECT_EQ(*of_rank(0, longest).layout, *contiguous(longest, child).layout);
    EXPECT_TRUE(of_rank(1, 10).layout->is_empty());
  }
}

TEST(Darray, ContradictionsAreRefused) {
  const auto make = [](Offset processes, Offset rank, Offset size, Distribution distribution, Offset argument,
                       Offset grid) {
    return darray(processes, rank, List{size}, std::vector{distribution}, List{argument}, List{grid}, ArrayOrder::c,
                  int_type);
  };
  EXPECT_NO_THROW(make(2, 1, 8, Distribution::block, 4, 2));
  EXPECT_THROW(make(2, 1, 8, Distribution::block, 3, 2), std::invalid_argument);
  EXPECT_THROW(make(2, 2, 8, Distribution::block, 4, 2), std::invalid_argument);
  EXPECT_THROW(make(2, -1, 8, Distribution::block, 4, 2), std::invalid_argument);
  EXPECT_THROW(make(3, 1, 8, Distribution::block, 4, 2), std::invalid_argument);
  EXPECT_THROW(make(2, 1, 8, Distribution::none, default_distribution_argument, 2), std::invalid_argument);
  EXPECT_THROW(make(2, 1, 8, Distribution::cyclic, 0, 2), std::invalid_argument);
  EXPECT_THROW(make(2, 1, -8, Distribution::cyclic, 1, 2), std::invalid_argument);
  EXPECT_THROW(make(0, 0, 8, Distribution::cyclic, 1, 0), std::invalid_argument);
  EXPECT_THROW(darray(1, 0, List{4}, {}, List{1}, List{1}, ArrayOrder::c, int_type), std::invalid_argument);
}

TEST(Refusals, NegativeCounts) {
  EXPECT_THROW(named(-1, 4), std::invalid_argument);
  EXPECT_THROW(contiguous(-1, int_type), std::invalid_argument);
  EXPECT_THROW(vector(-1, 1, 1, int_type), std::invalid_argument);
  EXPECT_THROW(vector(1, -1, 1, int_type), std::invalid_argument);
  EXPECT_THROW(indexed(List{1, -1}, List{0, 9}, int_type), std::invalid_argument);
  EXPECT_THROW(hindexed(List{-1}, List{0}, int_type), std::invalid_argument);
  EXPECT_THROW(indexed_block(-1, List{0}, int_type), std::invalid_argument);
  EXPECT_THROW(hindexed_block(-1, List{0}, int_type), std::invalid_argument);
  EXPECT_THROW(structure(List{-1}, List{0}, std::vector{int_type}), std::invalid_argument);
}

TEST(Refusals, ListsOfDifferentLengths) {
  EXPECT_THROW(indexed(List{1}, List{0, 9}, int_type), std::invalid_argument);
  EXPECT_THROW(hindexed(List{1, 1}, List{0}, int_type), std::invalid_argument);
  EXPECT_THROW(structure(List{1}, List{0, 4}, std::vector{int_type}), std::invalid_argument);
  EXPECT_THROW(structure(List{1}, List{0}, std::vector{int_type, int_type}), std::invalid_argument);
}

TEST(Refusals, SizesAndBoundsBeyond63Bits) {
  EXPECT_THROW(contiguous(most / 2, int_type), std::overflow_error);
  EXPECT_THROW(vector(2, 1, most / 2, int_type), std::overflow_error);
  EXPECT_THROW(hvector(3, 1, most / 2, int_type), std::overflow_error);
  EXPECT_THROW(indexed(List{1}, List{most / 2}, int_type), std::overflow_error);
  EXPECT_THROW(hindexed(List{1}, List{most - 1}, int_type), std::overflow_error);
  EXPECT_THROW(hindexed(List{most / 2}, List{0}, int_type), std::overflow_error);
  EXPECT_THROW(hindexed_block(most / 4, List{0, 8, 16}, resized(int_type, 0, 0)), std::overflow_error);
  EXPECT_THROW(structure(List{1, 1}, List{-most, most - 8}, std::vector{int_type, int_type}), std::overflow_error);
  EXPECT_THROW(resized(int_type, most, 1), std::overflow_error);
  EXPECT_THROW(value_and_index(contiguous(most, named(1, 1)), int_type), std::overflow_error);
  EXPECT_THROW(value_and_index(contiguous(most - 3, named(1, 1)), int_type), std::overflow_error);
  EXPECT_THROW(subarray(List{most / 2, 8}, List{1, 1}, List{0, 0}, ArrayOrder::c, int_type), std::overflow_error);
}

TEST(Absolute, AddressesAsDisplacements) {
  // MPI_BOTTOM with addresses of a heap: lists stay narrow, since offsets are relative to the first.
  const Offset heap = 0x7f12'3456'7890;
  const Datatype type = hindexed(List{1, 2, 3}, List{heap, heap + 4096, heap - 500}, int_type);
  expect_same(type, type_map::hindexed({1, 2, 3}, {heap, heap + 4096, heap - 500}, int_map));
  EXPECT_TRUE(type.layout->offsets.is_narrow());
}

}  // namespace
}  // namespace gapless::testing

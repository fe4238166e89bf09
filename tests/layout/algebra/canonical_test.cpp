// The forms that the builders give: which structure is found, that it is unique, and what it weighs.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "../../support/seed.hpp"
#include "check_layout.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/algebra/facts.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

std::vector<Mode> modes(std::initializer_list<Mode> list) { return list; }

TEST(Strided, DropsCountOneAndMergesContinuingModes) {
  const LayoutPointer nest = repeat(repeat(repeat(block(3, 8), 4, 8), 1, 1000), 5, 100);
  EXPECT_EQ(nest->base, 3);
  EXPECT_EQ(nest->length, 32);
  EXPECT_EQ(nest->modes, modes({{5, 100}}));
  EXPECT_EQ(repeat(nest, 3, 500)->modes, modes({{15, 100}}));
  EXPECT_EQ(repeat(nest, 3, 501)->modes, modes({{5, 100}, {3, 501}}));
}

TEST(Strided, KeepsTheOrderOfTransposes) {
  const LayoutPointer rows = repeat(repeat(block(0, 4), 3, 4), 5, 64);
  const LayoutPointer columns = repeat(repeat(block(0, 4), 5, 64), 3, 4);
  EXPECT_NE(*rows, *columns);
  EXPECT_EQ(columns->modes, modes({{5, 64}, {3, 4}}));
}

TEST(Strided, AcceptsNegativeAndZeroStrides) {
  EXPECT_EQ(repeat(block(0, 1), 5, -1)->modes, modes({{5, -1}}));
  EXPECT_EQ(repeat(repeat(block(0, 1), 5, -1), 2, -5)->modes, modes({{10, -1}}));
  EXPECT_EQ(repeat(repeat(block(0, 4), 3, 0), 4, 0)->modes, modes({{12, 0}}));
}

TEST(Strided, IsFoundInAnyList) {
  // A vector of vectors whose blocks touch where the groups meet, listed byte by byte.
  const LayoutPointer nest = repeat(repeat(repeat(block(7, 4), 3, 8), 4, 20), 2, -1000);
  ASSERT_EQ(nest->modes, modes({{3, 8}, {4, 20}, {2, -1000}}));
  const std::vector<std::int64_t> bytes = enumerate(*nest);
  EXPECT_EQ(*index(block(0, 1), bytes), *nest);
}

TEST(Empty, IsOneForm) {
  EXPECT_EQ(*repeat(block(5, 4), 0, 9), *empty());
  EXPECT_EQ(*block(5, 0), *empty());
  EXPECT_EQ(*shift(empty(), 77), *empty());
  EXPECT_EQ(*index(block(5, 4), {}), *empty());
  EXPECT_EQ(*segments({}), *empty());
  const Segment none[] = {{4, 0}, {9, 0}};
  EXPECT_EQ(*segments(none), *empty());
  EXPECT_EQ(*concatenate({}), *empty());
}

TEST(Irregular, RepeatedStructIsOneModeOverItsFields) {
  const Segment fields[] = {{0, 8}, {12, 4}, {20, 1}};
  const LayoutPointer repeated = repeat(segments(fields), 1000, 32);
  EXPECT_EQ(repeated->core, Core::segments);
  EXPECT_EQ(repeated->modes, modes({{1000, 32}}));
  EXPECT_EQ(*segments(segments_of(*repeated, {1, 0}, 0, repeated->size)), *repeated);
}

TEST(Irregular, RepeatedStructIsFoundThoughItsEndsTouch) {
  const Segment fields[] = {{0, 1}, {8, 8}};  // struct {char, double}: the double touches the next char
  const LayoutPointer repeated = repeat(segments(fields), 100, 16);
  EXPECT_EQ(repeated->core, Core::segments);
  EXPECT_EQ(repeated->offsets.size(), 2u);
  EXPECT_EQ(repeated->modes, modes({{100, 16}}));
  EXPECT_EQ(*segments(segments_of(*repeated, {1, 0}, 0, repeated->size)), *repeated);
}

TEST(Irregular, FewUniformLengthsAreAnIndexUnlessSomeTouch) {
  const Offset apart[] = {0, 24, 40, 96, 112, 400, 200}, touching[] = {0, 24, 40, 96, 104, 400, 200};
  const LayoutPointer list = index(block(16, 8), apart);
  EXPECT_EQ(list->core, Core::index);
  EXPECT_EQ(list->base, 16);
  EXPECT_EQ(*list->child, *block(0, 8));
  EXPECT_EQ(index(block(16, 8), touching)->core, Core::segments);
}

TEST(Irregular, LongListsStayUniformThoughSomeTouch) {
  std::vector<Offset> offsets;
  std::vector<Segment> fused;
  for (Offset i = 0, at = 0; i < 200; ++i) {
    offsets.push_back(at);
    const bool touches = i % 7 == 0 || i % 11 == 5;
    if (fused.empty() || fused.back().offset + fused.back().length != at) {
      fused.push_back({at, 8});
    } else {
      fused.back().length += 8;
    }
    at += touches ? 8 : 16 + i * i % 5 * 8;
  }
  const LayoutPointer list = index(block(0, 8), offsets);
  ASSERT_EQ(list->core, Core::index);
  EXPECT_EQ(list->offsets.size(), offsets.size());
  EXPECT_EQ(*list->child, *block(0, 8));
  EXPECT_EQ(*segments(fused), *list);
  expect_invariants(*list);
  EXPECT_EQ(enumerate(*list), enumerate(*segments(fused)));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    EXPECT_EQ(offset_of(*list, static_cast<Offset>(i) * 8), offsets[i]);
  }
}

TEST(Irregular, ListsOfMostlyLongerRunsStayRuns) {
  std::vector<Segment> runs;
  for (Offset i = 0, at = 0; i < 200; ++i) {
    runs.push_back({at, 8 * (1 + i * i % 5)});
    at += runs.back().length + 8 * (1 + i % 3);
  }
  EXPECT_EQ(segments(runs)->core, Core::segments);
}

TEST(Irregular, VectorsHiddenInAListAreRecovered) {
  std::vector<Offset> bytes;
  for (const Offset start : {0, 1000, 3000, 3500, 9000, 7000}) {
    for (Offset i = 0; i < 12; ++i) bytes.push_back(start + i / 4 * 100 + i % 4 * 8);
  }
  const LayoutPointer list = index(block(0, 4), bytes);
  ASSERT_EQ(list->core, Core::index);
  EXPECT_EQ(list->offsets.size(), 6u);
  EXPECT_EQ(list->child->modes, modes({{4, 8}, {3, 100}}));
}

TEST(Irregular, AFewLongVectorsAreASum) {
  const LayoutPointer terms[] = {repeat(block(0, 8), 100, 16), repeat(block(5000, 4), 200, 12),
                                 repeat(repeat(block(20000, 4), 10, 8), 10, 200)};
  const LayoutPointer sum = concatenate(terms);
  ASSERT_EQ(sum->core, Core::sum);
  ASSERT_EQ(sum->parts.size(), 3u);
  EXPECT_EQ(sum->parts[2].layout->modes, modes({{10, 8}, {10, 200}}));
}

/// Enough repetitions that the runs are not listed.
constexpr Offset beyond_budget = static_cast<Offset>(recognition_budget) * 3;

TEST(Large, NestsOfIrregularTypesAreNeverListed) {
  const Segment fields[] = {{0, 8}, {12, 4}, {20, 1}};
  const LayoutPointer once = repeat(segments(fields), Offset{1} << 40, 32);
  EXPECT_LT(memory_bytes(*once), 1000u);
  EXPECT_EQ(*repeat(repeat(segments(fields), 1 << 20, 32), 1 << 20, Offset{32} << 20), *once);
  EXPECT_EQ(offset_of(*once, once->size - 1), ((Offset{1} << 40) - 1) * 32 + 20);
}

TEST(Large, IndexOverLargeChildrenKeepsItsOffsets) {
  const LayoutPointer child = repeat(block(0, 8), beyond_budget, 16);
  const Offset irregular[] = {10'000'000, 0, 50'000'000}, regular[] = {0, 5'000'000, 10'000'000};
  const Offset periodic[] = {0, 4'000'000, 20'000'000, 24'000'000, 40'000'000, 44'000'000};
  const LayoutPointer list = index(child, irregular);
  EXPECT_EQ(list->core, Core::index);
  EXPECT_EQ(list->base, 10'000'000);
  EXPECT_EQ(index(child, regular)->modes, modes({{beyond_budget, 16}, {3, 5'000'000}}));
  const LayoutPointer pairs = index(child, periodic);
  EXPECT_EQ(pairs->modes, modes({{beyond_budget, 16}, {2, 4'000'000}, {3, 20'000'000}}));
  for (const LayoutPointer& layout : {list, pairs}) expect_invariants(*layout);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(offset_of(*list, static_cast<Offset>(i) * child->size + 9), irregular[i] + 17);
  }
}

TEST(Large, SumsOfLargePartsStaySums) {
  const LayoutPointer large = repeat(block(0, 8), beyond_budget, 16);
  const LayoutPointer other = repeat(block(0, 4), beyond_budget, 16);
  const LayoutPointer terms[] = {block(-40, 8),      large, shift(other, 5'000'000), empty(), block(9'000'000, 4),
                                 block(9'000'004, 4)};
  const LayoutPointer sum = concatenate(terms);
  expect_invariants(*sum);
  ASSERT_EQ(sum->core, Core::sum);
  EXPECT_EQ(sum->parts.size(), 4u);
  EXPECT_EQ(offset_of(*sum, 8), 0);
  EXPECT_EQ(offset_of(*sum, 8 + large->size + 5), 5'000'017);
  EXPECT_EQ(offset_of(*sum, sum->size - 1), 9'000'007);
  const LayoutPointer flattened_terms[] = {sum, large};
  EXPECT_EQ(concatenate(flattened_terms)->parts.size(), 5u);
  const LayoutPointer equal_terms[] = {large, shift(large, 7'000'000), shift(large, 10)};
  EXPECT_EQ(concatenate(equal_terms)->core, Core::index);
}

TEST(Memory, ListsStayWithinTwiceTheUsersOwn) {
  std::mt19937_64 random(tests::random_seed());
  constexpr std::size_t entries = 100'000;
  std::vector<Offset> lengths(entries), displacements(entries);
  Offset next = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    lengths[i] = static_cast<Offset>(1 + random() % 5);
    displacements[i] = next;
    next += lengths[i] + static_cast<Offset>(1 + random() % 9);
  }
  const Datatype element = named(4, 4);
  // MPI gives two ints an entry to indexed, one to indexed_block.
  EXPECT_LE(memory_bytes(*indexed(lengths, displacements, element).layout), 16 * entries + 1000);
  EXPECT_LE(memory_bytes(*indexed_block(1, displacements, element).layout), 8 * entries + 1000);
  std::ranges::shuffle(displacements, random);
  EXPECT_LE(memory_bytes(*indexed_block(1, displacements, element).layout), 8 * entries + 1000);
  // Every other block starts an arithmetic run of two: no reason for fifty thousand parts.
  for (std::size_t i = 0; i < entries; ++i)
    displacements[i] = static_cast<Offset>(i / 20 * (1000 + i / 20 % 7) + i % 20 * 3);
  EXPECT_LE(memory_bytes(*indexed_block(1, displacements, element).layout), 8 * entries + 1000);
  const Datatype gapped = resized(element, 0, 12);
  EXPECT_LE(memory_bytes(*indexed(lengths, displacements, gapped).layout), 16 * entries + 1000);
}

TEST(Memory, LongBlocksOfChildrenWithGapsStayWithinTwiceTheUsersOwnList) {
  std::mt19937_64 random(tests::random_seed());
  const Datatype gapped = resized(named(4, 4), 0, 12), pairs = resized(vector(2, 1, 3, named(4, 4)), 0, 32);
  for (const auto& [entries, shortest, longest] :
       {std::tuple<std::size_t, Offset, Offset>{100'000, 4, 9}, {300, 20, 90}, {3000, 60, 700}}) {
    for (const Datatype& child : {gapped, pairs}) {
      std::vector<Offset> lengths(entries), displacements(entries);
      Offset next = -5000;
      for (std::size_t i = 0; i < entries; ++i) {
        lengths[i] = std::uniform_int_distribution<Offset>(shortest, longest)(random);
        displacements[i] = next;
        next += lengths[i] + static_cast<Offset>(1 + random() % 9);
      }
      const Datatype type = indexed(lengths, displacements, child);
      EXPECT_LE(memory_bytes(*type.layout), 16 * entries + 1000);
      expect_invariants(*type.layout);
      EXPECT_TRUE(is_injective(*type.layout, {1, 0}));
      EXPECT_TRUE(is_injective(*type.layout, {2, type.extent()}));
      EXPECT_EQ(type.true_upper_bound, facts_of(*type.layout).true_upper_bound);
      Offset packed = 0;
      for (std::size_t i = 0; i < entries; ++i) {
        const Offset last = lengths[i] - 1, begin = displacements[i] * child.extent();
        EXPECT_EQ(offset_of(*type.layout, packed), begin);
        packed += lengths[i] * child.size();
        EXPECT_EQ(offset_of(*type.layout, packed - child.size()), begin + last * child.extent());
      }
      EXPECT_EQ(packed, type.size());
      displacements.back() = displacements[entries - 2] + lengths[entries - 2] - 1;  // one child lies in both
      EXPECT_FALSE(is_injective(*indexed(lengths, displacements, child).layout, {1, 0}));
    }
  }
}

/// Too many to be listed even for a while.
TEST(Memory, BillionsOfChildrenInAFewBlocks) {
  const Datatype child = resized(named(4, 4), 0, 12);
  const Offset lengths[] = {Offset{1} << 32, 5, 7, Offset{1} << 33},
               displacements[] = {0, Offset{1} << 36, -20, Offset{1} << 34};
  const Datatype type = indexed(lengths, displacements, child);
  EXPECT_LE(memory_bytes(*type.layout), 1000u);
  EXPECT_EQ(type.size(), 4 * (lengths[0] + lengths[1] + lengths[2] + lengths[3]));
  EXPECT_EQ(offset_of(*type.layout, 4 * (lengths[0] + 6) + 3), -20 * 12 + 12 + 3);
  EXPECT_EQ(offset_of(*type.layout, type.size() - 1), (displacements[3] + lengths[3] - 1) * 12 + 3);
  EXPECT_TRUE(is_injective(*type.layout, {1, 0}));
  EXPECT_EQ(facts_of(*type.layout).true_lower_bound, -240);
  EXPECT_EQ(facts_of(*type.layout).block_count, type.size() / 4);
}

TEST(Failure, NegativeCountsAndLengthsAreRefused) {
  EXPECT_THROW(block(0, -1), std::invalid_argument);
  EXPECT_THROW(repeat(block(0, 1), -1, 1), std::invalid_argument);
  const Segment negative[] = {{0, -4}};
  EXPECT_THROW(segments(negative), std::invalid_argument);
}

TEST(Failure, OffsetsBeyond63BitsAreRefused) {
  constexpr Offset most = std::numeric_limits<Offset>::max();
  EXPECT_THROW(repeat(block(0, 8), Offset{1} << 61, 8), std::overflow_error);
  EXPECT_THROW(repeat(block(0, 8), 1000, most / 100), std::overflow_error);
  EXPECT_THROW(repeat(block(0, 8), 1000, -(most / 100)), std::overflow_error);
  EXPECT_THROW(shift(block(most - 10, 8), 10), std::overflow_error);
  EXPECT_THROW(block(most - 3, 8), std::overflow_error);
  const Offset apart[] = {-(most / 2) - 10, most / 2 + 10};
  EXPECT_THROW(index(block(0, 1), apart), std::overflow_error);
  const Segment runs[] = {{0, 4}, {most - 3, 4}};
  EXPECT_THROW(segments(runs), std::overflow_error);
  const LayoutPointer large = block(0, most / 2 + 1);
  const LayoutPointer terms[] = {large, large};
  EXPECT_THROW(concatenate(terms), std::overflow_error);
  EXPECT_THROW(repeat(repeat(block(0, 8), beyond_budget, 16), 3, most / 2), std::overflow_error);
  const Offset far[] = {0, 1, most - 100};
  EXPECT_THROW(index(repeat(block(0, 8), beyond_budget, 16), far), std::overflow_error);
}

}  // namespace
}  // namespace gapless::testing

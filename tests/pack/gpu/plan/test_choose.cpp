// Which regime is chosen, on either side of every boundary.
#include <gtest/gtest.h>

#include "pack/gpu/plan/choose.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;

constexpr Offset large = 16 << 20;

/// Rows of whole sectors, 16 MiB in all.
Numbers rows(bool unpack, Offset length = 128, int word_shift = 4, int row_alignment_shift = 5) {
  Numbers numbers;
  numbers.unpack = unpack;
  numbers.bytes = large;
  numbers.row_length = length;
  numbers.word_shift = word_shift;
  numbers.row_alignment_shift = row_alignment_shift;
  return numbers;
}

Numbers transposed(Offset element, int word_shift) {
  Numbers numbers = rows(false, element, word_shift);
  numbers.inner_count = numbers.across_count = 100;
  numbers.inner_stride = 100 * element;
  numbers.across_stride = element;
  return numbers;
}

TEST(Choose, WhatHasNoChoice) {
  Numbers numbers;
  numbers.kind = ShapeKind::contiguous;
  EXPECT_EQ(choose_regime(numbers), Regime::contiguous);
  numbers.kind = ShapeKind::segments;
  EXPECT_EQ(choose_regime(numbers), Regime::segments);
  numbers.kind = ShapeKind::tree;
  EXPECT_EQ(choose_regime(numbers), Regime::tree);
}

TEST(Choose, OverlappingUnpackIsOrderedWhateverIsForced) {
  Numbers numbers = rows(true);
  numbers.injective = false;
  EXPECT_EQ(choose_regime(numbers), Regime::ordered);
  EXPECT_EQ(choose_regime(numbers, Regime::nest), Regime::ordered);
  numbers.unpack = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
}

TEST(Choose, OddRowsAreShiftedOrGivenSectors) {
  EXPECT_EQ(choose_regime(rows(false, 100, 2)), Regime::nest) << "words of 4 bytes";
  EXPECT_EQ(choose_regime(rows(false, 102, 1)), Regime::shifted);
  EXPECT_EQ(choose_regime(rows(true, 22, 1)), Regime::sectors);
  EXPECT_EQ(choose_regime(rows(false, 4, 0)), Regime::shifted);
  EXPECT_EQ(choose_regime(rows(false, 3, 0)), Regime::nest) << "too short";
  EXPECT_EQ(choose_regime(rows(true, 3, 0)), Regime::nest);
}

TEST(Choose, RowsThatSplitSectorsAreGivenSectors) {
  EXPECT_EQ(choose_regime(rows(true)), Regime::nest);
  EXPECT_EQ(choose_regime(rows(true, 132, 2)), Regime::sectors) << "the length";
  EXPECT_EQ(choose_regime(rows(true, 128, 4, 4)), Regime::sectors) << "the place";
  EXPECT_EQ(choose_regime(rows(true, 32, 4, 4)), Regime::nest) << "no longer than a sector";
  EXPECT_EQ(choose_regime(rows(true, 36, 2)), Regime::sectors);
  EXPECT_EQ(choose_regime(rows(false, 132, 2)), Regime::nest) << "reading parts of sectors costs nothing";
}

TEST(Choose, FewRowsThatSplitSectorsAreLeftToTheCaches) {
  Numbers numbers = rows(true, 132, 2);
  numbers.bytes = 12288 * 132;
  EXPECT_EQ(choose_regime(numbers), Regime::sectors);
  --numbers.bytes;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers = rows(true, Offset{1} << 62, 2, 2);
  numbers.rows_fit_32_bits = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "many such rows would be more bytes than 63 bits count";
}

TEST(Choose, SectorsInLinesOfTheirOwnAreWrittenAsSectors) {
  Numbers numbers = rows(true, 32);
  numbers.row_distance = 64;
  EXPECT_EQ(choose_regime(numbers), Regime::sectors);
  EXPECT_TRUE(has_lone_sectors(numbers));
  numbers.row_distance = 63;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "rows share lines";
  numbers.row_distance = 64;
  numbers.row_alignment_shift = 4;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "parts of two sectors";
  EXPECT_FALSE(has_lone_sectors(numbers));
  numbers.row_alignment_shift = 5;
  numbers.row_length = 64;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "two sectors";
  numbers.row_length = 32;
  numbers.unpack = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
}

TEST(Choose, RowsOfThreeWordsFarApartArePaddedToFour) {
  Numbers numbers = rows(false, 12, 2);
  numbers.whole_words = true;
  numbers.row_distance = 64;
  EXPECT_EQ(choose_regime(numbers), Regime::sectors);
  numbers.row_distance = 63;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "rows share lines";
  numbers.row_distance = 64;
  numbers.whole_words = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers.whole_words = true;
  numbers.row_length = 16;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
}

TEST(Choose, TransposesHaveToBeWorthATile) {
  EXPECT_EQ(choose_regime(transposed(8, 3)), Regime::transpose);
  Numbers numbers = transposed(8, 3);
  numbers.unpack = true;
  EXPECT_EQ(choose_regime(numbers), Regime::transpose);
  numbers = transposed(8, 2);
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "an element must be one word";
  numbers = transposed(8, 3);
  numbers.inner_count = 15;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers.inner_count = 16;
  EXPECT_EQ(choose_regime(numbers), Regime::transpose);
  numbers.across_count = 15;
  EXPECT_EQ(choose_regime(numbers), Regime::interleaved);
  numbers = transposed(8, 3);
  numbers.across_stride = -64;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "no neighbours in a line";
  numbers.across_stride = -56;
  EXPECT_EQ(choose_regime(numbers), Regime::transpose);
  numbers.inner_stride = -56;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "neighbours already";
  numbers = transposed(8, 3);
  numbers.fits_32_bits = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
}

TEST(Choose, FieldsOfStructsThatShareSectorsAreInterleaved) {
  const auto fields = [](Offset count, Offset element, int word_shift) {
    Numbers numbers = transposed(element, word_shift);
    numbers.across_count = count;
    numbers.inner_stride = count * element;
    numbers.inner_count = large / numbers.inner_stride;
    return numbers;
  };
  for (const bool unpack : {false, true}) {
    Numbers numbers = fields(3, 4, 2);
    numbers.unpack = unpack;
    EXPECT_EQ(choose_regime(numbers), Regime::interleaved);
    numbers.bytes = numbers.inner_count * 12 - 1;
    EXPECT_EQ(choose_regime(numbers), Regime::nest) << "only a part of some fields";
  }
  EXPECT_EQ(choose_regime(fields(5, 8, 3)), Regime::interleaved);
  EXPECT_EQ(choose_regime(fields(5, 8, 2)), Regime::nest) << "an element must be one word";
  EXPECT_EQ(choose_regime(fields(32, 1, 0)), Regime::interleaved);
  EXPECT_EQ(choose_regime(fields(33, 1, 0)), Regime::nest) << "too many for a tile, and too short for a transpose";
  Numbers numbers = fields(3, 4, 2);
  numbers.across_stride = 32;
  EXPECT_EQ(choose_regime(numbers), Regime::nest) << "a sector each";
}

TEST(Choose, SmallJobsTakeWhatBatchesTake) {
  Numbers numbers = rows(false, 102, 1);
  numbers.bytes = (64 << 10) - 1;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers.bytes = 64 << 10;
  EXPECT_EQ(choose_regime(numbers), Regime::shifted);
  numbers = rows(true, 102, 1);
  numbers.bytes = (64 << 10) - 1;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers.bytes = 64 << 10;
  EXPECT_EQ(choose_regime(numbers), Regime::sectors) << "single bytes, however few rows";
}

TEST(Choose, WhatDoesNotFit32BitsIsANest) {
  Numbers numbers = rows(true, 132, 2);
  numbers.rows_fit_32_bits = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
  numbers = rows(false, 102, 1);
  numbers.rows_fit_32_bits = false;
  EXPECT_EQ(choose_regime(numbers), Regime::nest);
}

TEST(Choose, ForcedWhereItCanRun) {
  EXPECT_EQ(choose_regime(rows(true), Regime::sectors), Regime::sectors);
  EXPECT_EQ(choose_regime(rows(false), Regime::sectors), Regime::nest) << "packing, only whole words";
  EXPECT_EQ(choose_regime(rows(false), Regime::shifted), Regime::shifted);
  EXPECT_EQ(choose_regime(rows(true), Regime::shifted), Regime::nest) << "it packs";
  EXPECT_EQ(choose_regime(rows(true, 132, 2), Regime::nest), Regime::nest);
  EXPECT_EQ(choose_regime(rows(true), Regime::transpose), Regime::nest);
  EXPECT_EQ(choose_regime(rows(true), Regime::tree), Regime::nest);
}

TEST(Choose, NamesOfRegimes) {
  for (const auto& [name, regime] : named_regimes) EXPECT_EQ(regime_named(name), regime);
  EXPECT_FALSE(regime_named("").has_value());
  EXPECT_FALSE(regime_named("ordered").has_value()) << "it is never a matter of choice";
}

}  // namespace
}  // namespace gapless::tests

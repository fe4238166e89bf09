// Where a message may end: after whole basic elements, as a plain list of their sizes says.
#include "layout/datatype/elements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace gapless::layout {
namespace {

using List = std::vector<Offset>;

ElementsPointer basic(Offset size) { return std::make_shared<const Elements>(size); }
ElementsPointer fields(std::vector<Elements::Field> list) { return std::make_shared<const Elements>(std::move(list)); }

List repeated(const List& sizes, int times) {
  List result;
  for (int i = 0; i < times; ++i) result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

/// Of three repetitions, at every number of bytes.
void expect_whole(const Elements& elements, const List& sizes) {
  Offset begin = 0, total = 0;
  for (const Offset size : sizes) total += size;
  ASSERT_EQ(total, elements.size());
  for (const Offset size : repeated(sizes, 3)) {
    for (Offset bytes = begin; bytes < begin + size; ++bytes) ASSERT_EQ(begin, elements.whole(bytes)) << bytes;
    begin += size;
  }
  EXPECT_EQ(begin, elements.whole(begin));
}

TEST(Elements, OfOneSize) { expect_whole(*basic(4), {4}); }

TEST(Elements, OfFields) { expect_whole(*fields({{basic(8), 8}, {basic(4), 8}, {basic(1), 3}}), {8, 4, 4, 1, 1, 1}); }

// A field of a subarray of pairs, say: many repetitions of what its elements are.
TEST(Elements, OfFieldsThatAreManyElements) {
  const ElementsPointer inner = fields({{basic(2), 2}, {basic(12), 48}, {basic(8), 0}});
  expect_whole(*inner, {2, 12, 12, 12, 12});
  List outer = repeated({2, 12, 12, 12, 12}, 3);
  outer.insert(outer.begin(), 8);
  expect_whole(*fields({{basic(8), 8}, {inner, 150}}), outer);
}

TEST(Elements, OfNothingAllIsWhole) { EXPECT_EQ(7, fields({{basic(4), 0}})->whole(7)); }

}  // namespace
}  // namespace gapless::layout

// Checks shared by the tests of this layer.
#pragma once

#include <gtest/gtest.h>

#include "layout/algebra/canonical.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/datatype/datatype.hpp"
#include "layout/layout.hpp"
#include "layout/text/text.hpp"
#include "type_map_oracle.hpp"

namespace gapless::testing {

/// f(0) … f(N - 1).
inline std::vector<std::int64_t> enumerate(const layout::Layout& layout) {
  std::vector<std::int64_t> bytes;
  for (layout::Offset k = 0; k < layout.size; ++k) bytes.push_back(layout::offset_of(layout, k));
  return bytes;
}

/// All runs of [begin, end) that a cursor visits, adjacent ones fused.
inline std::vector<layout::Segment> segments_of(const layout::Layout& layout, layout::Mode outer, layout::Offset begin,
                                                layout::Offset end) {
  std::vector<layout::Segment> runs;
  layout::Cursor cursor(layout, outer, begin, end);
  for (layout::Segment run; cursor.next(run);) {
    if (!runs.empty() && runs.back().offset + runs.back().length == run.offset) {
      runs.back().length += run.length;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

/// The invariants that layout.hpp states.
inline void expect_invariants(const layout::Layout& layout) {
  using layout::Core;
  SCOPED_TRACE(describe(layout));
  if (layout.is_empty()) {
    EXPECT_EQ(layout, layout::Layout{});
    return;
  }
  layout::Offset size = layout.core_size;
  for (const layout::Mode& mode : layout.modes) {
    EXPECT_GE(mode.count, 2);
    size *= mode.count;
  }
  EXPECT_EQ(layout.size, size);
  EXPECT_EQ(layout.base, layout::offset_of(layout, 0));
  switch (layout.core) {
    case Core::block:
      EXPECT_GT(layout.length, 0);
      EXPECT_EQ(layout.core_size, layout.length);
      break;
    case Core::index:
      ASSERT_GE(layout.offsets.size(), 2u);
      EXPECT_EQ(layout.offsets[0], 0);
      EXPECT_EQ(layout.child->base, 0);
      EXPECT_EQ(layout.core_size, layout.child->size * static_cast<layout::Offset>(layout.offsets.size()));
      expect_invariants(*layout.child);
      break;
    case Core::segments:
      ASSERT_GE(layout.offsets.size(), 2u);
      ASSERT_EQ(layout.offsets.size(), layout.ends.size());
      EXPECT_EQ(layout.offsets[0], 0);
      EXPECT_GT(layout.ends[0], 0);
      for (std::size_t i = 1; i < layout.ends.size(); ++i) EXPECT_GT(layout.ends[i], layout.ends[i - 1]);
      EXPECT_EQ(layout.ends[layout.ends.size() - 1], layout.core_size);
      break;
    case Core::sum: {
      ASSERT_GE(layout.parts.size(), 2u);
      EXPECT_EQ(layout.parts[0].layout->base, 0);
      layout::Offset start = 0;
      for (const layout::Part& part : layout.parts) {
        EXPECT_EQ(part.start, start);
        EXPECT_FALSE(part.layout->is_empty());
        expect_invariants(*part.layout);
        start += part.layout->size;
      }
      EXPECT_EQ(layout.core_size, start);
      break;
    }
  }
}

inline void expect_same(const layout::Datatype& type, const TypeMap& map) {
  EXPECT_EQ(enumerate(*type.layout), map.bytes);
  EXPECT_EQ(type.lower_bound, map.lower_bound);
  EXPECT_EQ(type.upper_bound, map.upper_bound);
  EXPECT_EQ(type.true_lower_bound, map.true_lower_bound());
  EXPECT_EQ(type.true_upper_bound, map.true_upper_bound());
  EXPECT_EQ(type.has_explicit_bounds, map.has_markers);
  expect_invariants(*type.layout);
}

}  // namespace gapless::testing

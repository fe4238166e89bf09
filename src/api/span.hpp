// The memory that repetitions of a datatype span, in 63 bits or not at all.
#pragma once

#include "layout/datatype/datatype.hpp"
#include "layout/span.hpp"

namespace gapless::api {

/// Offsets of the first byte and one past the last byte named, and the packed size, of `count` repetitions.
struct Span {
  layout::Offset size;
  layout::Offset first;
  layout::Offset end;
};

/// False if one of the numbers leaves 63 bits. Precondition: count >= 0.
inline bool span_of(const layout::Datatype& datatype, layout::Offset count, Span& span) noexcept {
  if (__builtin_mul_overflow(datatype.size(), count, &span.size)) return false;
  span.first = span.end = 0;
  if (span.size == 0) return true;
  const auto reach = layout::span_of({datatype.true_lower_bound, datatype.true_upper_bound}, count, datatype.extent());
  if (!reach) return false;
  span.first = reach->first;
  span.end = reach->end;
  return true;
}

}  // namespace gapless::api

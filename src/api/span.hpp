// The memory that repetitions of a datatype span, in 63 bits or not at all.
#pragma once

#include <algorithm>

#include "layout/datatype/datatype.hpp"

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
  layout::Offset last_repetition;
  if (__builtin_mul_overflow(datatype.extent(), count - 1, &last_repetition)) return false;
  return !__builtin_add_overflow(datatype.true_lower_bound, std::min<layout::Offset>(last_repetition, 0),
                                 &span.first) &&
         !__builtin_add_overflow(datatype.true_upper_bound, std::max<layout::Offset>(last_repetition, 0), &span.end);
}

}  // namespace gapless::api

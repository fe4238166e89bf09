// The memory that repetitions of a layout reach over, in 63 bits or not at all.
#pragma once

#include <algorithm>
#include <optional>

#include "layout/layout.hpp"

namespace gapless::layout {

/// Offsets of the first byte and one past the last byte.
struct Span {
  Offset first;
  Offset end;
};

/// The span of `count` repetitions, `extent` bytes apart, of what has the span `one`. Nothing where an offset, or the
/// distance between two, leaves 63 bits. Precondition: count >= 1.
inline std::optional<Span> span_of(Span one, Offset count, Offset extent) noexcept {
  Offset last_one = 0, distance = 0;
  Span span{};
  if (__builtin_mul_overflow(count - 1, extent, &last_one) ||
      __builtin_add_overflow(one.first, std::min<Offset>(last_one, 0), &span.first) ||
      __builtin_add_overflow(one.end, std::max<Offset>(last_one, 0), &span.end) ||
      __builtin_sub_overflow(span.end, span.first, &distance))
    return std::nullopt;
  return span;
}

}  // namespace gapless::layout

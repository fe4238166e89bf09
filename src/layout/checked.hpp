// Arithmetic on offsets that throws where a result leaves 63 bits, instead of overflowing.
#pragma once

#include <stdexcept>

#include "layout/layout.hpp"

namespace gapless::layout::checked {

[[noreturn]] inline void overflow() { throw std::overflow_error("datatype reaches beyond 63-bit offsets"); }

inline Offset add(Offset a, Offset b) {
  Offset result;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}

inline Offset subtract(Offset a, Offset b) {
  Offset result;
  if (__builtin_sub_overflow(a, b, &result)) overflow();
  return result;
}

inline Offset multiply(Offset a, Offset b) {
  Offset result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

/// Does count * stride equal `distance`? Never overflows.
inline bool product_equals(Offset count, Offset stride, Offset distance) noexcept {
  Offset product;
  return !__builtin_mul_overflow(count, stride, &product) && product == distance;
}

}  // namespace gapless::layout::checked

// Arithmetic on offsets that throws where a result leaves 63 bits, instead of overflowing.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace gapless::checked {

[[noreturn]] inline void overflow() { throw std::overflow_error("datatype reaches beyond 63-bit offsets"); }

inline std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}

inline std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) overflow();
  return result;
}

inline std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

/// Does count * stride equal `distance`? Never overflows.
inline bool product_equals(std::int64_t count, std::int64_t stride, std::int64_t distance) noexcept {
  std::int64_t product;
  return !__builtin_mul_overflow(count, stride, &product) && product == distance;
}

}  // namespace gapless::checked

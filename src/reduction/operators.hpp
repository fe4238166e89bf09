// The operators, for code on the CPU and on GPUs.
#pragma once

#include <cstdint>
#include <type_traits>

#include "pack/gpu/kernel/arithmetic.hpp"
#include "reduction/reduction.hpp"

namespace gapless::reduction {

// Integers are combined as unsigned ones where that gives the same bits, for those may overflow.
template <class Number>
using Wrapping = typename std::conditional_t<std::is_integral_v<Number>, std::make_unsigned<Number>,
                                             std::type_identity<Number>>::type;

struct Sum {
  template <class Number>
  GAPLESS_HOST_DEVICE Number operator()(Number a, Number b) const noexcept {
    return static_cast<Number>(static_cast<Wrapping<Number>>(a) + static_cast<Wrapping<Number>>(b));
  }
};
struct Product {
  template <class Number>
  GAPLESS_HOST_DEVICE Number operator()(Number a, Number b) const noexcept {
    return static_cast<Number>(static_cast<Wrapping<Number>>(a) * static_cast<Wrapping<Number>>(b));
  }
};
struct Least {
  template <class Number>
  GAPLESS_HOST_DEVICE Number operator()(Number a, Number b) const noexcept {
    return a < b ? a : b;
  }
};
struct Greatest {
  template <class Number>
  GAPLESS_HOST_DEVICE Number operator()(Number a, Number b) const noexcept {
    return a > b ? a : b;
  }
};

/// Returns action(a number, an operator).
template <class Action>
auto visit(const Reduction& reduction, const Action& action) {
  const auto with_operator = [&](auto number) {
    switch (reduction.op) {
      case Operator::sum:
        return action(number, Sum());
      case Operator::product:
        return action(number, Product());
      case Operator::least:
        return action(number, Least());
      default:
        return action(number, Greatest());
    }
  };
  switch (reduction.number) {
    case Number::int32:
      return with_operator(std::int32_t());
    case Number::uint32:
      return with_operator(std::uint32_t());
    case Number::int64:
      return with_operator(std::int64_t());
    case Number::uint64:
      return with_operator(std::uint64_t());
    case Number::float32:
      return with_operator(float());
    default:
      return with_operator(double());
  }
}

}  // namespace gapless::reduction

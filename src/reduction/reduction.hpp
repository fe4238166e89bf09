// Built-in reductions of numbers, as MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX are (MPI standard, section 6.9.2), whatever
// memory the numbers are in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gapless::reduction {

enum class Operator : std::uint8_t { sum, product, least, greatest };
enum class Number : std::uint8_t { int32, uint32, int64, uint64, float32, float64 };

constexpr std::size_t bytes_of(Number number) noexcept {
  return number == Number::int32 || number == Number::uint32 || number == Number::float32 ? 4 : 8;
}

/// What is done with numbers of which kind.
struct Reduction {
  Operator op{};
  Number number{};
};

/// Do the result's bits depend on the order of more than two operands?
constexpr bool depends_on_order(const Reduction& reduction) noexcept {
  const bool is_rounded = reduction.number == Number::float32 || reduction.number == Number::float64;
  return is_rounded && (reduction.op == Operator::sum || reduction.op == Operator::product);
}

/// One reduction: result[i] = operands[0][i] op operands[1][i] op …, from the left, so that the same operands in the
/// same order give the same bits. The result may be one of the operands, from the first byte on, and else overlaps
/// none.
struct Job {
  static constexpr unsigned most_operands = 16;

  Reduction reduction;
  std::uint64_t numbers = 0;
  void* result = nullptr;
  unsigned operand_count = 0;  ///< at least one
  const void* operands[most_operands] = {};
};

/// into = with op into, for so many numbers in memory of the CPU. They need not be aligned.
using Combine = void (*)(const std::byte* with, std::byte* into, std::uint64_t numbers) noexcept;
Combine combining(const Reduction& reduction) noexcept;

}  // namespace gapless::reduction

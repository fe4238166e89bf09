// The kernel's body: what a tile of threads does, on a GPU or in a loop on the CPU.
#pragma once

#include <cstdint>

#include "pack/gpu/kernel/block.hpp"
#include "reduction/operators.hpp"

namespace gapless::reduction {

/// Numbers that a thread reads and writes at once.
template <class Number, int count>
struct alignas(sizeof(Number) * count) Several {
  Number values[count];
};

/// As many numbers as a memory access of 16 bytes has.
template <class Number>
inline constexpr int widest = static_cast<int>(16 / sizeof(Number));

inline constexpr std::uint64_t numbers_per_tile = 4096;

constexpr std::uint64_t tiles_of(const Job& job) noexcept {
  return (job.numbers + numbers_per_tile - 1) / numbers_per_tile;
}

/// Are all of a job's addresses multiples of 16?
inline bool is_aligned(const Job& job) noexcept {
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(job.result);
  for (unsigned k = 0; k < job.operand_count; ++k) bits |= reinterpret_cast<std::uintptr_t>(job.operands[k]);
  return bits % 16 == 0;
}

/// Reduces `count` numbers from number `first` on.
template <class Number, class Operation, int count, class Space>
GAPLESS_HOST_DEVICE void reduce_several(const Job& job, std::uint64_t first, const Space& space) noexcept {
  using Numbers = Several<Number, count>;
  const auto place = [first](const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) + first * sizeof(Number);
  };
  Numbers result = *space.template at<const Numbers>(place(job.operands[0]));
  for (unsigned k = 1; k < job.operand_count; ++k) {
    const Numbers next = *space.template at<const Numbers>(place(job.operands[k]));
    GAPLESS_UNROLL
    for (int i = 0; i < count; ++i) result.values[i] = Operation()(result.values[i], next.values[i]);
  }
  *space.template at<Numbers>(place(job.result)) = result;
}

/// Reduces the numbers of one tile, `count` at a time. Precondition: if `count` is not 1, is_aligned(job).
GAPLESS_RUNS_ANYWHERE
template <class Number, class Operation, int count, class Block>
GAPLESS_HOST_DEVICE void reduce_tile(const Job& job, std::uint64_t tile, const Block& block) noexcept {
  const std::uint64_t begin = tile * numbers_per_tile, most = begin + numbers_per_tile;
  const std::uint64_t end = most < job.numbers ? most : job.numbers;
  const std::uint64_t end_of_several = begin + (end - begin) / count * count;
  block.threads([&](int thread) {
    const auto own = static_cast<std::uint64_t>(thread);
    constexpr std::uint64_t step = std::uint64_t{pack::gpu::threads_per_block} * count;
    for (std::uint64_t at = begin + own * count; at < end_of_several; at += step)
      reduce_several<Number, Operation, count>(job, at, block.space);
    if (end_of_several + own < end) reduce_several<Number, Operation, 1>(job, end_of_several + own, block.space);
  });
}

}  // namespace gapless::reduction

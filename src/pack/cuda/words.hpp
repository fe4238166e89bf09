// Words, tables of offsets, and the sizes that every kernel shares.
#pragma once

#include <cstddef>

#include "layout/layout.hpp"
#include "pack/cuda/arithmetic.hpp"

namespace gapless::pack::cuda {

using layout::Offset;

inline constexpr int threads_per_block = 256;
inline constexpr int words_per_thread = 4;  // one load in flight is not enough to hide memory latency
inline constexpr int words_per_tile = threads_per_block * words_per_thread;

struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// Calls action with a value of the word type of 2^shift bytes, 0 <= shift <= 4. Runs where its action can.
GAPLESS_RUNS_ANYWHERE
template <class Action>
GAPLESS_HOST_DEVICE void visit_word(int shift, const Action& action) {
  switch (shift) {
    case 0:
      return action(std::uint8_t{});
    case 1:
      return action(std::uint16_t{});
    case 2:
      return action(std::uint32_t{});
    case 3:
      return action(std::uint64_t{});
    default:
      return action(Word16{});
  }
}

/// A list of offsets in GPU memory, 4 or 8 bytes an entry.
struct Table {
  const void* entries;
  bool narrow;

  template <class Index>
  GAPLESS_HOST_DEVICE Offset operator[](Index i) const noexcept {
    return narrow ? Offset{static_cast<const std::int32_t*>(entries)[i]} : static_cast<const std::int64_t*>(entries)[i];
  }
};

/// First i in [low, high) with ends[i] > k. Precondition: there is one.
template <class Ends, class Index, class Position>
GAPLESS_HOST_DEVICE Index first_end_after(const Ends& ends, Index low, Index high, Position k) noexcept {
  while (low + 1 < high) {
    const Index middle = low + (high - low) / 2;
    if (ends[middle - 1] > k) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

}  // namespace gapless::pack::cuda

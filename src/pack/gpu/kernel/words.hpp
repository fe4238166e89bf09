// Words, and the sizes that every kernel shares.
#pragma once

#include "layout/layout.hpp"
#include "pack/gpu/kernel/arithmetic.hpp"

namespace gapless::pack::gpu {

using layout::Offset;

inline constexpr int threads_per_block = 256;

inline constexpr std::uint64_t unsigned_(Offset value) noexcept { return static_cast<std::uint64_t>(value); }

struct alignas(16) Word16 {
  std::uint64_t low, high;
};
inline constexpr int largest_word_shift = 4;

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

}  // namespace gapless::pack::gpu

// Rows of equal length: what the regimes share that give threads to rows instead of to packed words.
#pragma once

#include "pack/gpu/regimes/nest.hpp"

namespace gapless::pack::gpu {

/// Row r lies at memory + places.at(r). Packed bytes are counted from the first row that has some in the range, in 32
/// bits, because kernels count them for every word.
struct Rows {
  std::uintptr_t memory;
  std::uintptr_t packed;  ///< address the first byte of the first row has or would have
  std::uint32_t begin;    ///< packed bytes [begin, end) are moved; begin < length
  std::uint32_t end;
  std::uint32_t length;
  std::uint32_t first_row;
  std::uint32_t row_count;
  Nest<std::uint32_t> places;
};

/// Tiles that a block of a kernel of its own may run side by side, with threads of their own.
inline constexpr int most_row_tiles_per_block = 2;

/// Calls action with the form of `places` that a kernel was compiled for.
template <class Action>
void visit_row_form(const Nest<std::uint32_t>& places, const Action& action) {
  if (places.table_level < 0) {
    if (places.level_count == 1) return action(NestForm<1, -1>{});
    if (places.level_count == 2) return action(NestForm<2, -1>{});
    if (places.level_count == 3) return action(NestForm<3, -1>{});
  } else if (places.level_count == 1 && places.table.narrow) {
    return action(NestForm<1, 0>{});
  }
  action(AnyForm{});
}

/// Calls action with the compile-time number of words that each thread has in flight: 1, or what the work has at most.
GAPLESS_RUNS_ANYWHERE
template <class Word, class Work, class Action>
GAPLESS_HOST_DEVICE void visit_row_words(const Work& work, const Action& action) {
  if (work.words_per_thread == 1) return action(std::integral_constant<int, 1>{});
  action(std::integral_constant<int, Work::most_words_per_thread(sizeof(Word))>{});
}

template <class Form>
GAPLESS_HOST_DEVICE std::uintptr_t row_address(const Rows& rows, std::uint32_t row) noexcept {
  if constexpr (Form::level_count == 0) {
    return rows.memory + static_cast<std::uintptr_t>(rows.places.at(row));
  } else {
    return rows.memory + static_cast<std::uintptr_t>(KnownNest<std::uint32_t, Form>{rows.places}.at(row));
  }
}

}  // namespace gapless::pack::gpu

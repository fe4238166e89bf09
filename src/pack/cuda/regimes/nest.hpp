// Regime nest: a block in modes, at most one of them a table of offsets. Its numbers travel in the kernel parameters.
//
// Every thread turns the index of a packed word into the digits of the modes, by multiplication with reciprocals.
#pragma once

#include <type_traits>

#include "pack/cuda/block.hpp"
#include "pack/cuda/range.hpp"

namespace gapless::pack::cuda {

inline constexpr int max_levels = 12;

template <class Index>
struct Level {
  Divider<Index> count;
  std::make_signed_t<Index> stride;
};

/// Counted in words: level 0 walks the words of a block, the last level needs no count.
template <class Index>
struct Nest {
  Level<Index> levels[max_levels];
  Table table;
  int level_count;
  int table_level;  ///< the level whose digit indexes `table`; -1 if none
  int word_shift;   ///< log2 of the bytes in a word

  /// For a level count known when compiled, and no table.
  template <int known_levels>
  GAPLESS_HOST_DEVICE Offset at_known(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    GAPLESS_UNROLL
    for (int i = 0; i + 1 < known_levels; ++i) {
      const Index quotient = levels[i].count.quotient(rest);
      offset += static_cast<Offset>(rest - quotient * levels[i].count.divisor) * levels[i].stride;
      rest = quotient;
    }
    return offset + static_cast<Offset>(rest) * levels[known_levels - 1].stride;
  }

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    GAPLESS_UNROLL
    for (int i = 0; i < max_levels; ++i) {
      if (i >= level_count) break;
      Index digit = rest;
      if (i + 1 < level_count) {
        rest = levels[i].count.quotient(rest);
        digit -= rest * levels[i].count.divisor;
      }
      offset += i == table_level ? table[digit] : static_cast<Offset>(digit) * levels[i].stride;
    }
    return offset;
  }

  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept {
    return at(static_cast<Index>(k >> word_shift)) + static_cast<Offset>(k & ((std::uint64_t{1} << word_shift) - 1));
  }
};

/// A nest whose kernel was compiled for its level count.
template <class Index, int known_levels>
struct KnownNest {
  const Nest<Index>& nest;

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept { return nest.template at_known<known_levels>(word); }
};

/// Calls action with the level count that a kernel was compiled for, 0 for any.
template <class Index, class Action>
void visit_levels(const Nest<Index>& nest, const Action& action) {
  const int known = nest.table_level < 0 ? nest.level_count : 0;
  if (known == 2) return action(std::integral_constant<int, 2>{});
  if (known == 3) return action(std::integral_constant<int, 3>{});
  if (known == 4) return action(std::integral_constant<int, 4>{});
  action(std::integral_constant<int, 0>{});
}

template <class Index>
struct NestWork {
  using Shared = NothingShared;

  Range range;
  Nest<Index> nest;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return range.tiles(); }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return nest.word_shift; }
};

/// known_levels: the nest's level count if it has no table, or 0.
template <class Word, int known_levels = 0, class Index, class Block>
GAPLESS_HOST_DEVICE void run_tile(const NestWork<Index>& work, std::uint64_t tile, const Block& block,
                                  NothingShared&) noexcept {
  if (tile == 0) copy_edges(work.range, work.nest, work.nest.word_shift, block);
  if constexpr (known_levels == 0) {
    copy_tile<Word, Index>(work.range, work.nest, tile, block);
  } else {
    copy_tile<Word, Index>(work.range, KnownNest<Index, known_levels>{work.nest}, tile, block);
  }
}

}  // namespace gapless::pack::cuda

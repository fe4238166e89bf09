// Regime nest: a block in modes, at most one of them a table of offsets. Its numbers travel in the kernel parameters.
//
// Every thread turns the index of a packed word into the digits of the modes, by multiplication with reciprocals. It is
// right for every range and both directions, and fast where words are 4 bytes or wider, rows cover whole sectors or
// little more than one, and neighbours in the packed stream are not far apart in memory.
#pragma once

#include <type_traits>

#include "pack/gpu/kernel/block.hpp"
#include "pack/gpu/kernel/range.hpp"
#include "pack/gpu/kernel/tables.hpp"

namespace gapless::pack::gpu {

inline constexpr int max_levels = 12;

template <class Index>
struct Level {
  Divider<Index> count;
  std::make_signed_t<Index> stride;
};

/// `count` strides; of 32 bits, a single instruction. Precondition: count < 2^(bits - 1).
template <class Index>
GAPLESS_HOST_DEVICE Offset distance(Index count, std::make_signed_t<Index> stride) noexcept {
  return static_cast<Offset>(static_cast<std::make_signed_t<Index>>(count)) * stride;
}

/// Counted in words: level 0 walks the words of a block, the last level needs no count.
template <class Index>
struct Nest {
  Table table;
  int level_count;
  int table_level;                  ///< the level whose digit indexes `table`; -1 if none
  int word_shift;                   ///< log2 of the bytes in a word
  Level<Index> levels[max_levels];  ///< last, so that a batch carries only those in use

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    for (int i = 0; i < level_count; ++i) {
      Index digit = rest;
      if (i + 1 < level_count) {
        rest = levels[i].count.quotient(rest);
        digit -= rest * levels[i].count.divisor;
      }
      offset += i == table_level ? table[digit] : distance(digit, levels[i].stride);
    }
    return offset;
  }

  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept {
    return at(static_cast<Index>(k >> word_shift)) + static_cast<Offset>(k & ((std::uint64_t{1} << word_shift) - 1));
  }
};

/// Words one behind the other.
template <class Index>
Nest<Index> row_nest(int word_shift) noexcept {
  Nest<Index> nest{};
  nest.level_count = 1;
  nest.table_level = -1;
  nest.word_shift = word_shift;
  nest.levels[0] = {make_divider(Index{1}), static_cast<std::make_signed_t<Index>>(Index{1} << word_shift)};
  return nest;
}

/// What a kernel may know of a nest when it is compiled. With level_count 0 it knows nothing.
template <int level_count_, int table_level_>
struct NestForm {
  static constexpr int level_count = level_count_;
  static constexpr int table_level = table_level_;  ///< of a narrow table; -1 if none
};

using AnyForm = NestForm<0, -1>;

/// A nest of known form: without loops and branches, the loads of several words overlap.
template <class Index, class Form>
struct KnownNest {
  const Nest<Index>& nest;

  GAPLESS_HOST_DEVICE Offset at(Index word) const noexcept {
    Index rest = word;
    Offset offset = 0;
    GAPLESS_UNROLL
    for (int i = 0; i < Form::level_count; ++i) {
      const Level<Index>& level = nest.levels[i];
      Index digit = rest;
      if (i + 1 < Form::level_count) {
        rest = level.count.quotient(rest);
        digit -= rest * level.count.divisor;
      }
      offset += i == Form::table_level ? nest.table.narrow_entry(digit) : distance(digit, level.stride);
    }
    return offset;
  }
};

/// Calls action with the form that a kernel was compiled for.
template <class Index, class Action>
void visit_form(const Nest<Index>& nest, const Action& action) {
  if (nest.table_level < 0) {
    if (nest.level_count == 2) return action(NestForm<2, -1>{});
    if (nest.level_count == 3) return action(NestForm<3, -1>{});
    if (nest.level_count == 4) return action(NestForm<4, -1>{});
  } else if (nest.table_level == 1 && nest.table.narrow) {
    if (nest.level_count == 2) return action(NestForm<2, 1>{});
    if (nest.level_count == 3) return action(NestForm<3, 1>{});
  }
  action(AnyForm{});
}

/// Tiles that a block of a kernel of its own may run side by side, with threads of their own.
inline constexpr int most_tiles_per_block = 4;

template <class Index>
struct NestWork {
  Range range;
  int words_per_thread;     ///< in flight: 1, 2 or 4
  int tiles_per_block = 1;  ///< at most most_tiles_per_block
  Nest<Index> nest;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return range.tiles(words_per_thread); }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return nest.word_shift; }
};

/// What words_per_thread is at most for words of so many bytes: as many as lie in a line of memory, where a table's
/// entry has to be read first twice as many. Kernels are compiled up to there.
constexpr int most_words_per_thread(std::size_t word_bytes, bool has_table) noexcept {
  const std::size_t most = (has_table ? 32 : 16) / word_bytes;
  return most < 1 ? 1 : most > 4 ? 4 : static_cast<int>(most);
}

/// Calls action with the compile-time number of words that each thread has in flight.
template <class Action>
void visit_words_per_thread(int words_per_thread, const Action& action) {
  if (words_per_thread == 1) return action(std::integral_constant<int, 1>{});
  if (words_per_thread == 2) return action(std::integral_constant<int, 2>{});
  action(std::integral_constant<int, 4>{});
}

/// For a kernel compiled for the nest's form and a thread's words.
template <class Word, class Form, int words_per_thread, class Index, class Block>
GAPLESS_HOST_DEVICE void run_known_tile(const NestWork<Index>& work, std::uint64_t tile, const Block& block) noexcept {
  if constexpr (Form::level_count == 0) {
    if (tile == 0) copy_edges(work.range, work.nest, work.nest.word_shift, block);
    copy_tile<Word, Index, words_per_thread>(work.range, work.nest, tile, block);
  } else {
    copy_tile_and_edges<Word, Index, words_per_thread>(work.range, KnownNest<Index, Form>{work.nest}, work.nest,
                                                       work.nest.word_shift, tile, block);
  }
}

}  // namespace gapless::pack::gpu

// Regime shifted: packing rows whose lengths or addresses are odd. Every thread assembles whole words of the packed
// stream, reading the aligned words around its bytes and shifting them into place.
//
// Single bytes moved one by one cost sixteen times the instructions of 16-byte words; this costs about twice.
#pragma once

#include "pack/cuda/regimes/rows.hpp"
#include "pack/cuda/unaligned.hpp"

namespace gapless::pack::cuda {

struct ShiftedWork {
  using Shared = NothingShared;
  static constexpr int words_per_thread = 2;
  static constexpr std::uint64_t words_per_tile = words_per_thread * threads_per_block;

  Divider<std::uint32_t> row_length;
  std::uint32_t skew;        ///< packed byte k is byte (k + skew) % 8 of an aligned word
  std::uint64_t first_word;  ///< word w holds packed bytes 8 w - skew and on
  std::uint64_t word_count;
  Rows rows;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    return (word_count + words_per_tile - 1) / words_per_tile;
  }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return 3; }
};

/// Packed bytes [begin, end) of one word, in its lowest bytes.
template <class Form, class Space>
GAPLESS_HOST_DEVICE std::uint64_t gather(const ShiftedWork& work, std::uint64_t begin, std::uint64_t end,
                                         const Space& space) noexcept {
  const Rows& rows = work.rows;
  const auto within = static_cast<std::uint32_t>(begin - std::uint64_t{rows.first_row} * rows.length);
  const std::uint32_t skipped = work.row_length.quotient(within);
  std::uint32_t row = rows.first_row + skipped, start = within - skipped * rows.length;
  std::uint64_t value = 0;
  unsigned filled = 0;
  for (const auto wanted = static_cast<unsigned>(end - begin); filled < wanted; ++row, start = 0) {
    const std::uint32_t left = rows.length - start;
    const unsigned count = left < wanted - filled ? left : wanted - filled;
    const std::uint64_t bytes = load_bytes(space, row_address<Form>(rows, row) + start, count);
    value |= (bytes & (~std::uint64_t{0} >> (64 - 8 * count))) << (8 * filled);
    filled += count;
  }
  return value;
}

template <class Word, class Form, class Block>
GAPLESS_HOST_DEVICE void run_known_tile(const ShiftedWork& work, std::uint64_t tile, const Block& block) noexcept {
  block.threads([&](int thread) {
    const Rows& rows = work.rows;
    std::uint64_t values[ShiftedWork::words_per_thread];
    const auto first_byte = [&](int i) {
      return (work.first_word + tile * ShiftedWork::words_per_tile +
              static_cast<unsigned>(i * threads_per_block + thread)) *
                 8 -
             work.skew;
    };
    const auto is_inside = [&](int i) {
      return tile * ShiftedWork::words_per_tile + static_cast<unsigned>(i * threads_per_block + thread) <
             work.word_count;
    };
    // At the first word, first_byte() may be below 0; compared as signed numbers.
    const auto begin_of = [&](std::uint64_t k) {
      return static_cast<Offset>(k) < static_cast<Offset>(rows.begin) ? rows.begin : k;
    };
    const auto end_of = [&](std::uint64_t k) { return k + 8 < rows.end ? k + 8 : rows.end; };
    GAPLESS_UNROLL
    for (int i = 0; i < ShiftedWork::words_per_thread; ++i) {
      if (!is_inside(i)) continue;
      const std::uint64_t k = first_byte(i);
      values[i] = gather<Form>(work, begin_of(k), end_of(k), block.space);
    }
    GAPLESS_UNROLL
    for (int i = 0; i < ShiftedWork::words_per_thread; ++i) {
      if (!is_inside(i)) continue;
      const std::uint64_t k = first_byte(i);
      const auto from = static_cast<unsigned>(begin_of(k) - k), to = static_cast<unsigned>(end_of(k) - k);
      store_bytes(block.space, rows.packed + k, values[i] << (8 * from), from, to);
    }
  });
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const ShiftedWork& work, std::uint64_t tile, const Block& block,
                                  NothingShared&) noexcept {
  if constexpr (sizeof(Word) == 8) run_known_tile<Word, AnyForm>(work, tile, block);
}

}  // namespace gapless::pack::cuda

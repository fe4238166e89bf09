// Regime shifted: packing rows whose lengths or addresses are odd. Every thread assembles whole words of the packed
// stream, reading the aligned words around its bytes and shifting them into place.
//
// Single bytes moved one by one cost sixteen times the instructions of 16-byte words; this costs about twice.
#pragma once

#include "pack/gpu/kernel/unaligned.hpp"
#include "pack/gpu/regimes/rows.hpp"

namespace gapless::pack::gpu {

struct ShiftedWork {
  using Shared = NothingShared;
  GAPLESS_HOST_DEVICE static constexpr int most_words_per_thread(std::size_t) noexcept { return 2; }

  Divider<std::uint32_t> row_length;
  std::int32_t lead;  ///< word w holds packed bytes lead + 8 w and on, and its address is a multiple of 8
  std::uint32_t word_count;
  int words_per_thread;  ///< in flight: 1 or most_words_per_thread
  Rows rows;

  static constexpr int tiles_per_block = 1;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    const auto words_per_tile = static_cast<std::uint32_t>(words_per_thread * threads_per_block);
    return (word_count + words_per_tile - 1) / words_per_tile;
  }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return 3; }
};

/// The packed bytes of one word that are in the range.
struct PackedWord {
  std::int32_t first;  ///< packed byte that its lowest byte is
  unsigned begin, end;

  GAPLESS_HOST_DEVICE PackedWord(const ShiftedWork& work, std::uint32_t word) noexcept
      : first(work.lead + static_cast<std::int32_t>(8 * word)) {
    const auto range_begin = static_cast<std::int32_t>(work.rows.begin),
               range_end = static_cast<std::int32_t>(work.rows.end);
    begin = first < range_begin ? static_cast<unsigned>(range_begin - first) : 0;
    end = range_end - first < 8 ? static_cast<unsigned>(range_end - first) : 8;
  }
};

template <class Form, class Space>
GAPLESS_HOST_DEVICE std::uint64_t gather(const ShiftedWork& work, const PackedWord& word, const Space& space) noexcept {
  const Rows& rows = work.rows;
  const auto k = static_cast<std::uint32_t>(word.first + static_cast<std::int32_t>(word.begin));
  const std::uint32_t skipped = work.row_length.quotient(k);
  std::uint32_t row = rows.first_row + skipped, start = k - skipped * rows.length;
  std::uint64_t value = 0;
  for (unsigned filled = word.begin; filled < word.end; ++row, start = 0) {
    const std::uint32_t left = rows.length - start;
    const unsigned count = left < word.end - filled ? left : word.end - filled;
    const std::uint64_t bytes = load_bytes(space, row_address<Form>(rows, row) + start, count);
    value |= (bytes & (~std::uint64_t{0} >> (64 - 8 * count))) << (8 * filled);
    filled += count;
  }
  return value;
}

template <class Word, class Form, int words_per_thread, class Block>
GAPLESS_HOST_DEVICE void run_known_tile(const ShiftedWork& work, std::uint64_t tile, const Block& block) noexcept {
  block.threads([&](int thread) {
    const std::uint32_t first =
        static_cast<std::uint32_t>(tile) * (words_per_thread * threads_per_block) + static_cast<std::uint32_t>(thread);
    std::uint64_t values[words_per_thread] = {};
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      const std::uint32_t word = first + static_cast<unsigned>(i * threads_per_block);
      if (word < work.word_count) values[i] = gather<Form>(work, PackedWord(work, word), block.space);
    }
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      const std::uint32_t word = first + static_cast<unsigned>(i * threads_per_block);
      if (word >= work.word_count) continue;
      const PackedWord packed(work, word);
      store_bytes(block.space, work.rows.packed + static_cast<std::uintptr_t>(Offset{packed.first}), values[i],
                  packed.begin, packed.end);
    }
  });
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const ShiftedWork& work, std::uint64_t tile, const Block& block,
                                  NothingShared&) noexcept {
  if constexpr (sizeof(Word) == 8) {
    visit_row_words<Word>(
        work, [&](auto words) { run_known_tile<Word, AnyForm, decltype(words)::value>(work, tile, block); });
  }
}

}  // namespace gapless::pack::gpu

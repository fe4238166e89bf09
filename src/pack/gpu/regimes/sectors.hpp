// Regime sectors: threads are given to the words of rows, not to packed words.
//
// Unpacking rows that do not consist of whole sectors, the 32 bytes that caches and memory deal in:
// a sector that two store instructions write in parts costs as much as several whole ones, and so does one that is
// written in part and must be filled from memory. So no instruction ends inside of a sector, only the ends of rows are
// written in part, and those sectors are fetched ahead. The packed bytes of a word may begin anywhere.
// Rows of a single sector, each in a line of its own, leave the other half of the line to be filled; they are written
// so that the caches do not keep them.
//
// Packing rows of three words that lie far apart: with a fourth thread that does nothing, every warp reads exactly
// eight lines of memory, which is much faster than eleven.
#pragma once

#include "pack/gpu/kernel/unaligned.hpp"
#include "pack/gpu/regimes/rows.hpp"

namespace gapless::pack::gpu {

struct SectorsWork {
  using Shared = NothingShared;

  Divider<std::uint32_t> words_per_row;  ///< of all sectors that a row may touch
  std::uint32_t alignment;               ///< bytes that the first word of a row is aligned to: a sector, or one word
  int shift;                             ///< log2 of the bytes in a word
  bool is_exact;                         ///< rows, packed stream and range begin and end at whole words
  bool is_prefetched;
  bool is_streamed;      ///< is_exact
  bool unpack;           ///< else is_exact
  int words_per_thread;  ///< in flight: 1 or, while unpacking, most_words_per_thread
  int tiles_per_block;   ///< at most most_row_tiles_per_block
  Rows rows;

  GAPLESS_HOST_DEVICE static constexpr int most_words_per_thread(std::size_t word_bytes) noexcept {
    return word_bytes == 4 ? 4 : 2;
  }
  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    const auto words = static_cast<std::uint32_t>(words_per_thread * threads_per_block);
    return (rows.row_count * words_per_row.divisor + words - 1) / words;
  }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return shift; }
};

/// One word of memory and its row. Positions are in bytes from the row's beginning.
struct RowWord {
  std::uintptr_t row;     ///< its address
  std::uintptr_t packed;  ///< the row's packed address
  std::int32_t word;      ///< where the word begins; may be below 0
  std::int32_t begin;     ///< what is written of the row
  std::int32_t end;

  GAPLESS_HOST_DEVICE std::uintptr_t address() const noexcept {
    return row + static_cast<std::uintptr_t>(Offset{word});
  }
  GAPLESS_HOST_DEVICE bool is_touched(int bytes) const noexcept { return word + bytes > begin && word < end; }
  GAPLESS_HOST_DEVICE bool is_whole_sector() const noexcept {
    const std::int32_t sector = word - static_cast<std::int32_t>(address() % sector_bytes);
    return sector >= begin && sector + sector_bytes <= end;
  }
};

/// The word number `index`, counted over all rows; not touched if there is no such row.
template <class Form>
GAPLESS_HOST_DEVICE RowWord row_word(const SectorsWork& work, std::uint32_t index) noexcept {
  const Rows& rows = work.rows;
  const std::uint32_t skipped = work.words_per_row.quotient(index);
  if (skipped >= rows.row_count) return {0, 0, 0, 0, 0};
  const std::uint32_t within = index - skipped * work.words_per_row.divisor;
  const std::uintptr_t row = row_address<Form>(rows, rows.first_row + skipped);
  const std::uint32_t k = skipped * rows.length;
  const auto skew = static_cast<std::int32_t>(row & (work.alignment - 1));
  return {row, rows.packed + k, static_cast<std::int32_t>(within << work.shift) - skew,
          skipped == 0 ? static_cast<std::int32_t>(rows.begin) : 0,
          static_cast<std::int32_t>(skipped + 1 == rows.row_count ? rows.end - k : rows.length)};
}

/// Words that lie inside the range or outside of it, and never across an edge.
template <class Word, class Space>
struct WholeWords {
  const Space& space;
  bool is_streamed;

  GAPLESS_HOST_DEVICE Word load(const RowWord& to) const noexcept {
    return *space.template at<const Word>(to.packed + static_cast<std::uintptr_t>(Offset{to.word}));
  }
  GAPLESS_HOST_DEVICE void store(const RowWord& to, const Word& value) const noexcept {
    if (is_streamed) return store_streaming(space, to.address(), value);
    *space.template at<Word>(to.address()) = value;
  }
};

/// Words of 8 bytes of which any part may be wanted, from any address.
template <class Space>
struct PartWords {
  const Space& space;

  GAPLESS_HOST_DEVICE static unsigned first(const RowWord& to) noexcept {
    return to.word < to.begin ? static_cast<unsigned>(to.begin - to.word) : 0;
  }
  GAPLESS_HOST_DEVICE static unsigned last(const RowWord& to) noexcept {
    return to.end - to.word < 8 ? static_cast<unsigned>(to.end - to.word) : 8;
  }
  GAPLESS_HOST_DEVICE std::uint64_t load(const RowWord& to) const noexcept {
    const std::uintptr_t source = to.packed + static_cast<std::uintptr_t>(Offset{to.word}) + first(to);
    return load_bytes(space, source, last(to) - first(to)) << (8 * first(to));
  }
  GAPLESS_HOST_DEVICE void store(const RowWord& to, std::uint64_t value) const noexcept {
    store_bytes(space, to.address(), value, first(to), last(to));
  }
};

template <class Word, class Form, int words_per_thread, class Words, class Block>
GAPLESS_HOST_DEVICE void scatter_words(const SectorsWork& work, std::uint64_t tile, const Words& words,
                                       const Block& block) noexcept {
  block.threads([&](int thread) {
    const std::uint32_t first =
        static_cast<std::uint32_t>(tile) * (words_per_thread * threads_per_block) + static_cast<std::uint32_t>(thread);
    Word values[words_per_thread] = {};
    RowWord places[words_per_thread];
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      places[i] = row_word<Form>(work, first + static_cast<std::uint32_t>(i * threads_per_block));
      if (!places[i].is_touched(sizeof(Word))) continue;
      if (work.is_prefetched && !places[i].is_whole_sector()) prefetch_sector(places[i].address());
      values[i] = words.load(places[i]);
    }
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      if (places[i].is_touched(sizeof(Word))) words.store(places[i], values[i]);
    }
  });
}

template <class Word, class Form, class Block>
GAPLESS_HOST_DEVICE void gather_words(const SectorsWork& work, std::uint64_t tile, const Block& block) noexcept {
  block.threads([&](int thread) {
    const auto index = static_cast<std::uint32_t>(tile) * threads_per_block + static_cast<std::uint32_t>(thread);
    const RowWord place = row_word<Form>(work, index);
    if (!place.is_touched(sizeof(Word))) return;
    const std::uintptr_t packed = place.packed + static_cast<std::uintptr_t>(Offset{place.word});
    *block.space.template at<Word>(packed) = *block.space.template at<const Word>(place.address());
  });
}

template <class Word, class Form, int words_per_thread, class Block>
GAPLESS_HOST_DEVICE void run_known_tile(const SectorsWork& work, std::uint64_t tile, const Block& block) noexcept {
  using Space = std::remove_cvref_t<decltype(block.space)>;
  if (!work.unpack) {
    if constexpr (sizeof(Word) >= 4) gather_words<Word, Form>(work, tile, block);
  } else if (work.is_exact) {
    if constexpr (sizeof(Word) >= 4) {
      scatter_words<Word, Form, words_per_thread>(work, tile, WholeWords<Word, Space>{block.space, work.is_streamed},
                                                  block);
    }
  } else if constexpr (sizeof(Word) == 8) {
    scatter_words<Word, Form, words_per_thread>(work, tile, PartWords<Space>{block.space}, block);
  }
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const SectorsWork& work, std::uint64_t tile, const Block& block,
                                  NothingShared&) noexcept {
  if constexpr (sizeof(Word) >= 4) {
    visit_row_words<Word>(
        work, [&](auto words) { run_known_tile<Word, AnyForm, decltype(words)::value>(work, tile, block); });
  }
}

}  // namespace gapless::pack::gpu

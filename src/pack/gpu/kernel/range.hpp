// A packed byte range as a kernel sees it: whole words in the middle, single bytes at either edge.
#pragma once

#include <cstdint>

#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {

struct Range {
  std::uintptr_t memory;  ///< address of layout offset 0
  std::uintptr_t packed;  ///< address packed byte 0 has or would have
  std::uint64_t begin;    ///< first packed byte
  std::uint64_t first_word;
  std::uint64_t word_count;
  std::uint32_t head;  ///< bytes before the first whole word
  std::uint32_t tail;  ///< bytes after the last whole word
  bool unpack;

  /// Tiles of that many words a thread; one at least, for the edges.
  GAPLESS_HOST_DEVICE std::uint64_t tiles(int words_per_thread) const noexcept {
    const auto words = static_cast<std::uint64_t>(words_per_thread * threads_per_block);
    return word_count == 0 ? 1 : (word_count + words - 1) / words;
  }
};

/// Moves the bytes at either edge of the range, a thread each. locator.byte(k) is where packed byte k lies.
template <class Locator, class Block>
GAPLESS_HOST_DEVICE void copy_edges(const Range& range, const Locator& locator, int word_shift,
                                    const Block& block) noexcept {
  block.threads([&](int thread) {
    const auto edge = static_cast<std::uint32_t>(thread);
    if (edge >= range.head + range.tail) return;
    const std::uint64_t k = edge < range.head
                                ? range.begin + edge
                                : ((range.first_word + range.word_count) << word_shift) + (edge - range.head);
    const std::uintptr_t memory = range.memory + static_cast<std::uintptr_t>(locator.byte(k));
    const std::uintptr_t packed = range.packed + k;
    *block.space.template at<char>(range.unpack ? memory : packed) =
        *block.space.template at<const char>(range.unpack ? packed : memory);
  });
}

/// What is known when code is compiled; std::bool_constant cannot be asked on a GPU.
template <bool value>
struct Known {
  GAPLESS_HOST_DEVICE constexpr operator bool() const noexcept { return value; }
};

/// One thread's share of a tile that begins with word `begin`: words `thread`, `thread` + threads_per_block, ..., all
/// loaded before any is stored. `whole`: the range has all of the tile's words. `unpack`: the range's, or a constant.
template <class Word, class Index, int words_per_thread, bool whole, class Locator, class Space, class Unpack>
GAPLESS_HOST_DEVICE void copy_words(const Range& range, const Locator& locator, Index begin, int thread,
                                    const Space& space, Unpack unpack) noexcept {
  const auto count = static_cast<Index>(range.word_count), first_word = static_cast<Index>(range.first_word);
  Word words[words_per_thread];
  std::uintptr_t memory[words_per_thread];
  bool exists[words_per_thread];
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = begin + static_cast<Index>(i * threads_per_block + thread);
    exists[i] = whole || word < count;
    if (exists[i]) memory[i] = range.memory + static_cast<std::uintptr_t>(locator.at(first_word + word));
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = begin + static_cast<Index>(i * threads_per_block + thread);
    if (exists[i]) {
      const std::uintptr_t packed = range.packed + std::uint64_t{first_word + word} * sizeof(Word);
      words[i] = *space.template at<const Word>(unpack ? packed : memory[i]);
    }
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = begin + static_cast<Index>(i * threads_per_block + thread);
    if (exists[i]) {
      const std::uintptr_t packed = range.packed + std::uint64_t{first_word + word} * sizeof(Word);
      *space.template at<Word>(unpack ? memory[i] : packed) = words[i];
    }
  }
}

/// The same for all threads of a tile that begins with word `begin`.
template <class Word, class Index, int words_per_thread, bool whole, class Locator, class Block, class Unpack>
GAPLESS_HOST_DEVICE void copy_words_from(const Range& range, const Locator& locator, Index begin, const Block& block,
                                         Unpack unpack) noexcept {
  block.threads([&](int thread) {
    copy_words<Word, Index, words_per_thread, whole>(range, locator, begin, thread, block.space, unpack);
  });
}

/// Moves one tile in packed order; nothing beyond the range. locator.at(word) is where a packed word lies.
/// Precondition: Index counts a tile's words more than the range has.
template <class Word, class Index, int words_per_thread, class Locator, class Block>
GAPLESS_HOST_DEVICE void copy_tile(const Range& range, const Locator& locator, std::uint64_t tile,
                                   const Block& block) noexcept {
  constexpr Index words = words_per_thread * threads_per_block;
  const Index begin = static_cast<Index>(tile) * words;
  if (begin + words <= static_cast<Index>(range.word_count)) {  // needs no comparison with the end
    copy_words_from<Word, Index, words_per_thread, true>(range, locator, begin, block, range.unpack);
  } else {
    copy_words_from<Word, Index, words_per_thread, false>(range, locator, begin, block, range.unpack);
  }
}

/// The same with the bytes at either edge, `edge_locator`.byte(k) each, for locators of little code. A thread that
/// moves one word is bound by its instructions: so all that is rare belongs to the last tile, and the others are
/// compiled for each direction.
template <class Word, class Index, int words_per_thread, class Locator, class EdgeLocator, class Block>
GAPLESS_HOST_DEVICE void copy_tile_and_edges(const Range& range, const Locator& locator,
                                             const EdgeLocator& edge_locator, int word_shift, std::uint64_t tile,
                                             const Block& block) noexcept {
  constexpr Index words = words_per_thread * threads_per_block;
  const auto count = static_cast<Index>(range.word_count);
  const Index begin = static_cast<Index>(tile) * words;
  if (begin + words < count) {
    if (range.unpack) {
      copy_words_from<Word, Index, words_per_thread, true>(range, locator, begin, block, Known<true>{});
    } else {
      copy_words_from<Word, Index, words_per_thread, true>(range, locator, begin, block, Known<false>{});
    }
  } else if (begin < count || tile == 0) {
    copy_edges(range, edge_locator, word_shift, block);
    copy_words_from<Word, Index, words_per_thread, false>(range, locator, begin, block, range.unpack);
  }
}

}  // namespace gapless::pack::gpu

// A packed byte range as a kernel sees it: whole words in the middle, single bytes at either edge.
#pragma once

#include <cstdint>

#include "pack/cuda/words.hpp"

namespace gapless::pack::cuda {

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
    const auto words = static_cast<std::uint64_t>(words_per_thread) * threads_per_block;
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

/// One thread's share of a tile: words first, first + threads_per_block, ..., all loaded before any is stored.
template <class Word, class Index, int words_per_thread, bool whole, class Locator, class Space>
GAPLESS_HOST_DEVICE void copy_words(const Range& range, const Locator& locator, Index first,
                                    const Space& space) noexcept {
  const auto count = static_cast<Index>(range.word_count), first_word = static_cast<Index>(range.first_word);
  Word words[words_per_thread];
  std::uintptr_t memory[words_per_thread];
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = first + static_cast<Index>(i * threads_per_block);
    if (whole || word < count) memory[i] = range.memory + static_cast<std::uintptr_t>(locator.at(first_word + word));
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = first + static_cast<Index>(i * threads_per_block);
    if (whole || word < count) {
      const std::uintptr_t packed = range.packed + std::uint64_t{first_word + word} * sizeof(Word);
      words[i] = *space.template at<const Word>(range.unpack ? packed : memory[i]);
    }
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    const Index word = first + static_cast<Index>(i * threads_per_block);
    if (whole || word < count) {
      const std::uintptr_t packed = range.packed + std::uint64_t{first_word + word} * sizeof(Word);
      *space.template at<Word>(range.unpack ? memory[i] : packed) = words[i];
    }
  }
}

/// Moves one tile in packed order. locator.at(word) is where a packed word lies.
template <class Word, class Index, int words_per_thread, class Locator, class Block>
GAPLESS_HOST_DEVICE void copy_tile(const Range& range, const Locator& locator, std::uint64_t tile,
                                   const Block& block) noexcept {
  constexpr int words_per_tile = words_per_thread * threads_per_block;
  block.threads([&](int thread) {
    const Index first = static_cast<Index>(tile * words_per_tile) + static_cast<Index>(thread);
    if ((tile + 1) * words_per_tile <= range.word_count) {  // needs no comparison with the end
      copy_words<Word, Index, words_per_thread, true>(range, locator, first, block.space);
    } else {
      copy_words<Word, Index, words_per_thread, false>(range, locator, first, block.space);
    }
  });
}

}  // namespace gapless::pack::cuda

// Which words of a small nest each block of a resident kernel moves.
//
// A multiprocessor takes about a nanosecond for every sector that it touches, so many words are the sooner moved the
// more blocks share them. To tell the other blocks of a job takes a fifth of a microsecond, so one block moves a few.
#pragma once

#include <cstdint>

#include "pack/gpu/batch/fused.hpp"

namespace gapless::pack::gpu {

/// How many words each of so many gets, but for the last ones: about as many, for whole warps.
constexpr std::uint32_t words_for_each(std::uint32_t words, std::uint32_t sharers) noexcept {
  const std::uint32_t even = (words + sharers - 1) / sharers;
  return (even + lanes_per_warp - 1) / lanes_per_warp * lanes_per_warp;
}

/// Block i of `blocks` moves that many words from i * words on, the last one those that are left.
struct ResidentShares {
  std::uint32_t words;
  std::uint32_t blocks;
};

/// Postcondition: 1 <= blocks <= most_blocks, and each block has a word where there are words at all.
constexpr ResidentShares shares_of(std::uint32_t words, std::uint32_t most_blocks) noexcept {
  if (words <= threads_per_block) return {words, 1};
  const std::uint32_t each = words_for_each(words, most_blocks);
  return {each, (words + each - 1) / each};
}

/// Moves the nest's words, all that the threads of a block can have in flight at once. Precondition: the nest has no
/// more than `levels`, and no edges.
template <int levels, class Block>
GAPLESS_HOST_DEVICE void run_whole_nest(const SmallNest& nest, const Block& block) noexcept {
  constexpr int most_words_per_thread = 4;
  constexpr std::uint32_t most_at_once = most_words_per_thread * threads_per_block;
  if (nest.word_count <= threads_per_block) return run_small_tile<1, levels>(nest, 0, block);
  if (nest.word_count <= 2 * threads_per_block) return run_small_tile<2, levels>(nest, 0, block);
  for (std::uint32_t tile = 0; tile * most_at_once < nest.word_count; ++tile) {
    run_small_tile<most_words_per_thread, levels>(nest, tile, block);
  }
}

/// Moves one block's share. Precondition: block `index` has one.
template <class Block>
GAPLESS_HOST_DEVICE void run_share(const SmallNest& nest, std::uint32_t words, std::uint32_t index,
                                   const Block& block) noexcept {
  const std::uint32_t begin = index * words, rest = nest.word_count - begin;
  SmallNest share = nest;
  share.first_word += begin;
  share.word_count = rest < words ? rest : words;
  share.head = share.tail = 0;
  // Rows have two levels; the arithmetic for four would take as long as a word does.
  constexpr int few_levels = 2;
  if (nest.level_count <= few_levels) {
    run_whole_nest<few_levels>(share, block);
  } else {
    run_whole_nest<SmallNest::most_levels>(share, block);
  }
  if (index == 0 && nest.head + nest.tail != 0) {
    copy_edges(nest.range(), SmallNestLocator<>(nest), nest.word_shift(), block);
  }
}

}  // namespace gapless::pack::gpu

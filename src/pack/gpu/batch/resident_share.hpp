// What a resident kernel moves, a small nest or a small pair, and which of its words each of the kernel's blocks does.
//
// A multiprocessor takes about a nanosecond for every sector that it touches, so many words are the sooner moved the
// more blocks share them. To tell the other blocks of a job takes a fifth of a microsecond, so one block moves a few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "pack/gpu/batch/fused.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "pack/gpu/regimes/pair.hpp"

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

/// Moves one block's share of a nest. Precondition: block `index` has one.
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

// ---- Pairs ----

/// A refined pair of few modes, in no more bytes than a small nest.
struct ResidentPair {
  static constexpr int most_levels = 3;

  RefinedPairOf<most_levels> places;
  std::uint32_t word_count;
  std::uint32_t word_shift;
};

/// Nothing where the pair is no refined one, or of too many modes.
inline std::optional<ResidentPair> resident_pair(const PairLaunch& launch) noexcept {
  const auto* const work = std::get_if<PairWork<RefinedPair>>(&launch);
  if (work == nullptr || work->places.level_count > ResidentPair::most_levels) return {};
  const RefinedPair& places = work->places;
  ResidentPair pair{{places.origin, places.level_count, {}},
                    static_cast<std::uint32_t>(work->word_count),
                    static_cast<std::uint32_t>(work->word_shift)};
  std::copy_n(places.levels, places.level_count, pair.places.levels);
  return pair;
}

/// Where the words of a resident pair lie, found as SmallNestLocator finds a nest's: without a branch, and with every
/// number in a register.
class ResidentPairLocator {
 public:
  GAPLESS_HOST_DEVICE explicit ResidentPairLocator(const ResidentPair& pair) noexcept : origin_(pair.places.origin) {
    GAPLESS_UNROLL
    for (int i = 0; i < ResidentPair::most_levels; ++i) {
      levels_[i] = {{0, 0, 31}, 0, 0};  // every quotient is 0
      if (i < pair.places.level_count) {
        levels_[i].source_stride = pair.places.levels[i].source_stride;
        levels_[i].destination_stride = pair.places.levels[i].destination_stride;
      }
      if (i + 1 < pair.places.level_count) levels_[i].count = pair.places.levels[i].count;
    }
  }

  GAPLESS_HOST_DEVICE PairPlace place(std::uint32_t word) const noexcept {
    PairPlace place = origin_;
    GAPLESS_UNROLL
    for (const PairedLevel& level : levels_) {
      const std::uint32_t rest = level.count.quotient(word);
      const auto digit = static_cast<Offset>(word - rest * level.count.divisor);
      place.source += static_cast<std::uintptr_t>(digit * level.source_stride);
      place.destination += static_cast<std::uintptr_t>(digit * level.destination_stride);
      word = rest;
    }
    return place;
  }

 private:
  PairPlace origin_;
  PairedLevel levels_[ResidentPair::most_levels];
};

/// Copies the words between the places from word `first` on, threads_per_block apart, as far as there are such words.
template <class Word, int words_per_thread, class Space>
GAPLESS_HOST_DEVICE void copy_words(const PairPlace (&places)[words_per_thread], std::uint32_t first, std::uint32_t end,
                                    const Space& space) noexcept {
  Word words[words_per_thread]{};
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    if (first + i * threads_per_block < end) words[i] = *space.template at<const Word>(places[i].source);
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    if (first + i * threads_per_block < end) *space.template at<Word>(places[i].destination) = words[i];
  }
}

/// Copies the pair's words from `begin` to `end`, so many a thread at once.
template <int words_per_thread, class Block>
GAPLESS_HOST_DEVICE void run_pair_words(const ResidentPair& pair, std::uint32_t begin, std::uint32_t end,
                                        const Block& block) noexcept {
  const ResidentPairLocator locator(pair);
  for (; begin < end; begin += words_per_thread * threads_per_block) {
    block.threads([&](int thread) {
      const std::uint32_t first = begin + static_cast<std::uint32_t>(thread);
      PairPlace places[words_per_thread];
      GAPLESS_UNROLL
      for (int i = 0; i < words_per_thread; ++i) {
        places[i] = locator.place(first + static_cast<std::uint32_t>(i * threads_per_block));
        settle(places[i].source);
        settle(places[i].destination);
      }
      visit_word(static_cast<int>(pair.word_shift),
                 [&](auto word) { copy_words<decltype(word), words_per_thread>(places, first, end, block.space); });
    });
  }
}

/// Moves one block's share of a pair. Precondition: block `index` has one.
template <class Block>
GAPLESS_HOST_DEVICE void run_share(const ResidentPair& pair, std::uint32_t words, std::uint32_t index,
                                   const Block& block) noexcept {
  const std::uint32_t begin = index * words, rest = pair.word_count - begin;
  const std::uint32_t end = begin + (rest < words ? rest : words);
  if (end - begin <= threads_per_block) return run_pair_words<1>(pair, begin, end, block);
  run_pair_words<most_pair_words_per_thread>(pair, begin, end, block);
}

}  // namespace gapless::pack::gpu

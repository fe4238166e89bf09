// From one layout's bytes to another's in one kernel: each thread finds where a packed word lies on both sides.
//
// No packed buffer is written or read, so the memory traffic is half of packing and unpacking, and there is one launch.
//
//   refined   both sides are one nest of modes with two strides each (layout::refine): the digits are found once
//   nests     two nests, counted independently
//   any       each side a nest or a tree: everything else
//   ordered   one run after the other, where the destination names a byte twice and the later one must win
#pragma once

#include "pack/gpu/regimes/contiguous.hpp"
#include "pack/gpu/regimes/nest.hpp"
#include "pack/gpu/regimes/tree.hpp"

namespace gapless::pack::gpu {

inline constexpr int most_pair_words_per_thread = 4;

struct PairPlace {
  std::uintptr_t source;
  std::uintptr_t destination;
};

struct PairedLevel {
  Divider<std::uint32_t> count;
  std::int32_t source_stride;
  std::int32_t destination_stride;
};

/// Level 0 walks the words of a block, the last level needs no count.
template <int most_levels>
struct RefinedPairOf {
  using Index = std::uint32_t;

  PairPlace origin;
  int level_count;
  PairedLevel levels[most_levels];

  GAPLESS_HOST_DEVICE PairPlace place(Index word) const noexcept {
    Offset source = 0, destination = 0;
    for (int i = 0; i < level_count; ++i) {
      Index digit = word;
      if (i + 1 < level_count) {
        word = levels[i].count.quotient(word);
        digit -= word * levels[i].count.divisor;
      }
      source += static_cast<Offset>(digit) * levels[i].source_stride;
      destination += static_cast<Offset>(digit) * levels[i].destination_stride;
    }
    return {origin.source + static_cast<std::uintptr_t>(source),
            origin.destination + static_cast<std::uintptr_t>(destination)};
  }
};

using RefinedPair = RefinedPairOf<max_levels>;
/// What boxes on both sides come to; several of them fit into the parameters of one launch.
using SmallPair = RefinedPairOf<4>;

/// Two locators, one for each side.
template <class Side, class Index_>
struct TwoSides {
  using Index = Index_;

  PairPlace origin;
  Side source, destination;

  GAPLESS_HOST_DEVICE PairPlace place(Index word) const noexcept {
    return {origin.source + static_cast<std::uintptr_t>(source.at(word)),
            origin.destination + static_cast<std::uintptr_t>(destination.at(word))};
  }
};

using NestPair = TwoSides<Nest<std::uint32_t>, std::uint32_t>;

/// A nest or a tree, found out for each word.
struct AnySide {
  bool is_tree;
  Nest<std::uint64_t> nest;
  Tree tree;

  GAPLESS_HOST_DEVICE_CALLED Offset at(std::uint64_t word) const noexcept {
    return is_tree ? tree.at(word) : nest.at(word);
  }
};

using AnyPair = TwoSides<AnySide, std::uint64_t>;

template <class Places_>
struct PairWork {
  using Places = Places_;

  std::uint64_t word_count;
  int word_shift;
  int words_per_thread;  ///< in flight: 1, or most_pair_words_per_thread
  Places places;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    const auto words = static_cast<std::uint64_t>(words_per_thread * threads_per_block);
    return (word_count + words - 1) / words;
  }
};

struct OrderedPairWork {
  PairPlace origin;
  Tree source, destination;
  std::uint64_t bytes;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return 1; }
};

template <class Word, int words_per_thread, class Places, class Block>
GAPLESS_HOST_DEVICE void copy_pair_tile(const PairWork<Places>& work, std::uint64_t tile, const Block& block) noexcept {
  using Index = typename Places::Index;
  block.threads([&](int thread) {
    const Index first = static_cast<Index>(tile) * static_cast<Index>(words_per_thread * threads_per_block) +
                        static_cast<Index>(thread);
    const auto count = static_cast<Index>(work.word_count);
    Word words[words_per_thread] = {};
    std::uintptr_t to[words_per_thread] = {};
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      const Index word = first + static_cast<Index>(i * threads_per_block);
      if (word >= count) continue;
      const PairPlace place = work.places.place(word);
      words[i] = *block.space.template at<const Word>(place.source);
      to[i] = place.destination;
    }
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      const Index word = first + static_cast<Index>(i * threads_per_block);
      if (word < count) *block.space.template at<Word>(to[i]) = words[i];
    }
  });
}

template <class Word, class Places, class Block>
GAPLESS_HOST_DEVICE void run_pair_tile(const PairWork<Places>& work, std::uint64_t tile, const Block& block) noexcept {
  if (work.words_per_thread == 1) return copy_pair_tile<Word, 1>(work, tile, block);
  copy_pair_tile<Word, most_pair_words_per_thread>(work, tile, block);
}

template <class Block>
GAPLESS_HOST_DEVICE void run_pair_tile(const OrderedPairWork& work, const Block& block) noexcept {
  for (std::uint64_t k = 0; k < work.bytes;) {
    const TreePlace from = work.source.place(k), to = work.destination.place(k);
    const std::uint64_t both = from.remaining < to.remaining ? from.remaining : to.remaining;
    const std::uint64_t length = both < work.bytes - k ? both : work.bytes - k;
    const std::uintptr_t source = work.origin.source + static_cast<std::uintptr_t>(from.offset);
    const std::uintptr_t destination = work.origin.destination + static_cast<std::uintptr_t>(to.offset);
    block.threads([&](int thread) {
      for (auto i = static_cast<std::uint64_t>(thread); i < length; i += threads_per_block) {
        *block.space.template at<char>(destination + i) = *block.space.template at<const char>(source + i);
      }
    });
    block.barrier();
    k += length;
  }
}

}  // namespace gapless::pack::gpu

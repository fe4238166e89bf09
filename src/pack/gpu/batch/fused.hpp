// Work of a few regimes as tagged bytes, so that one kernel can run jobs of all kinds.
//
// Small jobs are bound by latency, so the regimes that exist for bandwidth are left out. What is here are nests with
// 32-bit indices, the tree for everything else, and ordered unpacking. Bytes that travel cost time too, so nests of few
// modes, which most jobs are, have a form with as few and as narrow numbers as they need (SmallNest).
#pragma once

#include <cstddef>
#include <optional>
#include <variant>

#include "model/gpu.hpp"
#include "pack/gpu/plan/plan.hpp"

namespace gapless::pack::gpu {

enum class FusedKind : std::uint8_t { small_nest, nest, tree, ordered };

struct FusedTag {
  FusedKind kind;
  std::uint8_t word_shift;
};

/// Words that each thread has in flight, whatever the work asks for: enough for jobs of a few tiles, and compiled once.
inline constexpr int fused_words_per_thread = model::gpu_tuning.fused_words_per_thread;

/// A NestWork<std::uint32_t> of few levels without a table.
struct SmallNest {
  static constexpr int most_levels = 4;

  struct Level {
    std::int32_t stride;
    Divider<std::uint32_t> count;
  };

  std::uintptr_t memory;
  std::uintptr_t packed;
  std::uint32_t first_word;
  std::uint32_t word_count;
  std::uint8_t skipped;  ///< bytes from the range's first to the first whole word
  std::uint8_t head;
  std::uint8_t tail;
  std::uint8_t shift;  ///< log2 of the bytes in a word
  std::uint8_t level_count;
  bool unpack;
  Level levels[most_levels];

  GAPLESS_HOST_DEVICE Range range() const noexcept {
    const std::uint64_t begin = (std::uint64_t{first_word} << shift) - skipped;
    return {memory, packed, begin, first_word, word_count, head, tail, unpack};
  }
  std::uint64_t tiles() const noexcept { return range().tiles(fused_words_per_thread); }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return shift; }
  /// The bytes that are worth carrying: the last level in use needs no count.
  std::size_t size() const noexcept {
    return offsetof(SmallNest, levels) + (level_count - 1u) * sizeof(Level) + sizeof(Level::stride);
  }
};

/// Where the words of a small nest lie. All numbers are fetched at once, and every nest takes the same few instructions
/// without a branch: levels that are not there count nothing. Precondition: the nest has no more than `levels`.
template <int levels = SmallNest::most_levels>
class SmallNestLocator {
 public:
  GAPLESS_HOST_DEVICE explicit SmallNestLocator(const SmallNest& nest) noexcept : word_shift_(nest.word_shift()) {
    GAPLESS_UNROLL
    for (int i = 0; i < levels; ++i) {
      levels_[i] = {0, {0, 0, 31}};  // every quotient is 0
      if (i < nest.level_count) levels_[i].stride = nest.levels[i].stride;
      if (i + 1 < nest.level_count) levels_[i].count = nest.levels[i].count;
    }
  }

  GAPLESS_HOST_DEVICE Offset at(std::uint32_t word) const noexcept {
    Offset offset = 0;
    GAPLESS_UNROLL
    for (const SmallNest::Level& level : levels_) {
      const std::uint32_t rest = level.count.quotient(word);
      offset += static_cast<Offset>(word - rest * level.count.divisor) * level.stride;
      word = rest;
    }
    return offset;
  }

  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept {
    const std::uint64_t within = k & ((std::uint64_t{1} << word_shift_) - 1);
    return at(static_cast<std::uint32_t>(k >> word_shift_)) + static_cast<Offset>(within);
  }

 private:
  int word_shift_;
  SmallNest::Level levels_[levels];
};

using FusedWork = std::variant<SmallNest, NestWork<std::uint32_t>, TreeWork, OrderedWork>;

/// The same movement as a work that fused kernels run; nothing where only a kernel of its own, or the copy engine, does
/// it well.
std::optional<FusedWork> fused(const Launch& work) noexcept;

/// A short contiguous copy as a kernel's work, because a copy engine completes nothing; nothing for any other work.
std::optional<NestWork<std::uint32_t>> short_copy(const Launch& work) noexcept;

FusedTag tag_of(const FusedWork& work) noexcept;
std::uint64_t tiles_of(const FusedWork& work) noexcept;
/// The work's bytes, as far as they are worth carrying.
std::span<const std::byte> bytes_of(const FusedWork& work) noexcept;

/// The tree as a locator that is called, not inlined: it would be the larger part of a fused kernel.
struct CalledTree {
  const Tree& tree;

  GAPLESS_HOST_DEVICE_CALLED Offset at(std::uint64_t word) const noexcept { return tree.at(word); }
  GAPLESS_HOST_DEVICE_CALLED Offset byte(std::uint64_t k) const noexcept { return tree.byte(k); }
};

/// Moves the words between `memory` and the packed stream from word `first` on, threads_per_block apart, as far as
/// there are such words.
template <class Word, int words_per_thread, class Space>
GAPLESS_HOST_DEVICE void move_words(const Range& range, const std::uintptr_t (&memory)[words_per_thread],
                                    std::uint32_t first, const Space& space) noexcept {
  const auto count = static_cast<std::uint32_t>(range.word_count);
  Word words[words_per_thread]{};
  const std::uintptr_t packed = range.packed + (range.first_word + first) * sizeof(Word);
  constexpr std::size_t step = threads_per_block * sizeof(Word);
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    if (first + i * threads_per_block < count) {
      words[i] = *space.template at<const Word>(range.unpack ? packed + i * step : memory[i]);
    }
  }
  GAPLESS_UNROLL
  for (int i = 0; i < words_per_thread; ++i) {
    if (first + i * threads_per_block < count) {
      *space.template at<Word>(range.unpack ? memory[i] : packed + i * step) = words[i];
    }
  }
}

/// Keeps the compiler from computing the address where it is used, which would be once for every width of words.
GAPLESS_HOST_DEVICE void settle([[maybe_unused]] std::uintptr_t& address) noexcept {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(address));
#endif
}

/// Runs one tile of a small nest, of so many words a thread. What does not depend on the width of words comes first:
/// little code is fetched soon. Precondition: the nest has no more than `levels`.
template <int words_per_thread = fused_words_per_thread, int levels = SmallNest::most_levels, class Block>
GAPLESS_HOST_DEVICE void run_small_tile(const SmallNest& nest, std::uint64_t tile, const Block& block) noexcept {
  const Range range = nest.range();
  const SmallNestLocator<levels> locator(nest);
  const auto tile_begin = static_cast<std::uint32_t>(tile) * (words_per_thread * threads_per_block);
  block.threads([&](int thread) {
    const std::uint32_t first = tile_begin + static_cast<std::uint32_t>(thread);
    std::uintptr_t memory[words_per_thread];
    GAPLESS_UNROLL
    for (int i = 0; i < words_per_thread; ++i) {
      const std::uint32_t word = nest.first_word + first + static_cast<std::uint32_t>(i * threads_per_block);
      memory[i] = range.memory + static_cast<std::uintptr_t>(locator.at(word));
      settle(memory[i]);
    }
    visit_word(nest.word_shift(),
               [&](auto word) { move_words<decltype(word), words_per_thread>(range, memory, first, block.space); });
  });
  if (tile == 0 && range.head + range.tail != 0) copy_edges(range, locator, nest.word_shift(), block);
}

/// Runs one tile of the work, of any kind but small_nest, whose bytes lie at `bytes`.
template <class Block>
GAPLESS_HOST_DEVICE void run_large_tile(FusedTag tag, const std::byte* bytes, std::uint64_t tile,
                                        const Block& block) noexcept {
  if (tag.kind == FusedKind::ordered) {
    NothingShared shared;
    return run_tile<std::uint8_t>(*reinterpret_cast<const OrderedWork*>(bytes), tile, block, shared);
  }
  visit_word(tag.word_shift, [&](auto word) {
    using Word = decltype(word);
    if (tag.kind == FusedKind::nest) {
      const auto& work = *reinterpret_cast<const NestWork<std::uint32_t>*>(bytes);
      return run_known_tile<Word, AnyForm, fused_words_per_thread>(work, tile, block);
    }
    const auto& work = *reinterpret_cast<const TreeWork*>(bytes);
    const CalledTree tree{work.tree};
    if (tile == 0) copy_edges(work.range, tree, tag.word_shift, block);
    copy_tile<Word, std::uint64_t, TreeWork::words_per_thread>(work.range, tree, tile, block);
  });
}

/// Runs one tile of the work whose bytes lie at `bytes`. Precondition: tile < tiles_of() that work.
template <class Block>
GAPLESS_HOST_DEVICE void run_fused_tile(FusedTag tag, const std::byte* bytes, std::uint64_t tile,
                                        const Block& block) noexcept {
  if (tag.kind != FusedKind::small_nest) return run_large_tile(tag, bytes, tile, block);
  run_small_tile(*reinterpret_cast<const SmallNest*>(bytes), tile, block);
}

}  // namespace gapless::pack::gpu

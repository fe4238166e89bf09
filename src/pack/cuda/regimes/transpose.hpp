// Regime transpose: elements whose neighbours in the packed stream are far apart in memory, while neighbours in memory
// are far apart in the packed stream. A tile of both orders passes through shared memory, so that both sides see whole
// sectors.
#pragma once

#include "pack/cuda/regimes/nest.hpp"

namespace gapless::pack::cuda {

/// Elements of a tile in each order.
template <class Word>
inline constexpr int transpose_side = sizeof(Word) >= 8 ? 32 : 64;

struct SharedTile {
  alignas(16) std::byte bytes[32 * 33 * sizeof(Word16)];

  /// Rows are one element longer than the tile is wide, so that columns do not all lie in one memory bank.
  template <class Word>
  GAPLESS_HOST_DEVICE Word& at(std::uint32_t row, std::uint32_t column) noexcept {
    static_assert(transpose_side<Word> * (transpose_side<Word> + 1) * sizeof(Word) <= sizeof bytes);
    return reinterpret_cast<Word*>(bytes)[row * (transpose_side<Word> + 1) + column];
  }
};

/// Element e of the packed stream is (inner, across, outer), inner fastest; in memory, across is.
struct TransposeWork {
  using Shared = SharedTile;

  Range range;  ///< one word is one element
  int shift;
  std::uint32_t inner, across;  ///< elements
  std::uint32_t first_outer, outer_count;
  Divider<std::uint32_t> inner_tiles, across_tiles;
  Offset inner_stride;  ///< 0 if inner elements are not equally far apart
  Offset across_stride;
  Nest<std::uint32_t> inner_places, outer_places;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    return std::uint64_t{inner_tiles.divisor} * across_tiles.divisor * outer_count;
  }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return shift; }

  GAPLESS_HOST_DEVICE Offset inner_offset(std::uint32_t i) const noexcept {
    return inner_stride != 0 ? i * inner_stride : inner_places.at(i);
  }
  /// As a locator, for the bytes at either edge of the range.
  GAPLESS_HOST_DEVICE Offset byte(std::uint64_t k) const noexcept {
    const auto element = static_cast<std::uint32_t>(k >> shift), row = element / inner;
    return inner_offset(element % inner) + row % across * across_stride + outer_places.at(row / across) +
           static_cast<Offset>(k & ((std::uint64_t{1} << shift) - 1));
  }
};

struct TransposeTile {
  std::uint32_t inner, across, outer;   ///< of its first element
  std::uint32_t inner_end, across_end;  ///< how many of its elements exist in either direction
  std::uint32_t first;                  ///< packed number of its first element
  bool is_whole;                        ///< all elements exist and belong to the range
};

template <int side>
GAPLESS_HOST_DEVICE TransposeTile transpose_tile(const TransposeWork& work, std::uint64_t number) noexcept {
  const auto index = static_cast<std::uint32_t>(number);
  const std::uint32_t row = work.inner_tiles.quotient(index), plane = work.across_tiles.quotient(row);
  TransposeTile tile;
  tile.inner = (index - row * work.inner_tiles.divisor) * side;
  tile.across = (row - plane * work.across_tiles.divisor) * side;
  tile.outer = work.first_outer + plane;
  tile.inner_end = work.inner - tile.inner < side ? work.inner - tile.inner : side;
  tile.across_end = work.across - tile.across < side ? work.across - tile.across : side;
  tile.first = (tile.outer * work.across + tile.across) * work.inner + tile.inner;
  const std::uint64_t last = std::uint64_t{tile.first} + std::uint64_t{side - 1} * work.inner + side - 1;
  tile.is_whole = tile.inner_end == side && tile.across_end == side && tile.first >= work.range.first_word &&
                  last < work.range.first_word + work.range.word_count;
  return tile;
}

/// Element (i, a) of a tile, and where it lies.
template <class Word>
struct TransposeElement {
  std::uint32_t i, a;

  GAPLESS_HOST_DEVICE TransposeElement(int e, bool in_memory_order) noexcept {
    constexpr int side = transpose_side<Word>;
    const auto fast = static_cast<std::uint32_t>(e % side), slow = static_cast<std::uint32_t>(e / side);
    i = in_memory_order ? slow : fast;
    a = in_memory_order ? fast : slow;
  }
  GAPLESS_HOST_DEVICE bool is_in(const TransposeWork& work, const TransposeTile& tile) const noexcept {
    if (i >= tile.inner_end || a >= tile.across_end) return false;
    const std::uint64_t element = tile.first + a * work.inner + i;
    return element >= work.range.first_word && element < work.range.first_word + work.range.word_count;
  }
  GAPLESS_HOST_DEVICE std::uintptr_t packed(const TransposeWork& work, const TransposeTile& tile) const noexcept {
    return work.range.packed + std::uint64_t{tile.first + a * work.inner + i} * sizeof(Word);
  }
  GAPLESS_HOST_DEVICE std::uintptr_t memory(const TransposeWork& work, const TransposeTile& tile) const noexcept {
    const Offset outer = work.outer_places.at(tile.outer) + tile.across * work.across_stride;
    return work.range.memory +
           static_cast<std::uintptr_t>(outer + work.inner_offset(tile.inner + i) + a * work.across_stride);
  }
};

/// One half of the way: between the shared tile and memory, or between it and the packed stream.
template <class Word, bool to_shared, bool in_memory_order, bool is_whole, class Space>
GAPLESS_HOST_DEVICE void move_elements(const TransposeWork& work, const TransposeTile& tile, int thread,
                                       SharedTile& shared, const Space& space) noexcept {
  using Element = TransposeElement<Word>;
  constexpr int steps = transpose_side<Word> * transpose_side<Word> / threads_per_block;
  constexpr int batch = steps < 8 ? steps : 8;
  for (int step = 0; step < steps; step += batch) {
    Word words[batch];
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const Element element(thread + (step + b) * threads_per_block, in_memory_order);
      if (!is_whole && !element.is_in(work, tile)) continue;
      if constexpr (to_shared) {
        words[b] =
            *space.template at<const Word>(in_memory_order ? element.memory(work, tile) : element.packed(work, tile));
      } else {
        words[b] = shared.template at<Word>(element.i, element.a);
      }
    }
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const Element element(thread + (step + b) * threads_per_block, in_memory_order);
      if (!is_whole && !element.is_in(work, tile)) continue;
      if constexpr (to_shared) {
        shared.template at<Word>(element.i, element.a) = words[b];
      } else {
        *space.template at<Word>(in_memory_order ? element.memory(work, tile) : element.packed(work, tile)) = words[b];
      }
    }
  }
}

template <class Word, bool to_shared, bool in_memory_order, class Block>
GAPLESS_HOST_DEVICE void move_tile(const TransposeWork& work, const TransposeTile& tile, SharedTile& shared,
                                   const Block& block) noexcept {
  block.threads([&](int thread) {
    if (tile.is_whole) {
      move_elements<Word, to_shared, in_memory_order, true>(work, tile, thread, shared, block.space);
    } else {
      move_elements<Word, to_shared, in_memory_order, false>(work, tile, thread, shared, block.space);
    }
  });
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const TransposeWork& work, std::uint64_t number, const Block& block,
                                  SharedTile& shared) noexcept {
  if (number == 0) copy_edges(work.range, work, work.word_shift(), block);
  const TransposeTile tile = transpose_tile<transpose_side<Word>>(work, number);
  if (work.range.unpack) {
    move_tile<Word, true, false>(work, tile, shared, block);
    block.barrier();
    move_tile<Word, false, true>(work, tile, shared, block);
  } else {
    move_tile<Word, true, true>(work, tile, shared, block);
    block.barrier();
    move_tile<Word, false, false>(work, tile, shared, block);
  }
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::cuda

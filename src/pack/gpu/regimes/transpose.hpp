// Regime transpose: elements whose neighbours in the packed stream are far apart in memory, while neighbours in memory
// are far apart in the packed stream. A tile of both orders passes through shared memory, so that both sides see whole
// sectors.
#pragma once

#include "pack/gpu/regimes/planes.hpp"

namespace gapless::pack::gpu {

/// Elements of a tile in each order. The larger one is for elements of 1 and 2 bytes, of which it makes whole sectors;
/// but small jobs must have tiles for all multiprocessors.
inline constexpr int small_side = 32, large_side = 64;

struct SharedTile {
  alignas(16) std::byte bytes[small_side * (small_side + 1) * sizeof(Word16)];

  /// Rows are one element longer than the tile is wide, so that columns do not all lie in one memory bank.
  template <class Word, int side>
  GAPLESS_HOST_DEVICE Word& at(std::uint32_t row, std::uint32_t column) noexcept {
    static_assert(side * (side + 1) * sizeof(Word) <= sizeof bytes);
    return reinterpret_cast<Word*>(bytes)[row * (side + 1) + column];
  }
};

/// A tile lies in both modes of a plane.
struct TransposeWork : Planes {
  using Shared = SharedTile;

  int side;  ///< of a tile
  Divider<std::uint32_t> inner_tiles, across_tiles;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept {
    return std::uint64_t{inner_tiles.divisor} * across_tiles.divisor * outer_count;
  }
};

template <int side>
GAPLESS_HOST_DEVICE PlanePart transpose_tile(const TransposeWork& work, std::uint64_t number) noexcept {
  const auto index = static_cast<std::uint32_t>(number);
  // Tiles follow each other where they are written, so that the parts of a sector meet in the cache.
  const bool across_first = work.range.unpack;
  const Divider<std::uint32_t> fast_tiles = across_first ? work.across_tiles : work.inner_tiles,
                               slow_tiles = across_first ? work.inner_tiles : work.across_tiles;
  const std::uint32_t row = fast_tiles.quotient(index), plane = slow_tiles.quotient(row);
  const std::uint32_t fast = (index - row * fast_tiles.divisor) * side,
                      slow = (row - plane * slow_tiles.divisor) * side;
  return plane_part(work, plane, across_first ? slow : fast, across_first ? fast : slow, side, side);
}

/// A thread's elements of a tile, in memory order or in packed order: one column, `rows_apart` rows from one to the
/// next.
template <class Word, int side, bool in_memory_order>
struct TransposeColumn {
  static constexpr std::uint32_t rows_apart = threads_per_block / side;
  static constexpr int count = side / static_cast<int>(rows_apart);

  std::uint32_t fast, slow;  ///< of the thread's first element
  std::uintptr_t first;      ///< its address
  std::uintptr_t step;       ///< between addresses

  GAPLESS_HOST_DEVICE TransposeColumn(const TransposeWork& work, const PlanePart& tile, int thread) noexcept
      : fast(static_cast<std::uint32_t>(thread % side)), slow(static_cast<std::uint32_t>(thread / side)) {
    if constexpr (in_memory_order) {
      first = tile.memory +
              static_cast<std::uintptr_t>(distance(fast, work.across_stride) + distance(slow, work.inner_stride));
      step = static_cast<std::uintptr_t>(distance(rows_apart, work.inner_stride));
    } else {
      first = work.range.packed + std::uint64_t{tile.element(work, fast, slow)} * sizeof(Word);
      step = std::uint64_t{rows_apart * work.across_packed} * sizeof(Word);
    }
  }
  GAPLESS_HOST_DEVICE std::uint32_t inner(int n) const noexcept {
    return in_memory_order ? slow + static_cast<std::uint32_t>(n) * rows_apart : fast;
  }
  GAPLESS_HOST_DEVICE std::uint32_t across(int n) const noexcept {
    return in_memory_order ? fast : slow + static_cast<std::uint32_t>(n) * rows_apart;
  }
  GAPLESS_HOST_DEVICE std::uintptr_t place(int n) const noexcept { return first + static_cast<unsigned>(n) * step; }

  GAPLESS_HOST_DEVICE bool has(const TransposeWork& work, const PlanePart& tile, int n) const noexcept {
    return tile.has(work, inner(n), across(n));
  }
};

/// One half of the way: between the shared tile and memory, or between it and the packed stream. All loads of a batch
/// are on their way before the first of its stores.
template <class Word, int side, bool to_shared, bool in_memory_order, bool is_whole, class Space>
GAPLESS_HOST_DEVICE void move_elements(const TransposeWork& work, const PlanePart& tile, int thread, SharedTile& shared,
                                       const Space& space) noexcept {
  using Column = TransposeColumn<Word, side, in_memory_order>;
  constexpr int batch = Column::count < 8 ? Column::count : 8;
  const Column column(work, tile, thread);
  GAPLESS_UNROLL
  for (int begin = 0; begin < Column::count; begin += batch) {
    Word words[batch];
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const int n = begin + b;
      if (!is_whole && !column.has(work, tile, n)) continue;
      if constexpr (to_shared) {
        words[b] = *space.template at<const Word>(column.place(n));
      } else {
        words[b] = shared.template at<Word, side>(column.inner(n), column.across(n));
      }
    }
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const int n = begin + b;
      if (!is_whole && !column.has(work, tile, n)) continue;
      if constexpr (to_shared) {
        shared.template at<Word, side>(column.inner(n), column.across(n)) = words[b];
      } else {
        *space.template at<Word>(column.place(n)) = words[b];
      }
    }
  }
}

template <class Word, int side, bool to_shared, bool in_memory_order, class Block>
GAPLESS_HOST_DEVICE void move_tile(const TransposeWork& work, const PlanePart& tile, SharedTile& shared,
                                   const Block& block) noexcept {
  block.threads([&](int thread) {
    if (tile.is_whole) {
      move_elements<Word, side, to_shared, in_memory_order, true>(work, tile, thread, shared, block.space);
    } else {
      move_elements<Word, side, to_shared, in_memory_order, false>(work, tile, thread, shared, block.space);
    }
  });
}

template <class Word, int side, class Block>
GAPLESS_HOST_DEVICE void transpose_square(const TransposeWork& work, std::uint64_t number, const Block& block,
                                          SharedTile& shared) noexcept {
  const PlanePart tile = transpose_tile<side>(work, number);
  if (work.range.unpack) {
    move_tile<Word, side, true, false>(work, tile, shared, block);
    block.barrier();
    move_tile<Word, side, false, true>(work, tile, shared, block);
  } else {
    move_tile<Word, side, true, true>(work, tile, shared, block);
    block.barrier();
    move_tile<Word, side, false, false>(work, tile, shared, block);
  }
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const TransposeWork& work, std::uint64_t number, const Block& block,
                                  SharedTile& shared) noexcept {
  if (number == 0) copy_edges(work.range, work.places, work.word_shift(), block);
  if (work.side == small_side) {
    transpose_square<Word, small_side>(work, number, block, shared);
  } else if constexpr (sizeof(Word) <= 2) {
    transpose_square<Word, large_side>(work, number, block, shared);
  }
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::gpu

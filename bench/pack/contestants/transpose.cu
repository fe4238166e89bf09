// Column after column of a row-major matrix: square tiles through shared memory, so that both sides are read and
// written along their rows; or, of few columns, a thread a row, whose elements the first cache holds.
#include "contestants/hand.hpp"
#include "contestants/words.cuh"

namespace gapless::bench {
namespace {

template <class Word, int edge>
__global__ void __launch_bounds__(block_threads)
    transpose(const Word* source, Word* target, std::uint32_t rows, std::uint32_t columns, std::uint32_t column_tiles) {
  // The source is rows x columns; unpacking is the transpose of the packed matrix, so one kernel does both.
  extern __shared__ __align__(16) char shared[];
  auto* tile = reinterpret_cast<Word*>(shared);
  constexpr int pitch = edge + 1, lines = block_threads / edge;
  const std::uint32_t x = threadIdx.x % edge, y = threadIdx.x / edge;
  const std::uint32_t column = blockIdx.x % column_tiles * edge, row = blockIdx.x / column_tiles * edge;
#pragma unroll
  for (int i = 0; i < edge; i += lines) {
    if (row + y + i < rows && column + x < columns) {
      tile[(y + i) * pitch + x] = source[std::uint64_t{row + y + i} * columns + column + x];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < edge; i += lines) {
    if (column + y + i < columns && row + x < rows) {
      target[std::uint64_t{column + y + i} * rows + row + x] = tile[x * pitch + y + i];
    }
  }
}

template <class Word>
__global__ void __launch_bounds__(block_threads)
    fields(Word* memory, Word* packed, std::uint32_t rows, std::uint32_t columns, bool packs) {
  const std::uint32_t row = blockIdx.x * block_threads + threadIdx.x;
  if (row >= rows) return;
#pragma unroll 4
  for (std::uint32_t column = 0; column < columns; ++column) {
    Word& element = memory[std::uint64_t{row} * columns + column];
    Word& place = packed[std::uint64_t{column} * rows + row];
    if (packs) {
      place = element;
    } else {
      element = place;
    }
  }
}

Contestant fields_variant(const Transposed& matrix) {
  const auto issue = [matrix](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    with_word(static_cast<std::uint64_t>(matrix.element), [&](auto word) {
      using Word = decltype(word);
      fields<Word><<<blocks_for(matrix.rows, block_threads), block_threads, 0, stream>>>(
          reinterpret_cast<Word*>(spot.memory), reinterpret_cast<Word*>(spot.packed),
          static_cast<std::uint32_t>(matrix.rows), static_cast<std::uint32_t>(matrix.columns),
          direction == GAPLESS_PACK);
    });
    launched();
  };
  return {"a thread a row", issue};
}

template <int edge>
Contestant transpose_variant(const Transposed& matrix) {
  const auto issue = [matrix](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const bool packs = direction == GAPLESS_PACK;
    const auto rows = static_cast<std::uint32_t>(packs ? matrix.rows : matrix.columns);
    const auto columns = static_cast<std::uint32_t>(packs ? matrix.columns : matrix.rows);
    with_word(static_cast<std::uint64_t>(matrix.element), [&](auto word) {
      using Word = decltype(word);
      const std::uint32_t column_tiles = blocks_for(columns, edge), blocks = column_tiles * blocks_for(rows, edge);
      const auto* source = reinterpret_cast<const Word*>(packs ? spot.memory : spot.packed);
      auto* target = reinterpret_cast<Word*>(packs ? spot.packed : spot.memory);
      constexpr std::size_t shared = sizeof(Word) * edge * (edge + 1);
      if constexpr (shared <= 48 << 10) {
        transpose<Word, edge><<<blocks, block_threads, shared, stream>>>(source, target, rows, columns, column_tiles);
      }
    });
    launched();
  };
  return {"tiles of " + std::to_string(edge) + " x " + std::to_string(edge), issue};
}

}  // namespace

std::vector<Contestant> transpose_kernels(const Transposed& matrix) {
  std::vector<Contestant> variants{transpose_variant<16>(matrix), transpose_variant<32>(matrix)};
  if (matrix.columns <= 32) variants.push_back(fields_variant(matrix));
  if (matrix.element <= 8) variants.push_back(transpose_variant<64>(matrix));
  return variants;
}

}  // namespace gapless::bench

// Transposes: tiles of as many elements each way as a register holds, turned in registers, so that both sides are read
// and written in whole vectors.
//
// Part of kernels.cpp, which is compiled once per instruction set: everything here has internal linkage.
#pragma once

#include <algorithm>

#include "pack/host/kernels/copies.hpp"

namespace gapless::pack::host {
namespace {

/// An element of 1 to 8 bytes; 16 bytes are two lanes.
template <int bytes>
struct Element {
  using Lane = std::conditional_t<
      bytes == 1, std::uint8_t,
      std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr int lanes = bytes <= 8 ? 1 : bytes / 8;
};

/// `edge` elements in one register.
template <int bytes, int edge>
using TileRow [[gnu::vector_size(bytes * edge), gnu::aligned(1), gnu::may_alias]] = typename Element<bytes>::Lane;

/// The lane of two rows, one behind the other, that comes k-th when their elements from `start` on alternate.
constexpr int interleaved(int k, int start, int edge, int lanes) {
  const int element = k / lanes;
  return (element % 2 * edge + start + element / 2) * lanes + k % lanes;
}

template <int bytes, int edge, int start, int... k>
[[gnu::always_inline]] inline TileRow<bytes, edge> interleave(TileRow<bytes, edge> a, TileRow<bytes, edge> b,
                                                              std::integer_sequence<int, k...>) {
  return __builtin_shufflevector(a, b, interleaved(k, start, edge, Element<bytes>::lanes)...);
}

/// Element (i, j), `bytes` long, from source + i * source_stride + j * bytes to
/// destination + j * destination_stride + i * bytes, for i and j in [0, edge).
template <int bytes, int edge>
[[gnu::always_inline]] inline void turn(const char* source, Offset source_stride, char* destination,
                                        Offset destination_stride) {
  using Row = TileRow<bytes, edge>;
  constexpr auto lanes = std::make_integer_sequence<int, edge * Element<bytes>::lanes>();
  Row row[edge], next[edge];
  for (int i = 0; i < edge; ++i) row[i] = *reinterpret_cast<const Row*>(source + i * source_stride);
    // Each pass is a perfect shuffle of all elements; as many as double an element to `edge` make the transpose.
#pragma GCC unroll 8
  for (int done = 1; done < edge; done *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < edge / 2; ++i) {
      next[2 * i] = interleave<bytes, edge, 0>(row[i], row[i + edge / 2], lanes);
      next[2 * i + 1] = interleave<bytes, edge, edge / 2>(row[i], row[i + edge / 2], lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) row[i] = next[i];
  }
  for (int i = 0; i < edge; ++i) *reinterpret_cast<Row*>(destination + i * destination_stride) = row[i];
}

/// All tiles; those at the far edges overlap the ones before, and write the same bytes again.
template <int bytes, int edge>
void transpose_of(Offset rows, Offset columns, Offset source_stride, Offset destination_stride, const char* source,
                  char* destination) {
  constexpr int line = 64;
  for (Offset column = 0; column < columns; column += edge) {
    const Offset j = std::min(column, columns - edge);
    for (Offset row = 0; row < rows; row += edge) {
      const Offset i = std::min(row, rows - edge);
      char* to = destination + j * destination_stride + i * bytes;
      for (int k = 0; k < edge; ++k) __builtin_prefetch(to + k * destination_stride + line, 1);
      turn<bytes, edge>(source + i * source_stride + j * bytes, source_stride, to, destination_stride);
    }
  }
}

/// As many elements as a register holds, but no more than there are registers for the rows.
template <int bytes>
constexpr int tile_edge = std::min(16, Register<64>::width / bytes);

template <int bytes>
constexpr Transposer transposer_of() {
  if constexpr (tile_edge<bytes> < 2) {
    return {0, nullptr};
  } else {
    return {tile_edge<bytes>, transpose_of<bytes, tile_edge<bytes>>};
  }
}

}  // namespace
}  // namespace gapless::pack::host

// Regime interleaved: the fields of an array of structs, packed one field after the other. A sector of memory holds
// elements of several fields, which lie far apart in the packed stream. A tile has all fields of a stretch of structs
// and passes through shared memory, so that every sector is read once, and written once and whole.
#pragma once

#include "pack/gpu/regimes/planes.hpp"

namespace gapless::pack::gpu {

/// The mode across the packed order, which is in every tile from end to end.
inline constexpr std::uint32_t most_fields = 32;
inline constexpr std::uint32_t interleaved_tile_bytes = 8 << 10;
/// What the distance between two fields in shared memory is a multiple of, but for the part that keeps banks apart.
inline constexpr std::uint32_t bank_line_bytes = 128;

struct InterleavedTile {
  alignas(16) std::byte bytes[interleaved_tile_bytes + bank_line_bytes + most_fields * sizeof(Word16)];
};

struct InterleavedWork : Planes {
  using Shared = InterleavedTile;

  int stretch_shift;              ///< log2 of the structs in a tile
  Divider<std::uint32_t> fields;  ///< divisor: across
  Divider<std::uint32_t> stretches;
  std::uint32_t pitch;  ///< elements of shared memory from one field to the next

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return std::uint64_t{stretches.divisor} * outer_count; }
  GAPLESS_HOST_DEVICE std::uint32_t stretch() const noexcept { return std::uint32_t{1} << stretch_shift; }
};

/// One half of the way: between the shared tile and memory, or between the tile and the packed stream. All loads of a
/// batch are on their way before the first of its stores.
template <class Word, bool to_shared, bool in_memory_order, bool is_whole, class Space>
GAPLESS_HOST_DEVICE void move_fields(const InterleavedWork& work, const PlanePart& part, int thread,
                                     InterleavedTile& shared, const Space& space) noexcept {
  constexpr int count = static_cast<int>(interleaved_tile_bytes / sizeof(Word)) / threads_per_block;
  constexpr int batch = count < 8 ? count : 8;
  auto* const tile = reinterpret_cast<Word*>(shared.bytes);
  const std::uint32_t end = work.across << work.stretch_shift;
  for (int begin = 0; begin < count; begin += batch) {
    std::uintptr_t places[batch];
    std::uint32_t cells[batch];
    bool exist[batch];
    Word words[batch];
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const auto k = static_cast<std::uint32_t>((begin + b) * threads_per_block + thread);
      std::uint32_t inner, field;
      if constexpr (in_memory_order) {
        inner = work.fields.quotient(k);
        field = k - inner * work.across;
        places[b] = part.memory + static_cast<std::uintptr_t>(distance(inner, work.inner_stride) +
                                                              distance(field, work.across_stride));
      } else {
        field = k >> work.stretch_shift;
        inner = k & (work.stretch() - 1);
        places[b] = work.range.packed + std::uint64_t{part.element(work, inner, field)} * sizeof(Word);
      }
      cells[b] = field * work.pitch + inner;
      exist[b] = k < end && (is_whole || part.has(work, inner, field));
      if (!exist[b]) continue;
      if constexpr (to_shared) {
        words[b] = *space.template at<const Word>(places[b]);
      } else {
        words[b] = tile[cells[b]];
      }
    }
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      if (!exist[b]) continue;
      if constexpr (to_shared) {
        tile[cells[b]] = words[b];
      } else {
        *space.template at<Word>(places[b]) = words[b];
      }
    }
  }
}

template <class Word, bool to_shared, bool in_memory_order, class Block>
GAPLESS_HOST_DEVICE void move_stretch(const InterleavedWork& work, const PlanePart& part, InterleavedTile& shared,
                                      const Block& block) noexcept {
  block.threads([&](int thread) {
    if (part.is_whole) {
      move_fields<Word, to_shared, in_memory_order, true>(work, part, thread, shared, block.space);
    } else {
      move_fields<Word, to_shared, in_memory_order, false>(work, part, thread, shared, block.space);
    }
  });
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const InterleavedWork& work, std::uint64_t number, const Block& block,
                                  InterleavedTile& shared) noexcept {
  if (number == 0) copy_edges(work.range, work.places, work.word_shift(), block);
  const auto index = static_cast<std::uint32_t>(number);
  const std::uint32_t plane = work.stretches.quotient(index);
  const std::uint32_t first = (index - plane * work.stretches.divisor) << work.stretch_shift;
  const PlanePart part = plane_part(work, plane, first, 0, work.stretch(), work.across);
  if (work.range.unpack) {
    move_stretch<Word, true, false>(work, part, shared, block);
    block.barrier();
    move_stretch<Word, false, true>(work, part, shared, block);
  } else {
    move_stretch<Word, true, true>(work, part, shared, block);
    block.barrier();
    move_stretch<Word, false, false>(work, part, shared, block);
  }
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::gpu

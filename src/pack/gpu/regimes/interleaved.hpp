// Regime interleaved: the fields of an array of structs, packed one field after the other. A sector of memory holds
// elements of several fields, which lie far apart in the packed stream. A tile has all fields of a stretch of structs
// and passes through shared memory, so that every sector is read once, and written once and whole.
#pragma once

#include "pack/gpu/regimes/planes.hpp"

namespace gapless::pack::gpu {

/// The mode across the packed order, which is in every tile from end to end.
inline constexpr std::uint32_t most_fields = 32;
inline constexpr std::uint32_t interleaved_tile_bytes = 8 << 10;
inline constexpr std::uint32_t bank_line_bytes = 128;  ///< of shared memory: one word of each bank

struct InterleavedTile {
  alignas(
      16) std::byte bytes[interleaved_tile_bytes + (most_fields + 1) * bank_line_bytes + most_fields * sizeof(Word16)];
};

struct InterleavedWork : Planes {
  using Shared = InterleavedTile;

  Divider<std::uint32_t> fields;     ///< divisor: across
  Divider<std::uint32_t> stretch;    ///< structs in a tile: `structs_apart` for each of a thread's elements
  Divider<std::uint32_t> stretches;  ///< in a plane
  std::uint32_t structs_apart;       ///< as many as a block's threads have elements of at a time
  std::uint32_t pitch;               ///< elements of shared memory from one field to the next

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return std::uint64_t{stretches.divisor} * outer_count; }
};

/// Elements of a tile that each thread moves.
template <class Word>
inline constexpr int elements_per_thread = static_cast<int>(interleaved_tile_bytes / sizeof(Word)) / threads_per_block;

/// A thread's elements in memory order: one field of structs at equal distances. Threads that are left over have none.
template <class Word>
struct InMemoryOrder {
  std::uint32_t first_struct, field;
  std::uintptr_t first;
  std::uintptr_t step;
  const InterleavedWork& work;

  GAPLESS_HOST_DEVICE InMemoryOrder(const InterleavedWork& work, const PlanePart& part, int thread) noexcept
      : first_struct(work.fields.quotient(static_cast<std::uint32_t>(thread))),
        field(static_cast<std::uint32_t>(thread) - first_struct * work.across),
        first(part.memory + static_cast<std::uintptr_t>(distance(first_struct, work.inner_stride) +
                                                        distance(field, work.across_stride))),
        step(static_cast<std::uintptr_t>(distance(work.structs_apart, work.inner_stride))),
        work(work) {}

  GAPLESS_HOST_DEVICE std::uint32_t inner(int n) const noexcept {
    return first_struct + static_cast<std::uint32_t>(n) * work.structs_apart;
  }
  GAPLESS_HOST_DEVICE std::uint32_t across(int) const noexcept { return field; }
  GAPLESS_HOST_DEVICE std::uintptr_t place(int n) const noexcept { return first + static_cast<unsigned>(n) * step; }
  GAPLESS_HOST_DEVICE bool exists(int) const noexcept { return first_struct < work.structs_apart; }
};

/// A thread's elements in packed order.
template <class Word>
struct InPackedOrder {
  std::uint32_t thread;
  const InterleavedWork& work;
  const PlanePart& part;

  GAPLESS_HOST_DEVICE InPackedOrder(const InterleavedWork& work, const PlanePart& part, int thread) noexcept
      : thread(static_cast<std::uint32_t>(thread)), work(work), part(part) {}

  GAPLESS_HOST_DEVICE std::uint32_t number(int n) const noexcept {
    return static_cast<std::uint32_t>(n) * threads_per_block + thread;
  }
  GAPLESS_HOST_DEVICE std::uint32_t across(int n) const noexcept { return work.stretch.quotient(number(n)); }
  GAPLESS_HOST_DEVICE std::uint32_t inner(int n) const noexcept { return number(n) - across(n) * work.stretch.divisor; }
  GAPLESS_HOST_DEVICE std::uintptr_t place(int n) const noexcept {
    return work.range.packed + std::uint64_t{part.element(work, inner(n), across(n))} * sizeof(Word);
  }
  GAPLESS_HOST_DEVICE bool exists(int n) const noexcept { return across(n) < work.across; }
};

/// One half of the way: between the shared tile and memory, or between the tile and the packed stream. All loads of a
/// batch are on their way before the first of its stores.
template <class Word, template <class> class Order, bool to_shared, bool is_whole, class Space>
GAPLESS_HOST_DEVICE void move_fields(const InterleavedWork& work, const PlanePart& part, int thread,
                                     InterleavedTile& shared, const Space& space) noexcept {
  constexpr int count = elements_per_thread<Word>, batch = count < 8 ? count : 8;
  auto* const tile = reinterpret_cast<Word*>(shared.bytes);
  const Order<Word> order(work, part, thread);
  const auto has = [&](int n) {
    return order.exists(n) && (is_whole || part.has(work, order.inner(n), order.across(n)));
  };
  const auto cell = [&](int n) -> Word& { return tile[order.across(n) * work.pitch + order.inner(n)]; };
  GAPLESS_UNROLL
  for (int begin = 0; begin < count; begin += batch) {
    Word words[batch];
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const int n = begin + b;
      if (has(n)) words[b] = to_shared ? *space.template at<const Word>(order.place(n)) : cell(n);
    }
    GAPLESS_UNROLL
    for (int b = 0; b < batch; ++b) {
      const int n = begin + b;
      if (!has(n)) continue;
      if constexpr (to_shared) {
        cell(n) = words[b];
      } else {
        *space.template at<Word>(order.place(n)) = words[b];
      }
    }
  }
}

template <class Word, template <class> class Order, bool to_shared, class Block>
GAPLESS_HOST_DEVICE void move_stretch(const InterleavedWork& work, const PlanePart& part, InterleavedTile& shared,
                                      const Block& block) noexcept {
  block.threads([&](int thread) {
    if (part.is_whole) {
      move_fields<Word, Order, to_shared, true>(work, part, thread, shared, block.space);
    } else {
      move_fields<Word, Order, to_shared, false>(work, part, thread, shared, block.space);
    }
  });
}

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const InterleavedWork& work, std::uint64_t number, const Block& block,
                                  InterleavedTile& shared) noexcept {
  if (number == 0) copy_edges(work.range, work.places, work.word_shift(), block);
  const auto index = static_cast<std::uint32_t>(number);
  const std::uint32_t plane = work.stretches.quotient(index), structs = work.stretch.divisor;
  const PlanePart part =
      plane_part(work, plane, (index - plane * work.stretches.divisor) * structs, 0, structs, work.across);
  if (work.range.unpack) {
    move_stretch<Word, InPackedOrder, true>(work, part, shared, block);
    block.barrier();
    move_stretch<Word, InMemoryOrder, false>(work, part, shared, block);
  } else {
    move_stretch<Word, InMemoryOrder, true>(work, part, shared, block);
    block.barrier();
    move_stretch<Word, InPackedOrder, false>(work, part, shared, block);
  }
  block.barrier();  // shared memory may be used again
}

}  // namespace gapless::pack::gpu

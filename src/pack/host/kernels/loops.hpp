// Loops around copies: rows of blocks, planes of rows, and nests of any depth.
//
// Part of kernels.cpp, which is compiled once per instruction set: everything here has internal linkage.
#pragma once

#include "pack/host/kernels/copies.hpp"
#include "pack/host/set_conflicts.hpp"

namespace gapless::pack::host {
namespace {

// Strides from here on leave a page within a few rows.
constexpr Offset far_stride = 512;
constexpr Offset far_rows = 64;

bool is_far(Offset stride) { return stride >= far_stride || stride <= -far_stride; }

// Hardware prefetchers follow strides inside a page only. Beyond that what is written is fetched ahead, also where it
// is the dense side: they fetch lines to be read, not to be owned. Not for the shortest blocks, of which enough are
// under way at once by themselves, nor for strides that put all rows into a few sets of the first-level cache, where
// they would evict each other before use.
constexpr Offset rows_lookahead = 24;
constexpr Offset conflicting_stride = 1024;

constexpr bool is_line_long(int length) { return length >= 32 && length <= 64; }

bool are_worth_fetching(Offset source_stride, Offset destination_stride) {
  return is_far(destination_stride) ? destination_stride % conflicting_stride != 0 : is_far(source_stride);
}

/// One copy a round: for long blocks, where the loop costs nothing beside them, and for far strides: prefetchers know a
/// stride by the instruction that loads, and a multiple of a far stride is too long for them.
template <class Copy>
[[gnu::always_inline]] inline void single_rows(Copy copy, Offset count, Offset source_stride, Offset destination_stride,
                                               const char* source, char* destination) {
#pragma GCC unroll 1
  for (; count > 0; --count) {
    copy(source, destination);
    source += source_stride;
    destination += destination_stride;
  }
}

/// Four copies a round.
template <class Copy>
[[gnu::always_inline]] inline void near_rows(Copy copy, Offset count, Offset source_stride, Offset destination_stride,
                                             const char* source, char* destination) {
#pragma GCC unroll 1
  for (; count >= 4; count -= 4) {
    for (int i = 0; i < 4; ++i) {
      copy(source, destination);
      source += source_stride;
      destination += destination_stride;
    }
  }
  if (count == 0) [[likely]]
    return;
  single_rows(copy, count, source_stride, destination_stride, source, destination);
}

template <class Copy>
[[gnu::noinline]] void many_rows(Copy copy, Offset count, Offset source_stride, Offset destination_stride,
                                 const char* source, char* destination) {
  if (!is_far(source_stride) && !is_far(destination_stride)) {
    return near_rows(copy, count, source_stride, destination_stride, source, destination);
  }
  const ConflictRules& conflicts = *conflict_rules.load(std::memory_order_relaxed);
  if (conflicts.stores.applies_to(copy.size(), count, destination_stride)) {
    return copy_conflicting_rows(conflicts.stores, destination_stride, copy.size(), count, source_stride,
                                 destination_stride, source, destination);
  }
  if (conflicts.loads.applies_to(copy.size(), count, source_stride)) {
    return copy_conflicting_rows(conflicts.loads, source_stride, copy.size(), count, source_stride, destination_stride,
                                 source, destination);
  }
  if constexpr (is_line_long(Copy::shortest)) {
    if (are_worth_fetching(source_stride, destination_stride)) {
      for (; count > rows_lookahead; --count) {
        __builtin_prefetch(destination + rows_lookahead * destination_stride, 1);
        copy(source, destination);
        source += source_stride;
        destination += destination_stride;
      }
    }
  }
  single_rows(copy, count, source_stride, destination_stride, source, destination);
}

template <class Copy>
[[gnu::always_inline]] inline void rows(Copy copy, Offset count, Offset source_stride, Offset destination_stride,
                                        const char* source, char* destination) {
  if constexpr (Copy::shortest > 64) {
    const ConflictRule& stores = conflict_rules.load(std::memory_order_relaxed)->stores;
    if (stores.applies_to(copy.size(), count, destination_stride)) [[unlikely]] {
      return copy_conflicting_rows(stores, destination_stride, copy.size(), count, source_stride, destination_stride,
                                   source, destination);
    }
    single_rows(copy, count, source_stride, destination_stride, source, destination);
  } else if (count >= far_rows) [[unlikely]] {
    many_rows(copy, count, source_stride, destination_stride, source, destination);
  } else if constexpr (is_line_long(Copy::shortest)) {
    single_rows(copy, count, source_stride, destination_stride, source, destination);
  } else {
    near_rows(copy, count, source_stride, destination_stride, source, destination);
  }
}

// Longer rows have room for the hardware's prefetchers.
constexpr Offset longest_by_words = 2048;
// Rows a multiple of this apart fall into the same few sets of every cache.
constexpr Offset colliding_stride = 4096;

/// Rows of at least 64 bytes, 64 at a time in words of `bytes`; the last 64 may overlap the ones before. The next row's
/// lines may be fetched for writing meanwhile: its beginning is nothing that a hardware prefetcher could foresee.
template <int bytes, bool fetches>
[[gnu::always_inline]] inline void rows_by_words(Offset length, Offset count, Offset source_stride,
                                                 Offset destination_stride, const char* source, char* destination) {
  constexpr Offset line = 64;
  const auto move_line = [&](Offset k) __attribute__((always_inline)) {
    if (fetches) __builtin_prefetch(destination + destination_stride + k, 1);
    for (int word = 0; word < line; word += bytes) move<bytes>(source + k + word, destination + k + word);
  };
  for (; count > 0; --count) {
    for (Offset k = 0; k < length - line; k += line) move_line(k);
    move_line(length - line);
    source += source_stride;
    destination += destination_stride;
  }
}

/// Rows too long for a copy of their own. Some processors had better fetch the next row meanwhile; what is written to
/// colliding lines some of these had better write in small words, without asking for more of them at once.
[[gnu::always_inline]] inline void rows(Long copy, Offset count, Offset source_stride, Offset destination_stride,
                                        const char* source, char* destination) {
  const Offset length = copy.length;
  const LongRows best = conflict_rules.load(std::memory_order_relaxed)->long_rows;
  if (count == 1 || length > longest_by_words || best == LongRows::one_by_one) {
    single_rows(copy, count, source_stride, destination_stride, source, destination);
  } else if (destination_stride % colliding_stride == 0 && best == LongRows::fetched_or_split) {
    rows_by_words<16, false>(length, count, source_stride, destination_stride, source, destination);
  } else {
    rows_by_words<64, true>(length, count, source_stride, destination_stride, source, destination);
  }
}

#ifdef __SSE2__
[[gnu::always_inline]] inline void rows(Streamed copy, Offset count, Offset source_stride, Offset destination_stride,
                                        const char* source, char* destination) {
  single_rows(copy, count, source_stride, destination_stride, source, destination);
}
#endif

/// One row of a layout; with the packed side's stride a constant there is less to compute before the first byte.
template <int length, bool packs>
[[gnu::aligned(64)]] void rows_of(Offset count, Offset stride, char* memory, char* packed, Offset any_length) {
  const typename RowCopyOf<length>::Type copy(any_length);
  const Offset unit = length < shortest_long ? length : any_length;
  if constexpr (packs) {
    rows(copy, count, stride, unit, memory, packed);
  } else {
    rows(copy, count, unit, stride, packed, memory);
  }
}

/// The two innermost loops; `fixed` is the inner count where it is small and known, else 0.
template <int fixed, class Copy>
[[gnu::always_inline]] inline void plane(Copy copy, const Loop& inner, const Loop& outer, const char* source,
                                         char* destination) {
  const Offset source_stride = inner.source_stride, destination_stride = inner.destination_stride;
  for (Offset i = 0; i < outer.count; ++i) {
    if constexpr (fixed > 0) {
      for (int k = 0; k < fixed; ++k) copy(source + k * source_stride, destination + k * destination_stride);
    } else {
      rows(copy, inner.count, source_stride, destination_stride, source, destination);
    }
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

template <int fixed, class Copy>
[[gnu::always_inline]] inline void cube(Copy copy, const Loop* loop, const char* source, char* destination) {
  const Loop outer = loop[2];
  for (Offset i = 0; i < outer.count; ++i) {
    plane<fixed>(copy, loop[0], loop[1], source, destination);
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

/// The three innermost loops, their shape chosen once.
template <class Copy>
void cubes(Copy copy, const Loop* loop, const char* source, char* destination) {
  switch (loop[0].count) {
    case 2:
      return cube<2>(copy, loop, source, destination);
    case 3:
      return cube<3>(copy, loop, source, destination);
    case 4:
      return cube<4>(copy, loop, source, destination);
    case 8:
      return cube<8>(copy, loop, source, destination);
    default:
      return cube<0>(copy, loop, source, destination);
  }
}

template <class Copy>
void loops(Copy copy, const Loop* loop, int depth, const char* source, char* destination) {
  if (depth == 0) return copy(source, destination);
  if (depth == 1) {
    return rows(copy, loop->count, loop->source_stride, loop->destination_stride, source, destination);
  }
  if (depth == 2) {
    const Loop once[] = {loop[0], loop[1], {1, 0, 0}};
    return cubes(copy, once, source, destination);
  }
  if (depth == 3) return cubes(copy, loop, source, destination);
  const Loop& outer = loop[depth - 1];
  for (Offset i = 0; i < outer.count; ++i) {
    loops(copy, loop, depth - 1, source, destination);
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

template <class Copy>
void nest_of(const Nest& nest, const char* source, char* destination) {
  loops(Copy(nest.length), nest.loops, nest.depth, source, destination);
}

#ifdef __SSE2__
constexpr Kernels::NestOf* streamed_nest = nest_of<Streamed>;
void end_of_streams() { _mm_sfence(); }
#else
constexpr Kernels::NestOf* streamed_nest = nullptr;
void end_of_streams() {}
#endif

}  // namespace
}  // namespace gapless::pack::host

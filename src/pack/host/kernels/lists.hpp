// Blocks at listed offsets, and contiguous runs of differing lengths.
//
// Part of kernels.cpp, which is compiled once per instruction set: everything here has internal linkage.
#pragma once

#include "pack/host/kernels/loops.hpp"

namespace gapless::pack::host {
namespace {

// Lists may jump about in memory where no hardware prefetcher follows, but their future is known.
constexpr Offset list_lookahead = 16;

/// Does the list jump further than a prefetcher follows? Judged by a few places of it; short lists are not worth it.
template <class Entry>
bool jumps(const Entry* offsets, Offset count) {
  constexpr Offset places = 8, near = 512;
  if (count < 16 * places) return false;
  for (Offset i = 1; i <= places; ++i) {
    const Entry* at = offsets + (count - 1) / places * i;
    const Offset step = Offset{at[0]} - Offset{at[-1]};
    if (step > near || step < -near) return true;
  }
  return false;
}

// Stores that wait for their lines make later loads wait whose addresses end in the same 12 bits. So short blocks are
// gathered where stores never wait, and go to the packed buffer together.
constexpr Offset staged_blocks = 64;
template <class Copy>
constexpr bool is_staged = false;
template <int bytes>
constexpr bool is_staged<One<bytes>> = bytes <= 8;

template <class Copy, class Entry>
[[gnu::always_inline]] inline void gather_staged(Copy copy, const Entry* offsets, Offset count, const char* source,
                                                 char* destination) {
  constexpr int length = Copy::shortest, bytes = length * staged_blocks;
  alignas(64) char stage[bytes];
  for (; count >= staged_blocks; count -= staged_blocks, offsets += staged_blocks, destination += bytes) {
    for (int i = 0; i < staged_blocks; ++i) copy(source + offsets[i], stage + i * length);
    for (int i = 0; i < bytes; i += 64) move<64>(stage + i, destination + i);
  }
  for (; count > 0; --count, ++offsets, destination += length) copy(source + *offsets, destination);
}

template <class Copy, class Entry>
void gather_list(Copy copy, const Nest& child, const Entry* offsets, Offset count, Offset stride, const char* source,
                 char* destination) {
  if (child.depth > 0) {
    for (Offset i = 0; i < count; ++i, destination += stride) {
      loops(copy, child.loops, child.depth, source + offsets[i], destination);
    }
    return;
  }
  Offset i = 0;
  if (jumps(offsets, count)) {
    for (; i + list_lookahead < count; ++i, destination += stride) {
      __builtin_prefetch(source + offsets[i + list_lookahead]);
      copy(source + offsets[i], destination);
    }
  }
  if constexpr (is_staged<Copy>) return gather_staged(copy, offsets + i, count - i, source, destination);
#pragma GCC unroll 1
  for (; i < count; ++i, destination += stride) copy(source + offsets[i], destination);
}

template <class Copy, class Entry>
void scatter_list(Copy copy, const Nest& child, const Entry* offsets, Offset count, Offset stride, const char* source,
                  char* destination) {
  if (child.depth > 0) {
    for (Offset i = 0; i < count; ++i, source += stride) {
      loops(copy, child.loops, child.depth, source, destination + offsets[i]);
    }
    return;
  }
  Offset i = 0;
  if (jumps(offsets, count)) {
    for (; i + list_lookahead < count; ++i, source += stride) {
      __builtin_prefetch(destination + offsets[i + list_lookahead], 1);
      copy(source, destination + offsets[i]);
    }
  }
#pragma GCC unroll 1
  for (; i < count; ++i, source += stride) copy(source, destination + offsets[i]);
}

template <class Copy>
void gather_of(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination) {
  const Copy copy(child.length);
  if (offsets.narrow != nullptr) return gather_list(copy, child, offsets.narrow, count, stride, source, destination);
  gather_list(copy, child, offsets.wide, count, stride, source, destination);
}

template <class Copy>
void scatter_of(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination) {
  const Copy copy(child.length);
  if (offsets.narrow != nullptr) return scatter_list(copy, child, offsets.narrow, count, stride, source, destination);
  scatter_list(copy, child, offsets.wide, count, stride, source, destination);
}

/// A field of any length. The commonest lengths have copies of their own; the same few of them come in every record, so
/// that the jump is foreseen.
[[gnu::always_inline]] inline void copy_field(const char* source, char* destination, Offset length) {
  switch (length) {
    case 1:
      return move<1>(source, destination);
    case 2:
      return move<2>(source, destination);
    case 4:
      return move<4>(source, destination);
    case 8:
      return move<8>(source, destination);
    case 12:
      return Exact<12>()(source, destination);
    case 16:
      return move<16>(source, destination);
    case 24:
      return Exact<24>()(source, destination);
    case 32:
      return move<32>(source, destination);
    default:
      return copy_any(source, destination, length);
  }
}

template <bool packs, class Entry>
void move_records(const Field* fields, int field_count, const Entry* offsets, Offset count, Offset size, char* memory,
                  char* packed) {
  for (Offset i = 0; i < count; ++i, packed += size) {
    if (i + list_lookahead < count) __builtin_prefetch(memory + offsets[i + list_lookahead], packs ? 0 : 1);
    char* const record = memory + offsets[i];
    for (const Field* field = fields; field < fields + field_count; ++field) {
      char *const at = record + field->memory, *const packed_at = packed + field->packed;
      copy_field(packs ? at : packed_at, packs ? packed_at : at, field->length);
    }
  }
}

template <bool packs>
void records_of(const Field* fields, int field_count, List offsets, Offset count, Offset size, char* memory,
                char* packed) {
  if (offsets.narrow != nullptr) {
    return move_records<packs>(fields, field_count, offsets.narrow, count, size, memory, packed);
  }
  move_records<packs>(fields, field_count, offsets.wide, count, size, memory, packed);
}

/// Calls run(offsets, ends) with pointers of the lists' own widths.
template <class Run>
[[gnu::always_inline]] inline void with_lists(List offsets, List ends, Run run) {
  if (offsets.narrow != nullptr) {
    if (ends.narrow != nullptr) return run(offsets.narrow, ends.narrow);
    return run(offsets.narrow, ends.wide);
  }
  if (ends.narrow != nullptr) return run(offsets.wide, ends.narrow);
  return run(offsets.wide, ends.wide);
}

/// A few entries at a time, so that short runs of differing lengths all take the same way.
template <class First, class Begin>
[[gnu::always_inline]] inline void expand(const First* firsts, const Begin* offsets, Offset stride, Offset run,
                                          Offset first, Offset last, Offset* entries) {
  typedef Offset Some __attribute__((vector_size(8 * expansion_slack), aligned(8), may_alias));
  const Some steps = Some{0, 1, 2, 3, 4, 5, 6, 7} * stride;
  for (; first < last; ++run) {
    const Offset end = firsts[run + 1] < last ? Offset{firsts[run + 1]} : last;
    Some some = steps + (offsets[run] + (first - firsts[run]) * stride);
    Offset* at = entries;
    entries += end - first;
#pragma GCC unroll 1
    for (; at < entries; at += expansion_slack, some += expansion_slack * stride) *reinterpret_cast<Some*>(at) = some;
    first = end;
  }
}

void expand_runs(const ListInRuns& list, Offset run, Offset first, Offset last, Offset* entries) {
  with_lists(list.offsets, list.firsts,
             [&](auto* offsets, auto* firsts) { expand(firsts, offsets, list.stride, run, first, last, entries); });
}

// Lengths that differ from run to run cost a mispredicted branch each time the kind of copy changes, which is more than
// the copy itself. So two kinds cover a wide range: `words` words for `shortest` to `words` times as many bytes, then
// four longer ones.
template <int shortest, int words>
struct Ladder {
  [[gnu::always_inline]] void operator()(const char* source, char* destination, Offset length) const {
    constexpr int next = shortest * words;
    if (static_cast<std::uint64_t>(length - shortest) <= next - shortest) {
      if constexpr (words == 2) {
        const Overlapped<shortest> copy(length);
        copy(source, destination);
      } else {
        move_four<shortest>(source, destination, length);
      }
    } else if (static_cast<std::uint64_t>(length - next) <= 3 * next) {
      move_four<next>(source, destination, length);
    } else {
      copy_any(source, destination, length);
    }
  }
};

template <bool gathers, class Copy, class OffsetEntry, class EndEntry, class Memory, class Packed>
void move_runs(Copy copy, const OffsetEntry* offsets, const EndEntry* ends, Offset first, Offset last, Memory memory,
               Packed packed) {
  Offset start = first > 0 ? ends[first - 1] : 0;
  const auto move_run = [&](Offset i) __attribute__((always_inline)) {
    const Offset end = ends[i], length = end - start;
    if constexpr (gathers) {
      copy(memory + offsets[i], packed, length);
    } else {
      copy(packed, memory + offsets[i], length);
    }
    packed += length;
    start = end;
  };
  Offset i = first;
  for (; i + list_lookahead < last; ++i) {
    __builtin_prefetch(memory + offsets[i + list_lookahead], gathers ? 0 : 1);
    move_run(i);
  }
  for (; i < last; ++i) move_run(i);
}

constexpr int looked_at = 32;
constexpr int mispredicted = 24, four_words = 2;  // about their costs, in cycles

/// What a ladder would cost for runs like these, beyond what every ladder costs.
template <int shortest, int words>
int cost_of(Ladder<shortest, words>, const Offset (&lengths)[looked_at]) {
  constexpr int next = shortest * words;
  int first = 0, second = 0;
  for (const Offset length : lengths) {
    const bool is_first = length >= shortest && length <= next;
    first += is_first;
    second += !is_first && length >= next && length <= 4 * next;
  }
  const int rare = looked_at - (first > second ? first : second);
  return rare * mispredicted + (second + (words == 4 ? first : 0)) * four_words;
}

/// Calls run with the ladder that suits the first few runs; short lists do not repay the look.
template <class EndEntry, class Run>
void with_ladder(const EndEntry* ends, Offset first, Offset last, Run run) {
  if (last - first < 4 * looked_at) return run(Ladder<4, 4>());
  Offset lengths[looked_at];
  Offset start = first > 0 ? ends[first - 1] : 0;
  for (int i = 0; i < looked_at; ++i) {
    lengths[i] = ends[first + i] - start;
    start = ends[first + i];
  }
  const int costs[] = {cost_of(Ladder<4, 2>(), lengths),  cost_of(Ladder<4, 4>(), lengths),
                       cost_of(Ladder<8, 2>(), lengths),  cost_of(Ladder<8, 4>(), lengths),
                       cost_of(Ladder<16, 2>(), lengths), cost_of(Ladder<16, 4>(), lengths)};
  int best = 0;
  for (int i = 1; i < 6; ++i) best = costs[i] < costs[best] ? i : best;
  switch (best) {
    case 0:
      return run(Ladder<4, 2>());
    case 1:
      return run(Ladder<4, 4>());
    case 2:
      return run(Ladder<8, 2>());
    case 3:
      return run(Ladder<8, 4>());
    case 4:
      return run(Ladder<16, 2>());
    default:
      return run(Ladder<16, 4>());
  }
}

void gather_runs(List offsets, List ends, Offset first, Offset last, const char* memory, char* packed) {
  with_lists(offsets, ends, [&](auto* o, auto* e) {
    with_ladder(e, first, last, [&](auto copy) { move_runs<true>(copy, o, e, first, last, memory, packed); });
  });
}

void scatter_runs(List offsets, List ends, Offset first, Offset last, char* memory, const char* packed) {
  with_lists(offsets, ends, [&](auto* o, auto* e) {
    with_ladder(e, first, last, [&](auto copy) { move_runs<false>(copy, o, e, first, last, memory, packed); });
  });
}

}  // namespace
}  // namespace gapless::pack::host

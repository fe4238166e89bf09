// One source for every instruction set: GAPLESS_KERNELS names the table this compilation defines.
//
// A block's length picks a copy once, outside the loops: one word, two words of which the second overlaps the first, a
// few vectors with an overlapping tail, or memcpy for long blocks. So any length up to 256 bytes is moved without a
// branch.

#include "pack/kernels.hpp"

#include <cstring>
#include <utility>

namespace gapless::pack::host {
namespace {

// Moved through registers as a whole. `may_alias` and the alignment of 1 make any address legal.
template <int bytes>
struct Register {
#if defined(__AVX512F__)
  static constexpr int width = bytes < 64 ? bytes : 64;
#elif defined(__AVX2__)
  static constexpr int width = bytes < 32 ? bytes : 32;
#else
  static constexpr int width = bytes < 16 ? bytes : 16;
#endif
  typedef char Lane __attribute__((vector_size(width), aligned(1), may_alias));
  Lane lanes[bytes / width];
};

template <int bytes>
[[gnu::always_inline]] inline void move(const char* source, char* destination) {
  using Word = Register<bytes>;
  constexpr int lanes = bytes / Word::width;
  typename Word::Lane value[lanes];
  for (int i = 0; i < lanes; ++i) value[i] = *reinterpret_cast<const typename Word::Lane*>(source + i * Word::width);
  for (int i = 0; i < lanes; ++i) *reinterpret_cast<typename Word::Lane*>(destination + i * Word::width) = value[i];
}

template <int bytes>
struct One {
  explicit One(Offset) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    move<bytes>(source, destination);
  }
};

// `words` whole words, then one that ends where the block ends.
template <int bytes, int words = 1>
struct Overlapped {
  Offset tail;
  explicit Overlapped(Offset length) : tail(length - bytes) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    for (int i = 0; i < words; ++i) move<bytes>(source + i * bytes, destination + i * bytes);
    move<bytes>(source + tail, destination + tail);
  }
};

struct Long {
  Offset length;
  explicit Long(Offset length) : length(length) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    std::memcpy(destination, source, static_cast<std::size_t>(length));
  }
};

/// The copy for blocks of exactly `length` bytes; Long for everything from longest_fixed on.
template <int length>
struct CopyOf {
  using Type = Overlapped<32, (length - 1) / 32>;
};
template <int length>
requires(length == 0 || length >= longest_fixed) struct CopyOf<length> {
  using Type = Long;
};
template <int length>
requires(length == 1 || length == 2 || length == 4 || length == 8 || length == 16 || length == 32 ||
         length == 64) struct CopyOf<length> {
  using Type = One<length>;
};
template <>
struct CopyOf<3> {
  using Type = Overlapped<2>;
};
template <int length>
requires(length > 4 && length < 32 && length != 8 && length != 16) struct CopyOf<length> {
  using Type = Overlapped < length < 8 ? 4 : length<16 ? 8 : 16>;
};

constexpr int power_of_two_from(int length) { return length <= 1 ? 1 : 2 * power_of_two_from((length + 1) / 2); }

/// A block of known length: with its offsets as constants a row needs no address arithmetic of its own, which in short
/// blocks is a third of the work.
template <int length>
struct Exact {
  explicit Exact(Offset) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    constexpr int ceiling = power_of_two_from(length);
    constexpr int bytes = ceiling > 32 ? 32 : ceiling == length ? length : ceiling / 2;
    constexpr int words = length / bytes, rest = length % bytes, last = power_of_two_from(rest);
    for (int i = 0; i < words; ++i) move<bytes>(source + i * bytes, destination + i * bytes);
    if constexpr (rest > 0) move<last>(source + length - last, destination + length - last);
  }
};

/// The copy for rows: exact while that keeps the tables small.
template <int length>
struct RowCopyOf {
  using Type = typename CopyOf<length>::Type;
};
template <int length>
requires(length > 0 && length <= 64) struct RowCopyOf<length> {
  using Type = Exact<length>;
};

template <class Copy>
[[gnu::always_inline]] inline void rows(Copy copy, Offset count, Offset source_stride, Offset destination_stride,
                                        const char* source, char* destination) {
  for (; count >= 4; count -= 4) {
    for (int i = 0; i < 4; ++i) {
      copy(source, destination);
      source += source_stride;
      destination += destination_stride;
    }
  }
  for (; count > 0; --count) {
    copy(source, destination);
    source += source_stride;
    destination += destination_stride;
  }
}

// Hardware prefetchers follow strides inside a page only. Beyond that the side with the long stride is fetched ahead,
// but not for the shortest blocks, of which enough are under way at once by themselves, nor for strides that put all
// rows into a few sets of the first-level cache, where they would evict each other before use.
constexpr Offset far_stride = 512;
constexpr Offset far_rows = 64;
constexpr Offset rows_lookahead = 24;
constexpr Offset crowding_stride = 1024;

bool is_far(Offset stride) { return stride >= far_stride || stride <= -far_stride; }

template <class Copy>
void rows_of(Offset length, Offset count, Offset source_stride, Offset destination_stride, const char* source,
             char* destination) {
  const Copy copy(length);
  const bool reads_far = is_far(source_stride);
  if (count >= far_rows && length >= 32 && length <= 64 && (reads_far || is_far(destination_stride)) &&
      (reads_far ? source_stride : destination_stride) % crowding_stride != 0) {
    for (; count > rows_lookahead; --count) {
      if (reads_far) {
        __builtin_prefetch(source + rows_lookahead * source_stride);
      } else {
        __builtin_prefetch(destination + rows_lookahead * destination_stride, 1);
      }
      copy(source, destination);
      source += source_stride;
      destination += destination_stride;
    }
  }
  rows(copy, count, source_stride, destination_stride, source, destination);
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

/// The same where every outer step jumps far, as in transposes.
template <class Copy>
void far_plane(Copy copy, const Loop& inner, const Loop& outer, const char* source, char* destination) {
  constexpr Offset ahead = 12;
  const bool reads_far = is_far(outer.source_stride);
  const Offset near_end = (inner.count - 1) * (reads_far ? inner.source_stride : inner.destination_stride);
  for (Offset i = 0; i < outer.count; ++i) {
    if (reads_far) {
      __builtin_prefetch(source + ahead * outer.source_stride);
      __builtin_prefetch(source + ahead * outer.source_stride + near_end);
    } else {
      __builtin_prefetch(destination + ahead * outer.destination_stride, 1);
      __builtin_prefetch(destination + ahead * outer.destination_stride + near_end, 1);
    }
    rows(copy, inner.count, inner.source_stride, inner.destination_stride, source, destination);
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

template <class Copy>
void planes(Copy copy, const Loop& inner, const Loop& outer, const char* source, char* destination) {
  const bool jumps = is_far(outer.source_stride) || is_far(outer.destination_stride);
  if (jumps && outer.count >= far_rows && inner.count >= 8 && inner.count <= 64) {
    return far_plane(copy, inner, outer, source, destination);
  }
  switch (inner.count) {
    case 2:
      return plane<2>(copy, inner, outer, source, destination);
    case 3:
      return plane<3>(copy, inner, outer, source, destination);
    case 4:
      return plane<4>(copy, inner, outer, source, destination);
    case 8:
      return plane<8>(copy, inner, outer, source, destination);
    default:
      return plane<0>(copy, inner, outer, source, destination);
  }
}

template <class Copy>
void loops(Copy copy, const Loop* loop, int depth, const char* source, char* destination) {
  if (depth == 0) return copy(source, destination);
  const Loop& inner = loop[0];
  if (depth == 1) return rows(copy, inner.count, inner.source_stride, inner.destination_stride, source, destination);
  if (depth == 2) return planes(copy, inner, loop[1], source, destination);
  const Loop& outer = loop[depth - 1];
  for (Offset i = 0; i < outer.count; ++i) {
    if (depth == 3) {
      planes(copy, inner, loop[1], source, destination);
    } else {
      loops(copy, loop, depth - 1, source, destination);
    }
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

template <class Copy>
void nest_of(const Nest& nest, const char* source, char* destination) {
  loops(Copy(nest.length), nest.loops, nest.depth, source, destination);
}

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

/// Calls one(i) for i in [0, count), four at a time.
template <class One>
[[gnu::always_inline]] inline void each(Offset count, One one) {
  Offset i = 0;
  for (; i + 4 <= count; i += 4) {
    one(i);
    one(i + 1);
    one(i + 2);
    one(i + 3);
  }
  for (; i < count; ++i) one(i);
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
  each(
      count - i, [&](Offset k) __attribute__((always_inline)) {
        copy(source + offsets[i + k], destination);
        destination += stride;
      });
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
  each(
      count - i, [&](Offset k) __attribute__((always_inline)) {
        copy(source, destination + offsets[i + k]);
        source += stride;
      });
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

/// A block whose length is known only now.
[[gnu::always_inline]] inline void copy_any(const char* source, char* destination, Offset length) {
  if (length >= 16) {
    if (length <= 32) return Overlapped<16>(length)(source, destination);
    if (length <= 64) return Overlapped<32>(length)(source, destination);
    if (length <= 128) return Overlapped<64>(length)(source, destination);
    return Long(length)(source, destination);
  }
  if (length >= 8) return Overlapped<8>(length)(source, destination);
  if (length >= 4) return Overlapped<4>(length)(source, destination);
  if (length >= 2) return Overlapped<2>(length)(source, destination);
  move<1>(source, destination);
}

/// A block of `bytes` to 4 * `bytes`, without a branch: four words that overlap as far as the length asks.
template <int bytes>
[[gnu::always_inline]] inline void move_four(const char* source, char* destination, Offset length) {
  const Offset last = length - bytes;
  const Offset second = last < bytes ? last : bytes;
  const Offset third = last > bytes ? last - bytes : 0;
  move<bytes>(source, destination);
  move<bytes>(source + second, destination + second);
  move<bytes>(source + third, destination + third);
  move<bytes>(source + last, destination + last);
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

template <int... length>
constexpr Kernels table_of(const char* name, std::integer_sequence<int, length...>) {
  return {name,
          {rows_of<typename RowCopyOf<length>::Type>...},
          {nest_of<typename CopyOf<length>::Type>...},
          {gather_of<typename CopyOf<length>::Type>...},
          {scatter_of<typename CopyOf<length>::Type>...},
          gather_runs,
          scatter_runs};
}

}  // namespace

#define GAPLESS_STRING_OF(x) #x
#define GAPLESS_STRING(x) GAPLESS_STRING_OF(x)
#define GAPLESS_TABLE_OF(x) x##_kernels
#define GAPLESS_TABLE(x) GAPLESS_TABLE_OF(x)

constexpr Kernels GAPLESS_TABLE(GAPLESS_KERNELS) = table_of(GAPLESS_STRING(GAPLESS_KERNELS),
                                                            std::make_integer_sequence<int, longest_fixed + 1>());

}  // namespace gapless::pack::host

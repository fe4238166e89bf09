// One source for every instruction set: GAPLESS_KERNELS names the table this compilation defines.
//
// A block's length picks a copy once, outside the loops: one word, two words of which the second overlaps the first, a
// few vectors with an overlapping tail, or memcpy for long blocks. So any length up to 256 bytes is moved without a
// branch.

#include "pack/kernels.hpp"

#include <cstring>

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

/// Calls run(copy) with the copy for blocks of `length` > 0 bytes.
template <class Run>
[[gnu::always_inline]] inline void with_copy(Offset length, Run run) {
  switch (length) {
    case 1:
      return run(One<1>(length));
    case 2:
      return run(One<2>(length));
    case 3:
      return run(Overlapped<2>(length));
    case 4:
      return run(One<4>(length));
    case 8:
      return run(One<8>(length));
    case 16:
      return run(One<16>(length));
    case 32:
      return run(One<32>(length));
    case 64:
      return run(One<64>(length));
    default:
      break;
  }
  if (length < 8) return run(Overlapped<4>(length));
  if (length < 16) return run(Overlapped<8>(length));
  if (length < 32) return run(Overlapped<16>(length));
  switch ((length - 1) / 32) {
    case 1:
      return run(Overlapped<32, 1>(length));
    case 2:
      return run(Overlapped<32, 2>(length));
    case 3:
      return run(Overlapped<32, 3>(length));
    case 4:
      return run(Overlapped<32, 4>(length));
    case 5:
      return run(Overlapped<32, 5>(length));
    case 6:
      return run(Overlapped<32, 6>(length));
    case 7:
      return run(Overlapped<32, 7>(length));
    default:
      return run(Long(length));
  }
}

template <class Copy>
[[gnu::always_inline]] inline void rows(Copy copy, Loop loop, const char* source, char* destination) {
  Offset left = loop.count;
  for (; left >= 4; left -= 4) {
    for (int i = 0; i < 4; ++i) {
      copy(source, destination);
      source += loop.source_stride;
      destination += loop.destination_stride;
    }
  }
  for (; left > 0; --left) {
    copy(source, destination);
    source += loop.source_stride;
    destination += loop.destination_stride;
  }
}

template <class Copy>
void loops(Copy copy, const Loop* loop, int depth, const char* source, char* destination) {
  if (depth == 0) return copy(source, destination);
  if (depth == 1) return rows(copy, *loop, source, destination);
  const Loop outer = loop[depth - 1];
  if (depth == 2) {
    const Loop inner = loop[0];
    for (Offset i = 0; i < outer.count; ++i) {
      rows(copy, inner, source, destination);
      source += outer.source_stride;
      destination += outer.destination_stride;
    }
    return;
  }
  for (Offset i = 0; i < outer.count; ++i) {
    loops(copy, loop, depth - 1, source, destination);
    source += outer.source_stride;
    destination += outer.destination_stride;
  }
}

void nest(const Nest& nest, const char* source, char* destination) {
  with_copy(nest.length, [&](auto copy) { loops(copy, nest.loops, nest.depth, source, destination); });
}

// Lists jump about in memory where no hardware prefetcher follows, but their future is known.
constexpr Offset list_lookahead = 16;

template <class Copy, class Entry>
void gather_list(Copy copy, const Nest& child, const Entry* offsets, Offset count, Offset stride, const char* source,
                 char* destination) {
  if (child.depth == 0) {
    Offset i = 0;
    for (; i + list_lookahead < count; ++i, destination += stride) {
      __builtin_prefetch(source + offsets[i + list_lookahead]);
      copy(source + offsets[i], destination);
    }
    for (; i < count; ++i, destination += stride) copy(source + offsets[i], destination);
    return;
  }
  for (Offset i = 0; i < count; ++i, destination += stride) {
    loops(copy, child.loops, child.depth, source + offsets[i], destination);
  }
}

template <class Copy, class Entry>
void scatter_list(Copy copy, const Nest& child, const Entry* offsets, Offset count, Offset stride, const char* source,
                  char* destination) {
  if (child.depth == 0) {
    Offset i = 0;
    for (; i + list_lookahead < count; ++i, source += stride) {
      __builtin_prefetch(destination + offsets[i + list_lookahead], 1);
      copy(source, destination + offsets[i]);
    }
    for (; i < count; ++i, source += stride) copy(source, destination + offsets[i]);
    return;
  }
  for (Offset i = 0; i < count; ++i, source += stride) {
    loops(copy, child.loops, child.depth, source, destination + offsets[i]);
  }
}

void gather(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination) {
  with_copy(child.length, [&](auto copy) {
    if (offsets.narrow != nullptr) {
      gather_list(copy, child, offsets.narrow, count, stride, source, destination);
    } else {
      gather_list(copy, child, offsets.wide, count, stride, source, destination);
    }
  });
}

void scatter(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination) {
  with_copy(child.length, [&](auto copy) {
    if (offsets.narrow != nullptr) {
      scatter_list(copy, child, offsets.narrow, count, stride, source, destination);
    } else {
      scatter_list(copy, child, offsets.wide, count, stride, source, destination);
    }
  });
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

[[gnu::always_inline]] inline void copy_any(const char* source, char* destination, Offset length) {
  with_copy(length, [&](auto copy) { copy(source, destination); });
}

template <class OffsetEntry, class EndEntry>
void gather_runs_of(const OffsetEntry* offsets, const EndEntry* ends, Offset first, Offset last, const char* memory,
                    char* packed) {
  Offset start = first > 0 ? ends[first - 1] : 0;
  for (Offset i = first; i < last; ++i) {
    if (i + list_lookahead < last) __builtin_prefetch(memory + offsets[i + list_lookahead]);
    const Offset length = ends[i] - start;
    copy_any(memory + offsets[i], packed, length);
    packed += length;
    start = ends[i];
  }
}

template <class OffsetEntry, class EndEntry>
void scatter_runs_of(const OffsetEntry* offsets, const EndEntry* ends, Offset first, Offset last, char* memory,
                     const char* packed) {
  Offset start = first > 0 ? ends[first - 1] : 0;
  for (Offset i = first; i < last; ++i) {
    if (i + list_lookahead < last) __builtin_prefetch(memory + offsets[i + list_lookahead], 1);
    const Offset length = ends[i] - start;
    copy_any(packed, memory + offsets[i], length);
    packed += length;
    start = ends[i];
  }
}

void gather_runs(List offsets, List ends, Offset first, Offset last, const char* memory, char* packed) {
  with_lists(offsets, ends, [&](auto* o, auto* e) { gather_runs_of(o, e, first, last, memory, packed); });
}

void scatter_runs(List offsets, List ends, Offset first, Offset last, char* memory, const char* packed) {
  with_lists(offsets, ends, [&](auto* o, auto* e) { scatter_runs_of(o, e, first, last, memory, packed); });
}

}  // namespace

#define GAPLESS_STRING_OF(x) #x
#define GAPLESS_STRING(x) GAPLESS_STRING_OF(x)
#define GAPLESS_TABLE_OF(x) x##_kernels
#define GAPLESS_TABLE(x) GAPLESS_TABLE_OF(x)

extern const Kernels GAPLESS_TABLE(GAPLESS_KERNELS) = {
    GAPLESS_STRING(GAPLESS_KERNELS), nest, gather, scatter, gather_runs, scatter_runs};

}  // namespace gapless::pack::host

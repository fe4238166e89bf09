// Copies of blocks: a block's length picks a copy once, outside the loops. Lengths up to 256 bytes are moved without a
// branch: in whole words, and a last one that overlaps the word before where that costs few bytes.
//
// Part of kernels.cpp, which is compiled once per instruction set: everything here has internal linkage.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "pack/host/kernels/kernels.hpp"

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
  using Element = std::conditional_t<(width >= 16), float, char>;  // short encodings, where there are any
  typedef Element Lane __attribute__((vector_size(width), aligned(1), may_alias));
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

// Every copy says how many bytes it moves, and how many at least.
template <int bytes>
struct One {
  static constexpr int shortest = bytes;
  explicit One(Offset) {}
  Offset size() const { return bytes; }
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    move<bytes>(source, destination);
  }
};

// `words` whole words, then one that ends where the block ends.
template <int bytes, int words = 1>
struct Overlapped {
  static constexpr int shortest = bytes * words + 1;
  Offset tail;
  explicit Overlapped(Offset length) : tail(length - bytes) {}
  Offset size() const { return tail + bytes; }
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    for (int i = 0; i < words; ++i) move<bytes>(source + i * bytes, destination + i * bytes);
    move<bytes>(source + tail, destination + tail);
  }
};

/// Does the string instruction take sixteen times as long from there to there? AMD Zen 3 carries it out so where the
/// destination begins 1 to 31 bytes further into its page than the source: in memory of malloc beside a page, for one.
[[gnu::always_inline]] inline bool is_slow_by_string(const char* source, const char* destination) {
  constexpr std::uintptr_t page = 4096, slow = 31;
  return ((reinterpret_cast<std::uintptr_t>(destination) - reinterpret_cast<std::uintptr_t>(source) - 1) & (page - 1)) <
         slow;
}

/// Blocks of a line or more: whole lines of the destination, and at both ends a line that overlaps them. The longest
/// are left to the C library, which copies by the string instruction, but where that is slow.
struct Long {
  Offset length;
  explicit Long(Offset length) : length(length) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    constexpr Offset line = 64, by_string = 16 * 1024;
    if (length >= by_string && !is_slow_by_string(source, destination)) {
      std::memcpy(destination, source, static_cast<std::size_t>(length));
      return;
    }
    const Offset last = length - line;
    move<line>(source, destination);
    Offset done = line - (reinterpret_cast<std::intptr_t>(destination) & (line - 1));
#pragma GCC unroll 4
    for (; done < last; done += line) move<line>(source + done, destination + done);
    move<line>(source + last, destination + last);
  }
};

/// The copy for blocks of exactly `length` bytes; Long for everything from shortest_long on.
template <int length>
struct CopyOf {
  using Type = Overlapped<32, (length - 1) / 32>;
};
template <int length>
requires(length == 0 || length >= shortest_long) struct CopyOf<length> {
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
/// blocks is a third of the work. Its last word may overlap the one before by a few bytes only: every byte written
/// twice makes it likelier that a store crosses a cache line.
template <int length>
struct Exact {
  static constexpr int shortest = length;
  Exact() = default;
  explicit Exact(Offset) {}
  Offset size() const { return shortest; }
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    constexpr int ceiling = power_of_two_from(length);
    constexpr int bytes = ceiling > 64 ? 64 : ceiling == length ? length : ceiling / 2;
    constexpr int rest = length - bytes, last = power_of_two_from(rest), overlap = last - rest;
    move<bytes>(source, destination);
    if constexpr (rest == 0) return;
    if constexpr (last <= bytes && overlap <= (last > 16 ? last / 4 : 4)) {
      move<last>(source + length - last, destination + length - last);
    } else if constexpr (rest > 0) {
      Exact<rest>()(source + bytes, destination + bytes);
    }
  }
};

/// The copy for rows.
template <int length>
struct RowCopyOf {
  using Type = Exact<length>;
};
template <int length>
requires(length == 0 || length >= shortest_long) struct RowCopyOf<length> {
  using Type = Long;
};

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

#ifdef __SSE2__

[[gnu::always_inline]] inline void stream_line(const char* source, char* destination) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(destination), _mm512_loadu_si512(source));
#elif defined(__AVX2__)
  for (int i = 0; i < 2; ++i)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination) + i,
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source) + i));
#else
  for (int i = 0; i < 4; ++i)
    _mm_stream_si128(reinterpret_cast<__m128i*>(destination) + i,
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + i));
#endif
}

/// Whole lines of the destination by streaming stores, the bytes before and behind them by ordinary ones: a line that
/// has been stored so must not be touched again.
struct Streamed {
  Offset length;
  explicit Streamed(Offset length) : length(length) {}
  [[gnu::always_inline]] void operator()(const char* source, char* destination) const {
    constexpr Offset line = 64;
    const Offset head = -reinterpret_cast<std::intptr_t>(destination) & (line - 1);
    if (length < head + line) return copy_any(source, destination, length);
    if (head > 0) copy_any(source, destination, head);
    Offset done = head;
    for (; length - done >= line; done += line) stream_line(source + done, destination + done);
    if (done < length) copy_any(source + done, destination + done, length - done);
  }
};

#endif

void plain_bytes(const char* source, char* destination, Offset count) {
  if (count > 0) copy_any(source, destination, count);
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

}  // namespace
}  // namespace gapless::pack::host

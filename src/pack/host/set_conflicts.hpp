// Set conflicts: rows so far apart, by powers of two, that they fall into few sets of the first-level cache.
//
// Some processors take the line of every waiting store into the cache before the store's turn comes. Where 100 waiting
// stores are 100 rows of which a set holds 12, they evict each other's lines, over and over. Stores of small words keep
// fewer rows waiting: 8 B every 1 KiB are written four times as fast in words of 2 B (AMD Zen 5, docs/performance.md).
#pragma once

#include <atomic>

#include "pack/host/nest.hpp"

namespace gapless::pack::host {

/// Rows conflict on this processor if their stride is divisible by this power of two; chosen with the kernels.
[[gnu::visibility("hidden")]] extern std::atomic<Offset> conflicting_power;
inline constexpr Offset never_conflicting = Offset{1} << 62;
inline constexpr Offset conflicting_on_zen5 = 512;

inline constexpr Offset way_bytes = 4096;

/// The largest power of two that divides a stride, up to a way of the cache.
[[gnu::always_inline]] inline Offset power_of(Offset stride) noexcept {
  const Offset power = stride & -stride;
  return power < way_bytes ? power : way_bytes;
}

/// Do `count` rows this far apart evict each other? Rows a power of two apart are as many to a set as their bytes are
/// ways.
[[gnu::always_inline]] inline bool have_set_conflicts(Offset count, Offset stride) noexcept {
  constexpr Offset ways = 12;
  const Offset power = power_of(stride);
  return power >= conflicting_power.load(std::memory_order_relaxed) && count * power > ways * way_bytes;
}

/// Row i of [0, count), `length` bytes long, from source + i * source_stride to destination + i * destination_stride,
/// where the destination's rows have set conflicts.
///
/// Pre: length >= 1; the destination's stride is a multiple of conflicting_on_zen5.
void write_conflicting_rows(Offset length, Offset count, Offset source_stride, Offset destination_stride,
                            const char* source, char* destination) noexcept;

}  // namespace gapless::pack::host

// Set conflicts: rows so far apart, by powers of two, that they fall into few sets of the first-level cache.
//
// Some processors take the line of every waiting store, or load, into the cache before its turn comes. Where 100
// waiting stores are 100 rows of which a set holds 12, they evict each other's lines, over and over. Small words keep
// fewer rows waiting: 8 B every 1 KiB are written four times as fast in words of 2 B (AMD Zen 5, docs/performance.md).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pack/host/nest.hpp"

namespace gapless::pack::host {

inline constexpr Offset way_bytes = 4096;

/// The largest power of two that divides a stride, up to a way of the cache.
[[gnu::always_inline]] inline Offset power_of(Offset stride) noexcept {
  const Offset power = stride & -stride;
  return power < way_bytes ? power : way_bytes;
}

/// What a processor makes of rows that it reads, or writes, far apart.
struct ConflictRule {
  static constexpr Offset never = std::numeric_limits<Offset>::max();

  /// Rows conflict if this power of two divides their stride: those of up to 32 bytes, of up to 64, and longer ones.
  std::array<Offset, 3> least_power{never, never, never};
  Offset most_bytes = never;  ///< rows times power; more fall into too few sets of the second-level cache, too
  /// A row is better copied as so many words or more, by the power of its stride: 512, 1024, 2048, and 4096.
  std::array<Offset, 4> words{1, 1, 1, 1};
  Offset long_row = 129;  ///< rows from so many bytes on are words enough as words of the longest kind

  /// Do `count` rows this far apart evict each other? Rows a power of two apart are as many to a set as their bytes are
  /// ways.
  [[gnu::always_inline]] bool applies_to(Offset length, Offset count, Offset stride) const noexcept {
    constexpr Offset ways = 12;
    const Offset power = power_of(stride);
    const std::size_t kind = (length > 32 ? 1 : 0) + (length > 64 ? 1 : 0);
    return power >= least_power[kind] && count * power > ways * way_bytes && count * power <= most_bytes;
  }
};

/// How rows of hundreds of bytes are best copied.
enum class LongRows : std::uint8_t {
  one_by_one,
  fetched,           ///< each while the lines of the next one are fetched for writing
  fetched_or_split,  ///< but in small words where rows are whole pages apart
};

struct ConflictRules {
  ConflictRule stores, loads;
  LongRows long_rows = LongRows::fetched_or_split;
};

/// Those of this processor; chosen with the kernels.
[[gnu::visibility("hidden")]] extern std::atomic<const ConflictRules*> conflict_rules;

extern const ConflictRules no_conflicts, conflicts_of_zen3, conflicts_of_zen4, conflicts_of_zen5;

/// Row i of [0, count), `length` bytes long, from source + i * source_stride to destination + i * destination_stride,
/// where rows `stride` apart, one of the two, have set conflicts.
///
/// Pre: length >= 1; the rule applies.
void copy_conflicting_rows(const ConflictRule& rule, Offset stride, Offset length, Offset count, Offset source_stride,
                           Offset destination_stride, const char* source, char* destination) noexcept;

}  // namespace gapless::pack::host

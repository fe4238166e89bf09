// Lists in GPU memory: offsets, and runs.
#pragma once

#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {

/// A list of offsets in GPU memory, 4 or 8 bytes an entry.
struct Table {
  const void* entries;
  bool narrow;

  /// Precondition: narrow.
  template <class Index>
  GAPLESS_HOST_DEVICE Offset narrow_entry(Index i) const noexcept {
    return static_cast<const std::int32_t*>(entries)[i];
  }

  template <class Index>
  GAPLESS_HOST_DEVICE Offset operator[](Index i) const noexcept {
    return narrow ? narrow_entry(i) : static_cast<const std::int64_t*>(entries)[i];
  }
};

/// First i in [low, high) with ends[i] > k. Precondition: there is one.
template <class Ends, class Index, class Position>
GAPLESS_HOST_DEVICE Index first_end_after(const Ends& ends, Index low, Index high, Position k) noexcept {
  while (low + 1 < high) {
    const Index middle = low + (high - low) / 2;
    if (ends[middle - 1] > k) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

/// A run of a list holds the packed bytes from `start` to the start of the next one; packed byte k of it lies at
/// k + shift.
struct Run {
  Offset start;
  Offset shift;
};

/// A run in 8 bytes, both numbers in units of 1 << unit_shift bytes.
struct NarrowRun {
  std::uint32_t start;
  std::int32_t shift;
};

/// Runs in packed order, and one more that starts where the last one ends.
struct RunTable {
  const void* entries;
  bool narrow;
  int unit_shift;

  /// Precondition: narrow.
  template <class Index>
  GAPLESS_HOST_DEVICE NarrowRun narrow_entry(Index i) const noexcept {
    return static_cast<const NarrowRun*>(entries)[i];
  }

  template <class Index>
  GAPLESS_HOST_DEVICE Run operator[](Index i) const noexcept {
    if (!narrow) return static_cast<const Run*>(entries)[i];
    const NarrowRun run = narrow_entry(i);
    return {Offset{run.start} << unit_shift, Offset{run.shift} * (Offset{1} << unit_shift)};
  }
};

/// The run that packed byte k lies in. Precondition: 0 <= k, and some run holds it.
GAPLESS_HOST_DEVICE std::uint64_t run_of(const RunTable& runs, std::uint64_t count, Offset k) noexcept {
  std::uint64_t low = 0, high = count;
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (runs[middle].start > k) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

}  // namespace gapless::pack::gpu

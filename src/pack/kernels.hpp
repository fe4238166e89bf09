// The copy loops, compiled once per instruction set. kernels.cpp sees plain numbers and pointers only: an inline
// function of a header compiled there with wider instructions must never be the copy the linker keeps for everyone.
#pragma once

#include <atomic>

#include "pack/nest.hpp"

namespace gapless::pack::host {

/// Blocks shorter than this have copies of their own; the tables' last entry serves all others.
inline constexpr int longest_fixed = 257;

inline int table_index(Offset length) noexcept {
  return length < longest_fixed ? static_cast<int>(length) : longest_fixed;
}

/// All copies happen in the order of the loops and lists: where destinations overlap, the last one stays.
struct Kernels {
  const char* name;

  /// `count` blocks of `length` bytes, each side with its own stride.
  using Rows = void(Offset length, Offset count, Offset source_stride, Offset destination_stride, const char* source,
                    char* destination);
  Rows* rows[longest_fixed + 1];

  using NestOf = void(const Nest& nest, const char* source, char* destination);
  NestOf* nest[longest_fixed + 1];

  /// gather: for i in [0, count), `child` from source + offsets[i] to destination + i * stride.
  /// scatter: for i in [0, count), `child` from source + i * stride to destination + offsets[i].
  using Lists = void(const Nest& child, List offsets, Offset count, Offset stride, const char* source,
                     char* destination);
  Lists* gather[longest_fixed + 1];
  Lists* scatter[longest_fixed + 1];

  /// For i in [first, last): run i, ends[i] - ends[i - 1] bytes long, from memory + offsets[i] to the next packed
  /// bytes.
  void (*gather_runs)(List offsets, List ends, Offset first, Offset last, const char* memory, char* packed);
  /// The same the other way.
  void (*scatter_runs)(List offsets, List ends, Offset first, Offset last, char* memory, const char* packed);
};

[[gnu::visibility("hidden")]] extern const Kernels scalar_kernels;
[[gnu::visibility("hidden")]] extern const Kernels avx2_kernels;
[[gnu::visibility("hidden")]] extern const Kernels avx512_kernels;

/// Null until the first call has chosen.
[[gnu::visibility("hidden")]] extern std::atomic<const Kernels*> chosen_kernels;
[[gnu::visibility("hidden")]] const Kernels& choose_kernels() noexcept;

/// The table in use.
[[gnu::always_inline]] inline const Kernels& kernels() noexcept {
  const Kernels* table = chosen_kernels.load(std::memory_order_relaxed);
  return table != nullptr ? *table : choose_kernels();
}

}  // namespace gapless::pack::host

// The copy loops, compiled once per instruction set. kernels.cpp sees plain numbers and pointers only: an inline
// function of a header compiled there with wider instructions must never be the copy the linker keeps for everyone.
#pragma once

#include "pack/nest.hpp"

namespace gapless::pack::host {

/// All copies happen in the order of the loops and lists: where destinations overlap, the last one stays.
struct Kernels {
  const char* name;

  void (*nest)(const Nest& nest, const char* source, char* destination);

  /// For i in [0, count): `child` from source + offsets[i] to destination + i * stride.
  void (*gather)(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination);
  /// For i in [0, count): `child` from source + i * stride to destination + offsets[i].
  void (*scatter)(const Nest& child, List offsets, Offset count, Offset stride, const char* source, char* destination);

  /// For i in [first, last): run i, ends[i] - ends[i - 1] bytes long, from memory + offsets[i] to the next packed
  /// bytes.
  void (*gather_runs)(List offsets, List ends, Offset first, Offset last, const char* memory, char* packed);
  /// The same the other way.
  void (*scatter_runs)(List offsets, List ends, Offset first, Offset last, char* memory, const char* packed);
};

extern const Kernels scalar_kernels;
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;

/// The table in use, chosen at the first call.
const Kernels& kernels() noexcept;

}  // namespace gapless::pack::host

// What a layout is to kernels, worked out once for each (layout, repetition): a few numbers, no pointers.
#pragma once

#include "pack/gpu/describe/serialise.hpp"
#include "pack/gpu/plan/choose.hpp"
#include "pack/gpu/regimes/nest.hpp"
#include "pack/job.hpp"

namespace gapless::pack::gpu {

inline Offset magnitude(Offset value) noexcept { return value < 0 ? -value : value; }

/// Repetitions of a layout as kernels see it.
struct Shape {
  ShapeKind kind = ShapeKind::contiguous;
  Offset base = 0;
  Offset length = 0;  ///< contiguous, nest: bytes in a row
  int mode_count = 0;
  int table_mode = -1;         ///< nest: which mode takes its offsets from the descriptor's table
  Mode modes[max_levels];      ///< around a row, or around a list of runs
  Offset list_size = 0;        ///< segments: packed bytes of one list
  Offset mean_run = 0;         ///< bytes in a row or, on average, in a run
  Offset mean_distance = 0;    ///< bytes of memory from one row or run to the next, roughly
  Offset repetition_size = 0;  ///< packed bytes of one repetition of the layout
  Offset extent = 0;
  std::uint64_t alignment_bits = 0;  ///< lengths and distances, or-ed
  std::uint64_t place_bits = 0;      ///< distances alone
  bool injective = true;
};

/// False where kernel parameters alone describe the layout.
bool needs_descriptor(const Layout& layout);

/// Postcondition: the shape describes the same function as `outer` repetitions of `layout`, which must be in its kernel
/// form. Shape::injective is not set. as_tree: whatever it is, it is walked as a tree.
Shape shape_of(const Layout& layout, Mode outer, AlignmentBits descriptor_bits, bool as_tree = false);

}  // namespace gapless::pack::gpu

// A plan is a layout and its outer repetition, flattened on the stack to the levels that a byte range is cut along.
#pragma once

#include "layout/layout.hpp"
#include "pack/host/nest.hpp"

namespace gapless::pack::host {

using layout::Layout;
using layout::Mode;

/// One repetition around a layout's core.
struct Level {
  Offset count;
  Offset stride;
  Offset unit;  ///< packed bytes of one repetition
};

struct Plan {
  const Layout* layout;
  Offset length;  ///< bytes of a block core, the outer repetition merged into it where it fits
  int depth;
  Level levels[max_loops];  ///< innermost first; the outer repetition is the last, unless merged

  /// Packed bytes inside the first `top` levels.
  Offset size(int top) const noexcept {
    if (top == 0) return layout->core == layout::Core::block ? length : layout->core_size;
    return levels[top - 1].count * levels[top - 1].unit;
  }
};

/// False if the layout has more levels than a plan can hold.
/// Precondition: neither the layout nor the repetition is empty.
bool make_plan(const Layout& layout, Mode outer, Plan& plan) noexcept;

/// Which side of a nest has the packed bytes.
enum class Dense : std::uint8_t { destination, source };

/// A loop that goes `stride` bytes in memory and `unit` bytes in the packed stream.
constexpr Loop loop_of(Offset count, Offset stride, Offset unit, Dense dense) noexcept {
  return dense == Dense::destination ? Loop{count, stride, unit} : Loop{count, unit, stride};
}
/// The nest that moves the first `top` levels of a plan whose core is a block, with `count` repetitions of the
/// outermost.
Nest make_nest(const Plan& plan, int top, Offset count, Dense dense) noexcept;

/// The nest that moves one whole layout whose core is a block: nothing is cut, so no plan is needed. Precondition: the
/// layout has fewer than max_loops modes.
Nest make_nest(const Layout& layout, Dense dense) noexcept;

/// Do no two iterations of the nest touch the same byte of the side that is not dense? Exact for loops that nest.
bool is_injective(const Nest& nest, Dense dense) noexcept;

/// A nest that is a transpose of elements of 1, 2, 4, 8 or 16 bytes, at `rows` neighbouring places on one side and
/// `columns` on the other, with further loops around it. See Transposer in pack/host/kernels/kernels.hpp.
struct Transpose {
  int log2_length;
  Offset rows, columns;
  Offset source_stride, destination_stride;
  int depth;
  Loop loops[max_loops];  ///< innermost first
};
/// False if it is none, or if visiting it in another order could change which of two overlapping writes stays.
bool find_transpose(const Nest& nest, Dense dense, Transpose& transpose) noexcept;

/// Splits a nest whose innermost loop strides further than another into one that visits neighbouring memory together,
/// and the rest that the split leaves over (depth -1 if none, to be run from the given distances). The packed bytes
/// stay where they are; only the order of visits changes, so the nest must be injective where the destination is not
/// dense.
struct Strips {
  Nest main;
  Nest rest;
  Offset rest_source, rest_destination;
};
bool split_strips(const Nest& nest, Dense dense, Strips& result) noexcept;

}  // namespace gapless::pack::host

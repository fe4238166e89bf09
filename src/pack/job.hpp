// A job: one movement between a layout in memory and a contiguous packed buffer. Engines run batches of jobs.
#pragma once

#include "layout/layout.hpp"

namespace gapless::pack {

using layout::Layout;
using layout::Mode;
using layout::Offset;

enum class Direction : std::uint8_t { pack, unpack };

/// Moves packed bytes [begin, end) of `outer.count` repetitions of `layout`, `outer.stride` (the extent) bytes apart.
/// The repetition travels beside the layout, so a call with a new count allocates nothing.
/// Preconditions: 0 <= begin <= end <= layout->size * outer.count, outer.count >= 0.
struct Job {
  const Layout* layout;
  Mode outer;
  Offset begin;
  Offset end;
  Direction direction;
  void* memory;  ///< origin that the layout's offsets are relative to (MPI's buffer argument)
  void* packed;  ///< where packed byte `begin` lies; any alignment
};

}  // namespace gapless::pack

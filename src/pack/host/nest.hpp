// A nest: loops around a copy of fixed length, with one stride for each side. It is what every regular piece of work is
// compiled to, on the stack: packing, unpacking and strided-to-strided copies differ only in which side is dense.
#pragma once

#include <cstdint>

namespace gapless::pack::host {

// The same type as layout::Offset; the kernels include no layout header (see pack/host/kernels/kernels.hpp).
using Offset = std::int64_t;

/// One loop of a nest.
struct Loop {
  Offset count;
  Offset source_stride;
  Offset destination_stride;
};

/// Loops a nest may have; deeper layouts are walked with layout::Cursor.
inline constexpr int max_loops = 18;

struct Nest {
  Offset length;  ///< contiguous bytes of one innermost copy
  int depth;
  Loop loops[max_loops];  ///< innermost first
};

/// A list of offsets in either width of layout::OffsetTable; exactly one pointer is set.
struct List {
  const std::int32_t* narrow;
  const std::int64_t* wide;
};

/// A list whose entries lie in runs: run i holds entries [firsts[i], firsts[i + 1]), from offsets[i] on, `stride`
/// apart.
struct ListInRuns {
  List firsts;
  List offsets;
  Offset stride;
};

}  // namespace gapless::pack::host

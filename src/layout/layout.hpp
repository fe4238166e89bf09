// A layout says which bytes of memory a datatype names, and in which order.
//
// It is a function f from a packed byte k in [0, size) to a memory offset f(k). The packed order is the order of the
// MPI type map (MPI 5.0, 5.1), and order is meaning: two layouts that visit the same bytes in another order are
// different.
//
// A layout is a nest of modes around one core. A mode (count, stride) repeats everything inside it `count` times,
// `stride` bytes apart; modes are kept innermost first. The core is what the innermost mode repeats:
//
//   block     `length` contiguous bytes
//   index     one child layout at each of a list of offsets            (indexed_block, recovered lists)
//   segments  contiguous runs of differing lengths at listed offsets   (indexed, struct)
//   sum       different layouts one after the other in packed order    (struct of strided fields)
//
// Layouts are immutable and shared; every function here is pure and may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layout/offset_table.hpp"

namespace gapless::layout {

/// `count` repetitions, `stride` bytes apart (any sign, zero included).
struct Mode {
  Offset count;
  Offset stride;
  friend bool operator==(const Mode&, const Mode&) = default;
};

struct Layout;
using LayoutPointer = std::shared_ptr<const Layout>;

enum class Core : std::uint8_t { block, index, segments, sum };

/// One term of a sum: `layout` fills packed bytes [start, start + layout->size).
struct Part {
  Offset start;
  LayoutPointer layout;
};

/// Invariants, checked by the unit tests for every layout an operation returns:
///   size == core_size * product of the mode counts; every count >= 2; no part, block or segment is empty;
///   every list and sum has two entries or more; base == f(0), so the first entry of a list, a child's base and the
///   base of a sum's first part are 0; the empty layout is a block of length 0 at base 0 without modes.
///
/// A shared layout can be asked for a weak reference to itself, so that a cache keyed by its address can tell whether
/// it is still the same layout.
struct Layout : std::enable_shared_from_this<Layout> {
  Layout() = default;

  Offset size = 0;          ///< packed bytes N
  Offset base = 0;          ///< memory offset of the first repetition of the core's own origin
  std::vector<Mode> modes;  ///< innermost first, around the core
  Core core = Core::block;
  Offset core_size = 0;  ///< packed bytes of one repetition of the core

  Offset length = 0;    ///< block: contiguous bytes (== core_size)
  OffsetTable offsets;  ///< index: where each child begins; segments: where each run begins (relative to base)
  LayoutPointer child;  ///< index
  OffsetTable
      ends;  ///< segments: packed end of each run, so run i holds [ends[i-1], ends[i]) and ends.back() == core_size
  std::vector<Part> parts;  ///< sum, in packed order

  bool is_empty() const noexcept { return size == 0; }
  bool is_strided() const noexcept { return core == Core::block; }
  bool is_contiguous() const noexcept { return core == Core::block && modes.empty(); }
};

/// Structural equality. On canonical layouts (layout/algebra/canonical.hpp) it decides whether two strided layouts are
/// the same function, and whether two irregular ones within the recognition budget are.
bool operator==(const Layout& a, const Layout& b) noexcept;

/// A hash that agrees with operator==.
std::size_t hash(const Layout& layout) noexcept;

/// Memory offset of packed byte k. Precondition: 0 <= k < layout.size. O(depth + log entries).
Offset offset_of(const Layout& layout, Offset k) noexcept;

/// One contiguous run of a layout.
struct Segment {
  Offset offset;  ///< memory offset of its first byte
  Offset length;  ///< bytes, > 0
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Bytes of heap the layout holds, shared children included.
std::size_t memory_bytes(const Layout& layout) noexcept;

}  // namespace gapless::layout

// Walking the contiguous runs of any byte range of a layout, in packed order.
//
// This is the plain, always-right way through a layout: the host engine's general path, refine's fallback and the tests
// of every faster path use it.
#pragma once

#include <memory>

#include "layout/layout.hpp"

namespace gapless::layout {

/// Visits the packed range [begin, end) of `count` repetitions of a layout, `extent` bytes apart, as maximal runs
/// within one repetition of the core. Set-up may allocate (once per construction); next() does not.
class Cursor {
 public:
  Cursor(const Layout& layout, Mode outer, Offset begin, Offset end);
  ~Cursor();
  Cursor(Cursor&&) noexcept;
  Cursor& operator=(Cursor&&) noexcept;

  /// Fills `run` with the next run and returns true, or returns false at the end of the range.
  bool next(Segment& run) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How many runs a cursor visits in the whole layout, without enumerating them.
Offset segment_count(const Layout& layout) noexcept;

}  // namespace gapless::layout

// Numbers about a layout that choices are made from: computed once, when a datatype is first used.
#pragma once

#include "layout/layout.hpp"

namespace gapless::layout {

struct Facts {
  Offset size = 0;
  Offset true_lower_bound = 0;
  Offset true_upper_bound = 0;
  Offset block_count = 0;       ///< contiguous runs, not fused across repetitions of modes
  Offset shortest_block = 0;    ///< bytes
  Offset longest_block = 0;     ///< bytes
  /// Largest power of two (at most 16) dividing every block length and every offset difference: the widest word a copy
  /// loop may use once the base pointer and the packed position are as aligned.
  Offset alignment = 1;
  /// True only if no byte of memory is named twice, by one repetition or by neighbours `extent` apart. Exact for strided
  /// layouts that nest and for lists; false where it cannot be shown. Unpack runs in parallel only when true.
  bool injective = false;
};

Facts facts_of(const Layout& layout);

/// Is `count` repetitions of `layout`, `extent` bytes apart, free of overlap? Never true when it is not.
bool is_injective(const Layout& layout, Mode outer);

}  // namespace gapless::layout

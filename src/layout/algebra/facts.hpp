// Numbers about a layout that choices are made from: computed once, when a datatype is first used.
#pragma once

#include "layout/layout.hpp"

namespace gapless::layout {

struct Facts {
  Offset size = 0;
  Offset true_lower_bound = 0;
  Offset true_upper_bound = 0;
  Offset block_count = 0;  ///< contiguous runs, not fused across repetitions of modes
  /// How often a loop over equal blocks at one stride begins: once an entry of a list, once a row of a nest. In a
  /// large transpose every block counts as a row, for its neighbours in memory come in other rows.
  Offset row_count = 0;
  Offset shortest_block = 0;  ///< bytes
  Offset longest_block = 0;   ///< bytes
  /// Largest power of two (at most 16) dividing every block length and every offset difference: the widest word a copy
  /// loop may use once the base pointer and the packed position are as aligned. 1 for the empty
  /// layout.
  Offset alignment = 1;
};

Facts facts_of(const Layout& layout);

/// Are `outer.count` repetitions of `layout`, `outer.stride` bytes apart, free of overlap? Never true when they are
/// not; exact where modes nest in each other, and up to recognition_budget runs in all. Of a list this costs far more
/// than its facts, so who unpacks in parallel asks; nobody else does.
bool is_injective(const Layout& layout, Mode outer);

}  // namespace gapless::layout

// How many cache lines a layout touches: what its movement costs at least.
#pragma once

#include "layout/layout.hpp"

namespace gapless::api {

/// Distinct 64-byte lines named by `outer.count` repetitions, for an origin on a line boundary. Exact up to
/// `run_budget` contiguous runs; beyond that the first ones stand for all, within the span [first, end) of the bytes
/// named.
layout::Offset lines_touched(const layout::Layout& layout, layout::Mode outer, layout::Offset first, layout::Offset end,
                             std::size_t run_budget = 65536);

}  // namespace gapless::api

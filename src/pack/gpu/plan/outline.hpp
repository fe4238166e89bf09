// Which kernel a datatype gets, and why, without a GPU: what `gapless explain` shows.
#pragma once

#include "pack/gpu/regimes/regime.hpp"
#include "pack/job.hpp"

namespace gapless::pack::gpu {

struct Outline {
  Regime regime;
  int word_bytes;  ///< of the widest word that the layout lets a kernel move
};

/// Of all repetitions, in memory and packed bytes that begin as well aligned as can be. Throws std::bad_alloc.
/// Precondition: the repetitions are not empty.
Outline outline(const Layout& layout, Mode outer, Direction direction);

/// What makes a regime the one that is chosen: "rows of ...".
const char* reason_for(Regime regime) noexcept;

}  // namespace gapless::pack::gpu

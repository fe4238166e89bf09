// A pair job: one movement from a layout's bytes to another layout's, with no packed buffer between them.
#pragma once

#include "pack/job.hpp"

namespace gapless::pack {

/// Moves byte k of the source's packed stream to byte k of the destination's, for all k. Repetitions travel beside the
/// layouts, as in Job. Precondition: source->size * source_outer.count == destination->size * destination_outer.count.
struct PairJob {
  const Layout* source;
  Mode source_outer;
  const void* source_memory;
  const Layout* destination;
  Mode destination_outer;
  void* destination_memory;
};

}  // namespace gapless::pack

// Where calls went before endpoints were made: the MPI layer's entries, or the library.
#pragma once

#include "mpi/table/native.hpp"

namespace gapless::mpi::endpoints {

/// What endpoints wrap, and what they themselves call. Set before the first endpoint is made.
extern Native inner;

/// Fills `inner`.
void load_inner() noexcept;

}  // namespace gapless::mpi::endpoints

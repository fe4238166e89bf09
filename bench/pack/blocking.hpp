// What MPI_Pack and MPI_Unpack do once they know the datatype and that memory is a GPU's: complete when they return.
#pragma once

#include "contestants/contestant.hpp"
#include "workload.hpp"

namespace gapless::bench {

/// Ignores the stream.
Contestant blocking_calls(const Workload& work);

}  // namespace gapless::bench

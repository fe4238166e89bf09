// The copy calls that CUDA itself offers for noncontiguous bytes.
#pragma once

#include <vector>

#include "contestants/contestant.hpp"
#include "workload.hpp"

namespace gapless::bench {

/// Every call that can do the work: 2-D, iterated 3-D, one copy a block, one batch of copies. Those that take a call or
/// an entry a block are left out beyond some hundred blocks, where they take milliseconds.
std::vector<Contestant> vendor_calls(const Workload& work);

}  // namespace gapless::bench

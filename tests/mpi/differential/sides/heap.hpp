// The process's heap, with guard bytes behind every block: a write past any block's end is seen, the blocks of the MPI
// library and of gapless included.
#pragma once

#include <cstddef>

namespace gapless::test::differential {

/// The size of a live block whose guard was written to, or -1 if there is none.
std::ptrdiff_t damaged_block();

}  // namespace gapless::test::differential

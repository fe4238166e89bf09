// The entry points of functions without code of their own: by messages where all ranks have agreed on that, staged,
// left to the library, or refused where they would have it touch GPU memory that it cannot read.
#pragma once

#include <vector>

#include "mpi/table/variant.hpp"

namespace gapless::mpi {

/// Adds the guards of all guarded functions that the library has. Precondition: load_native() succeeded.
void add_guarded_entries(std::vector<gapless_variant_entry>& entries);

}  // namespace gapless::mpi

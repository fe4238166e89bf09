// Functions that are not served yet, made safe.
#pragma once

#include <vector>

#include "mpi/table/variant.hpp"

namespace gapless::mpi {

/// Adds the guards of all guarded functions that the library has. Precondition: load_native() succeeded.
void add_guarded_entries(std::vector<gapless_variant_entry>& entries);

}  // namespace gapless::mpi

// The entry points of mpi/table/extensions.def.
#pragma once

#include <vector>

#include "mpi/table/variant.hpp"

namespace gapless::mpi {

/// Adds entry points for the extensions that the library has. May throw std::bad_alloc.
void add_extensions(gapless_find_symbol find, void* context, std::vector<gapless_variant_entry>& entries);

}  // namespace gapless::mpi

// The basic datatypes of MPI by their lower-case names, with the sizes of this machine's C and the usual Fortran kinds.
#pragma once

#include <optional>
#include <string_view>

#include "layout/datatype/datatype.hpp"

namespace gapless::layout {

std::optional<Datatype> basic_datatype(std::string_view name);

/// The type of MPI_Type_get_value_index: a C struct of a value and an index.
Datatype value_and_index(const Datatype& value, const Datatype& index);

}  // namespace gapless::layout

// From an MPI datatype handle to what it means.
#pragma once

#include <optional>

#include "layout/datatype.hpp"
#include "mpi/abi.hpp"

namespace gapless::mpi {

/// Does the type exist without having been constructed, and so for as long as the library?
bool is_predefined(MPI_Datatype handle) noexcept;

struct Decoded {
  layout::Datatype datatype;
  /// Bytes of the largest basic element, if each lies at a multiple of its size in the packed stream; else 0.
  layout::Offset aligned_element = 0;
};

/// What the datatype is, or nothing where it is better left to the library: an unknown constructor, or a size or bound
/// that differs from what the library says. Precondition: the handle is valid.
std::optional<Decoded> decode(MPI_Datatype handle) noexcept;

}  // namespace gapless::mpi

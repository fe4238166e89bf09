// From an MPI datatype handle to what it means.
#pragma once

#include <optional>

#include "layout/datatype/datatype.hpp"
#include "layout/datatype/elements.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// How many blocks and fields the description of the datatype lists, those of its children included: what decoding
/// takes grows with that. Takes about a microsecond. Precondition: the handle is valid.
double list_entries(MPI_Datatype handle) noexcept;

struct Decoded {
  layout::Datatype datatype;
  /// Bytes of the largest basic element, if each lies at a multiple of its size in the packed stream; else 0.
  layout::Offset aligned_element = 0;
  /// Bytes of the largest basic element; pair types count as their parts.
  layout::Offset widest_element = 0;
  /// Null for what has very many fields.
  layout::ElementsPointer elements{};
  /// Are there long doubles? A library that moves them one by one need not move their padding.
  bool has_long_doubles = false;
};

/// What the datatype is, or nothing where it is better left to the library: an unknown constructor, or a size or bound
/// that differs from what the library says. Precondition: the handle is valid. Throws std::bad_alloc, which says
/// nothing of the datatype.
std::optional<Decoded> decode(MPI_Datatype handle);

}  // namespace gapless::mpi

// From an MPI datatype handle to what it means.
#pragma once

#include <optional>

#include "layout/datatype/datatype.hpp"
#include "layout/datatype/elements.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// What decoding takes grows with it.
struct DescriptionLength {
  double entries = 0;  ///< blocks and fields that it lists, those of children included
  double types = 0;    ///< that it is made of, each handle counted; 0 for a few
};

/// An estimate, made from the few types looked at first: of a tree of types the whole may take seconds, for Open MPI
/// gives a handle of its own to each child. Takes microseconds. Precondition: the handle is valid.
DescriptionLength description_length(MPI_Datatype handle) noexcept;

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

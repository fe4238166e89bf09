// Which reductions gapless makes by itself: those of MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX, of the usual numbers.
#pragma once

#include <cstddef>
#include <optional>

#include "mpi/table/abi.hpp"
#include "reduction/reduction.hpp"

namespace gapless::mpi {

/// A reduction of elements that are so many numbers each. Complex ones are two, and can be summed.
struct BuiltInReduction {
  reduction::Reduction reduction;
  unsigned numbers_per_element = 1;

  std::size_t bytes_of_element() const noexcept { return reduction::bytes_of(reduction.number) * numbers_per_element; }
};

/// Nothing where the library has to reduce. Looks through a list. `bytes`: an element's size, as the library says: a
/// Fortran compiler's options may have changed that of MPI_REAL.
std::optional<BuiltInReduction> built_in_reduction(MPI_Op op, MPI_Datatype datatype, MPI_Count bytes) noexcept;

}  // namespace gapless::mpi

// MPI_UNWEIGHTED as the program knows it: a constant of the header, or in MPICH a variable of the library.
#pragma once

namespace gapless::mpi {

/// Set when the variant is opened.
extern const int* unweighted;

}  // namespace gapless::mpi

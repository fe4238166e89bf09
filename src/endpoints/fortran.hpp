// The calls of include/gapless/endpoints.h from Fortran, whose handles are integers, or derived types of one integer.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints::fortran {

// `error` may be null: it is optional in mpi_f08.
void create(const MPI_Fint* parent, const MPI_Fint* my_count, const MPI_Fint* info, MPI_Fint* handles,
            MPI_Fint* error) noexcept;
void query(const MPI_Fint* parent, MPI_Fint* count, MPI_Fint* error) noexcept;
void init(const MPI_Fint* count, const MPI_Fint* requested, MPI_Fint* provided, MPI_Fint* error) noexcept;
void attach(const MPI_Fint* id, MPI_Fint* error) noexcept;

}  // namespace gapless::mpi::endpoints::fortran

// The calls of include/gapless/endpoints.h from Fortran, whose handles are integers, or derived types of one integer.
// Fortran's INTEGER is C's int, as in every library that gapless stands before.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints::fortran {

// `error` may be null: it is optional in mpi_f08.
void create(const int* parent, const int* my_count, const int* info, int* handles, int* error) noexcept;
void query(const int* parent, int* count, int* error) noexcept;
void init(const int* count, const int* requested, int* provided, int* error) noexcept;
void attach(const int* id, int* error) noexcept;

}  // namespace gapless::mpi::endpoints::fortran

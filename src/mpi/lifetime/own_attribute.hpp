// Attributes by which gapless hears that an object of the program ends.
#pragma once

#include "mpi/table/native.hpp"

namespace gapless::mpi {

/// The copy callback: a duplicate is another object, for which gapless sets the attribute when it first meets that.
/// Open MPI's MPI_COMM_NULL_COPY_FN would be an undefined symbol of the variant.
template <class Handle>
int copy_nothing(Handle, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

/// Makes a keyval for attributes of communicators that call `at_end` when they are deleted. False where there is none.
inline bool make_keyval(MPI_Comm_delete_attr_function* at_end, int& keyval) noexcept {
  return native.Comm_create_keyval(copy_nothing<MPI_Comm>, at_end, &keyval, nullptr) == MPI_SUCCESS;
}

}  // namespace gapless::mpi

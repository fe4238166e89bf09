// A request that the library makes, and may fail to make.
#pragma once

#include <utility>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::requests {

/// Makes the call `call_library()`, which sets *request and returns `code`. False if the library has made no request. A
/// library that fails may return MPI_SUCCESS once an error handler of the program has returned. *request then keeps its
/// value, as after any failure.
template <class CallLibrary>
bool call_makes_request(MPI_Request* request, int& code, CallLibrary call_library) noexcept {
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  code = call_library();
  if (code == MPI_SUCCESS && *request != MPI_REQUEST_NULL) return true;
  *request = before;
  return false;
}

}  // namespace gapless::mpi::requests

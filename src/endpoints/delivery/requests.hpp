// The requests of endpoints are generalised requests of the library (MPI 5.0, 13.2), so that its handles, tools and
// functions know them.
#pragma once

#include <memory>
#include <vector>

#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints::requests {

/// Makes the request of an operation, which belongs to it from then on, and is deleted with it. An error code, or
/// success.
int make(Operation* operation, MPI_Request* request) noexcept;

/// The operation of a request, as long as the program has not completed or freed it; null for requests of others.
Operation* find(MPI_Request request) noexcept;
bool are_none() noexcept;

/// An operation that failed, whose request this thread has just completed or looked at.
struct Failure {
  MPI_Request request;
  int code;
  std::shared_ptr<Endpoint> endpoint;
};
/// The failures since the last call, by this thread.
std::vector<Failure> take_failures() noexcept;

}  // namespace gapless::mpi::endpoints::requests

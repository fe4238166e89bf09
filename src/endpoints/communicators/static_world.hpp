// The static interface (Dinan et al., 2014, sections 3.1 and 3.3.1): endpoints that are there from the start, and
// threads that bind themselves to one. In a bound thread MPI_COMM_WORLD and MPI_COMM_SELF mean the endpoint's own;
// entries that look this up stand in the slots only after MPIX_Init_endpoints.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// What a thread's world and self are.
struct Worlds {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm self = MPI_COMM_NULL;
};

/// The calling thread's; null in a thread that is not attached.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const Worlds* attached_to;

/// The communicator that the calling thread means.
inline MPI_Comm meaning_of(MPI_Comm handle) noexcept {
  const Worlds* const mine = attached_to;
  if (mine == nullptr) return handle;
  if (handle == MPI_COMM_WORLD) return mine->world;
  return handle == MPI_COMM_SELF ? mine->self : handle;
}

/// MPIX_Init_endpoints.
int init_endpoints(int* count_of_arguments, char*** arguments, int count, int requested, int* provided) noexcept;
/// MPIX_Endpoint_attach.
int attach(int id) noexcept;

/// How many endpoints MPI_Finalize frees by itself.
int static_endpoint_count() noexcept;
/// Frees them. An error code.
int free_static_world() noexcept;

}  // namespace gapless::mpi::endpoints

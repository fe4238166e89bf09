// MPIX_Comm_create_endpoints: ranks for threads, from a communicator of processes or of endpoints.
#pragma once

#include <vector>

#include "endpoints/endpoint.hpp"
#include "mpi/table/variant.hpp"

namespace gapless::mpi::endpoints {

/// MPIX_Comm_create_endpoints.
int create(MPI_Comm parent, int my_count, MPI_Info info, MPI_Comm* handles) noexcept;

/// Raises the error of a call that takes communicators of processes, if `parent` is an endpoint's handle, or was one.
int refuse_endpoint(MPI_Comm parent, const char* function) noexcept;

/// MPI_Comm_free on an endpoint's handle; sets it to MPI_COMM_NULL. An error code.
int free_handle(MPI_Comm* handle) noexcept;

/// How the shim is told where calls go from here on.
void set_redirect(gapless_redirect redirect) noexcept;
/// Where every function leads once there are endpoints. Precondition: load_inner().
const std::vector<gapless_variant_entry>& wrapped_entries();
/// Where every function leads once threads may attach to endpoints.
const std::vector<gapless_variant_entry>& entries_of_threads();
/// From here on calls go to entries_of_threads().
void translate_worlds();

}  // namespace gapless::mpi::endpoints

// How endpoints communicators are made, from a communicator of processes or from each other.
#pragma once

#include <memory>
#include <vector>

#include "endpoints/endpoint.hpp"
#include "mpi/table/variant.hpp"

namespace gapless::mpi::endpoints {

/// MPIX_Comm_create_endpoints.
int create(MPI_Comm parent, int my_count, MPI_Info info, MPI_Comm* handles) noexcept;

/// Splits an endpoint's communicator; every endpoint gets a handle that `make_handle` makes, or MPI_COMM_NULL for the
/// colour MPI_UNDEFINED. Collective over the endpoints. `info`: a duplicate's, if not null. An error code, not raised.
int split(Endpoint& endpoint, int colour, int key, bool duplicates, MPI_Comm* made, const MPI_Info* info = nullptr);

/// A number that endpoints have in common where the library says that their processes share memory. Collective over the
/// endpoints. An error code, not raised.
int find_node(Endpoint& endpoint, int& node);

/// Raises the error of a call that takes communicators of processes, if `parent` is an endpoint's handle, or was one.
int refuse_endpoint(MPI_Comm parent, const char* function) noexcept;

/// MPI_Comm_free on an endpoint's handle; sets it to MPI_COMM_NULL. An error code.
int free_handle(MPI_Comm* handle) noexcept;

/// Where every function leads once there are endpoints. Precondition: load_inner().
const std::vector<gapless_variant_entry>& wrapped_entries();
/// The same, where threads attach to endpoints.
const std::vector<gapless_variant_entry>& entries_of_threads();
/// From here on calls go to entries_of_threads().
void translate_worlds();

}  // namespace gapless::mpi::endpoints

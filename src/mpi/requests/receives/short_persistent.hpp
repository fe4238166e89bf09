// Persistent receives that are too short for a header. Their requests are the library's alone: gapless asks here only
// when such a request is freed, or is started while a message is stashed (mpi/headers/matched.hpp), which may be the
// receive's. The receive then becomes a pending message (mpi/requests/pending.hpp), and stays one. In programs with
// several threads every persistent receive is a pending message from the start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/table/native.hpp"

namespace gapless::mpi::requests::short_persistent {

struct Receive {
  void* memory;
  int count;
  MPI_Datatype datatype;  ///< predefined, so the program cannot free the datatype
  int source, tag;
  MPI_Comm communicator;
};

namespace internal {
extern std::size_t number;
}  // namespace internal

inline bool are_any() noexcept { return internal::number != 0; }

/// Enters the receive of a request that the library has made. MPI_SUCCESS, or MPI_ERR_NO_MEM.
int add(MPI_Request handle, const Receive& receive) noexcept;
/// To be called before the library frees the request, which may be any request.
void forget(MPI_Request handle) noexcept;
/// The program has freed the communicator: no message of it will be stashed for these receives.
void forget_communicator(MPI_Comm communicator) noexcept;
/// The library has replaced a request, which may be any request, by another.
void rename(MPI_Request before, MPI_Request after) noexcept;
/// Makes a pending message of the receive with that handle, if there is one here. MPI_SUCCESS, or an error that has
/// been raised.
int promote(MPI_Request handle) noexcept;

}  // namespace gapless::mpi::requests::short_persistent

/// How many receives are here. For tests.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_receives_short_persistent();

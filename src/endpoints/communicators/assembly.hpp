// How an endpoints communicator is put together once it is known which ranks it has and where they live.
#pragma once

#include <memory>
#include <optional>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

/// Unique in the job, as far as random numbers are.
std::uint64_t identity_of_process();
/// The first of `count` numbers that no other endpoint of this process has.
std::uint64_t next_number(std::uint64_t count);

/// Where the process of that identity is in MPI_COMM_WORLD, from when any communicator was made there that this process
/// has part in; MPI_UNDEFINED: nowhere, or not known.
int world_rank_of(std::uint64_t process) noexcept;
void note_world_rank(std::uint64_t process, int rank);

/// MPI_TAG_UB on that communicator of the library's own.
int greatest_tag(MPI_Comm base) noexcept;
/// How many bits all of the library's tags have on that communicator of its own; most where it is null.
int tag_bits(MPI_Comm base) noexcept;

/// Whose handles the endpoints of a new communicator get: their own, with the code of one that has failed to make its
/// handle, or handles that are made with the communicator.
using Brought = std::optional<int>;

/// Fills in everything from `base`, `process`, `places` and `identities`, and waits for the other processes. An error
/// code; all processes fail where one does.
int assemble(const std::shared_ptr<Communicator>& communicator, int processes, Brought brought);

/// A communicator of this process alone, from which handles are made.
int make_handle(MPI_Comm* handle) noexcept;
/// Makes a handle with the error handler of `like`.
int make_handle_like(MPI_Comm like, MPI_Comm* handle) noexcept;
/// Gives an endpoint the handle that is brought. An error code.
int claim(Communicator& communicator, int local, MPI_Comm handle);
/// Begins the life of an endpoint whose handle was made with the communicator. An error code.
int claim(Communicator& communicator, int local, MPI_Errhandler handler, MPI_Comm* handle);
/// The same, with the error handler of `like`.
int claim_like(MPI_Comm like, Communicator& communicator, int local, MPI_Comm* handle);
/// Ends the endpoints that nobody has claimed. Precondition: the caller keeps the communicator.
void give_up(Communicator& communicator) noexcept;

}  // namespace gapless::mpi::endpoints

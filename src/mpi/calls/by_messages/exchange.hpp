// MPI_Alltoallw and MPI_Neighbor_alltoallw by messages, each part a message of its own, which goes from GPU to GPU.
#pragma once

#include <cstdint>

#include "mpi/calls/staged/memory_argument.hpp"

namespace gapless::mpi::by_messages {

/// Has the rank so much GPU memory to send that messages are sooner than the library's exchange?
bool gains(const CallFacts& call, const MemoryArgument& out) noexcept;

/// The exchange, on a communicator of the same ranks: MPI_SUCCESS, or the error that is to be raised.
int exchange(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in, MPI_Comm lane) noexcept;

}  // namespace gapless::mpi::by_messages

/// For tests: how many exchanges of this process went so.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_exchanges_by_messages();

// The work that is left for a request that is no message: a collective, file or one-sided call on packed memory.
#pragma once

#include <cstdint>

#include "mpi/calls/sides/received_status.hpp"

namespace gapless::mpi {

/// How often a request's work is done: once, or, if `persistent`, with each start.
enum class Life : std::uint8_t { once, persistent };

namespace requests {

class Work {
 public:
  virtual ~Work() = default;
  /// To be called when the program starts a persistent request. MPI_SUCCESS, or the error that is to be raised instead.
  virtual int start() noexcept { return MPI_SUCCESS; }
  /// To be called when the library has completed the request with that status. MPI_SUCCESS, or the error that is to be
  /// raised.
  virtual int finish(ReceivedStatus& status) noexcept = 0;
};

}  // namespace requests
}  // namespace gapless::mpi

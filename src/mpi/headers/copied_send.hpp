// A send whose bytes are copied first, for a call that receives a stashed message and sends as well: the call writes
// the program's memory, or returns, before the library has sent the bytes.
#pragma once

#include "mpi/headers/arguments.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/buffers/buffers.hpp"

namespace gapless::mpi::headers {

class CopiedSend {
 public:
  /// Copies and begins to send. MPI_SUCCESS, or an error that has been raised on the communicator.
  int begin(const SendArguments<MPI_Count>& out) noexcept;
  bool has_begun() const noexcept { return request_ != MPI_REQUEST_NULL; }
  /// Precondition of wait() and leave(): begin() has succeeded. One of the two is called, once.
  int wait() noexcept;
  /// Lets the send go on after the call. The send ends by itself.
  void leave() noexcept;

 private:
  /// `size`: packed bytes.
  int begin_whole(const SendArguments<MPI_Count>& out, MPI_Count size) noexcept;

  transfer::PoolBuffer bytes_;   ///< packed
  transfer::PoolBuffer memory_;  ///< a copy in the layout of the program's memory
  MPI_Comm communicator_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace gapless::mpi::headers

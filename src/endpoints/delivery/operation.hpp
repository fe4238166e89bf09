// One send or receive of an endpoint, from its call to its completion, and how its bytes get there.
//
// Between endpoints of one process whoever comes second copies, straight from the one buffer to the other; short
// messages that come first are copied aside. To and from other processes the library moves the bytes. A receive takes
// its message out of the library by a matched probe, so that all its endpoint's messages are matched in one place and
// in one order.
#pragma once

#include <cstddef>
#include <memory>

#include "endpoints/delivery/task.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints {

/// What the program's arguments name.
struct Data {
  const void* memory = nullptr;
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

enum class Mode : std::uint8_t { standard, synchronous, buffered };

/// `bytes` are those of the buffer until the message is known.
struct Operation : Task, Posted {
  UserBuffer buffer;
  MPI_Request moving = MPI_REQUEST_NULL;  ///< the library's, while the operation is active
  std::unique_ptr<std::byte[]> packed{};  ///< where the library puts what the buffer cannot take as it comes

  /// Takes a receive back that has no message yet.
  void cancel() noexcept override;
};

/// Sets endpoint, buffer and bytes; an MPI error class if the arguments name no buffer.
int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept;

/// Starts it; it may be complete at once. `destination` is a rank, the tag is valid.
void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode);
void start_receive(Operation& operation, int source, int tag, Context context);
/// A receive of a message that was taken out already, and is deleted.
void start_matched_receive(Operation& operation, Message* message);

/// Copies within this process. An error code, not raised.
int copy_data(Endpoint& endpoint, const Data& from, const Data& to) noexcept;

/// The library has moved the bytes: `received` says how that ended.
void finish_moving(Operation& operation, int code) noexcept;

/// A message came from another process. Precondition: the endpoint's wire is locked.
void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool synchronous);

/// The buffer's packed bytes; null if there is no memory, or they cannot be read.
std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept;

}  // namespace gapless::mpi::endpoints

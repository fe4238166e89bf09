// One send or receive of an endpoint, from its call to its completion, and how its bytes get there.
//
// Between endpoints of one process whoever comes second copies, straight from the one buffer to the other; short
// messages that come first are copied aside. To and from other processes the library moves the bytes. A receive takes
// its message out of the library by a matched probe, so that all its endpoint's messages are matched in one place and
// in one order.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "endpoints/endpoint.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints {

/// What the program's arguments name.
struct Data {
  const void* memory = nullptr;
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

enum class Mode : std::uint8_t { standard, synchronous, buffered };

struct Operation : Posted {
  std::shared_ptr<Endpoint> endpoint;
  UserBuffer buffer;
  MPI_Count bytes = 0;  ///< of the buffer; of the message once it is complete
  bool receives = false;

  // The outcome, valid once `done`.
  int source = MPI_PROC_NULL;
  int tag = MPI_ANY_TAG;
  int code = MPI_SUCCESS;
  bool cancelled = false;
  std::atomic<bool> done{false};

  MPI_Request moving = MPI_REQUEST_NULL;   ///< the library's, while the operation is active
  std::unique_ptr<std::byte[]> packed{};   ///< where the library puts what the buffer cannot take as it comes
  MPI_Request request = MPI_REQUEST_NULL;  ///< the program's, a generalised request; null in blocking calls
  bool has_request = false;
};

/// Sets endpoint, buffer and bytes; an MPI error class if the arguments name no buffer.
int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept;

/// Starts it; it may be complete at once. `destination` is a rank, the tag is valid.
void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode);
void start_receive(Operation& operation, int source, int tag, Context context);
/// A receive of a message that was taken out already, and is deleted.
void start_matched_receive(Operation& operation, Message* message);

/// Takes a receive back that has no message yet.
void cancel(Operation& operation) noexcept;

/// The library has moved the bytes: `received` says how that ended.
void finish_moving(Operation& operation, int code) noexcept;

/// A message came from another process. Precondition: the endpoint's wire is locked.
void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool synchronous);

/// The buffer's packed bytes; null if there is no memory, or they cannot be read.
std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept;

void set_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled) noexcept;
void set_status(MPI_Status* status, const Operation& operation) noexcept;

/// How many operations have begun and not ended in this process.
int outstanding_operations() noexcept;

}  // namespace gapless::mpi::endpoints

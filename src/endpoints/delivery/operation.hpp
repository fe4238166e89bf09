// One send or receive of an endpoint, from its call to its completion, and how its bytes get there.
//
// Endpoints that share memory send through rings (endpoints/rings/ring.hpp), which the receiver empties. Short messages
// are copied in and out. The bytes of a long message the receiver copies from the sender's buffer; if the sender is
// another process, perhaps from its outbox instead. All other bytes are the library's to move: the receiver takes such
// a message out of the library by a matched probe, so that all messages of an endpoint are matched in one place and in
// one order.
//
// Everything here happens under the lock of the operation's endpoint. Only complete() may be called by another
// endpoint's thread: one that has read the bytes of a long message.
#pragma once

#include <cstddef>
#include <memory>

#include "endpoints/tasks/task.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints {

/// What the program's arguments name.
struct Data {
  const void* memory = nullptr;
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

enum class Mode : std::uint8_t { standard, synchronous, buffered };

/// Task::bytes are those of the buffer until the message is known, and then the message's.
struct Operation : Task, Posted {
  /// Not defaulted: `Operation{}` would zero the whole object first, for each message.
  Operation() noexcept {}

  std::byte* run = nullptr;               ///< the bytes, if they are one run that the processor reads
  UserBuffer buffer;                      ///< describes the bytes if they are not one run
  RingWriter* ring = nullptr;             ///< of a send within the node
  Way way = Way::copied;                  ///< of a send within the node: how the receiver gets the bytes
  int loan = -1;                          ///< the ring's loan, while another process may take the bytes
  int unit = -1;                          ///< the outbox's first unit with the bytes
  MPI_Request moving = MPI_REQUEST_NULL;  ///< the library's, while the operation is active
  std::unique_ptr<std::byte[]> packed{};  ///< where the library puts what the buffer cannot take as it comes

  /// Takes a receive back that has no message yet.
  void cancel() noexcept override;
};

/// Sets endpoint, buffer and bytes; an MPI error class if the arguments name no buffer.
int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept;

/// Sends without an operation: a short message of a plain datatype to an endpoint that shares memory, if its ring has
/// room. False: nothing is sent.
bool send_at_once(Endpoint& endpoint, const Data& data, int destination, int tag, Context context) noexcept;

// Each function starts an operation, which may be complete at once. An operation that outlives its call belongs to a
// request, and has the request keep the endpoint.

/// `destination` is a rank, the tag is valid.
void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode);
/// Sends no bytes: the receive of this message fails, and its receiver does not wait for ever.
void start_failed_send(Operation& operation, int destination, int tag, Context context);
void start_receive(Operation& operation, int source, int tag, Context context);
/// A receive of a message that was taken out already, and goes back to its endpoint's pool.
void start_matched_receive(Operation& operation, Message& message);

/// Copies within this process. An error code, not raised.
int copy_data(Endpoint& endpoint, const Data& from, const Data& to) noexcept;

/// The library moves these bytes for the operation. False, with its code set, if it does not even begin.
template <class Start>
bool start_moving(Operation& operation, Start start) {
  const int code = start(&operation.moving);
  if (code == MPI_SUCCESS) {
    operation.endpoint->active.push_back(&operation);
    return true;
  }
  operation.code = code;
  return false;
}

/// The library has moved the bytes: `code` says how that ended.
void finish_moving(Operation& operation, int code) noexcept;

// Parts of progress. Precondition: the endpoint is locked.

/// Takes in what other endpoints of the node have written. False if there was nothing.
bool empty_rings(Endpoint& endpoint);
/// Sends what has waited for room.
void send_stalled(Endpoint& endpoint) noexcept;
/// Completes sends whose bytes another process has taken.
void look_at_loans(Endpoint& endpoint) noexcept;
/// A message came on the endpoint's lane, marked (TagFormat) or not. Precondition: `prepare_for_arrival`.
void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool is_marked);
/// False if there is no memory for a message that nobody waits for.
bool prepare_for_arrival(Endpoint& endpoint) noexcept;

}  // namespace gapless::mpi::endpoints

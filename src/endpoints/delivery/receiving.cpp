// Receives, and what comes for them: from rings, from other processes' memory, and from the library.
#include <algorithm>
#include <limits>

#include "endpoints/delivery/bytes.hpp"
#include "endpoints/delivery/operation.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/calls/staged/byte_types.hpp"

namespace gapless::mpi::endpoints {
namespace {

/// What a receive learns of its message. Returns how many bytes it takes.
MPI_Count note_message(Operation& receive, const Envelope& envelope, MPI_Count bytes) noexcept {
  receive.source = envelope.source - receive.endpoint->sides.first_remote;
  receive.tag = envelope.tag;
  if (bytes > receive.bytes) receive.code = MPI_ERR_TRUNCATE;
  return std::min(bytes, receive.bytes);
}

/// Receives of an endpoint begin and end under its lock, so the first and the last alone of those under way change what
/// others see. One that outlives its call is a request's, which keeps the endpoint.
void begin_receive(Operation& receive) noexcept {
  Endpoint& endpoint = *receive.endpoint;
  receive.receives = true;
  receive.done.store(false, std::memory_order_relaxed);
  if (!receive.outlives_call) return;
  endpoint.keep();
  if (endpoint.receives_under_way++ == 0) internal::count_one(internal::count_of(endpoint));
}

void end_receive(Operation& receive) noexcept {
  if (receive.outlives_call && --receive.endpoint->receives_under_way == 0)
    internal::count_of(*receive.endpoint).tasks.fetch_sub(1, std::memory_order_relaxed);
  receive.done.store(true, std::memory_order_release);
}

void finish_receive(Operation& receive, MPI_Count bytes, int code) noexcept {
  receive.bytes = bytes;
  if (receive.code == MPI_SUCCESS) receive.code = code;
  end_receive(receive);
}

int receive_bytes(void* memory, MPI_Count bytes, MPI_Message* message, MPI_Request* request) noexcept {
  if (bytes <= std::numeric_limits<int>::max())
    return inner.Imrecv(memory, static_cast<int>(bytes), MPI_BYTE, message, request);
  const ByteType type(bytes);
  return type ? inner.Imrecv(memory, 1, type.handle(), message, request) : MPI_ERR_NO_MEM;
}

/// `is_short`: the library has all bytes of it, or gets them without the program.
void start_remote_receive(Operation& receive, MPI_Message remote, const Envelope& envelope, MPI_Count bytes,
                          bool is_short) {
  const MPI_Count taken = note_message(receive, envelope, bytes);
  if (is_short && is_one_run(receive) && bytes <= receive.bytes) {
    const int code = inner.Mrecv(receive.run, static_cast<int>(bytes), MPI_BYTE, &remote, MPI_STATUS_IGNORE);
    return finish_receive(receive, taken, code);
  }
  void* memory = receive.run;
  if (!is_one_run(receive) || bytes > receive.bytes) {
    receive.packed = allocate(bytes);
    if (receive.packed == nullptr) return finish_receive(receive, 0, MPI_ERR_NO_MEM);
    memory = receive.packed.get();
  }
  receive.bytes = taken;
  if (!start_moving(receive, [&](MPI_Request* request) { return receive_bytes(memory, bytes, &remote, request); }))
    end_receive(receive);
}

/// The receive gets the bytes of a message of this process: `packed` ones, or those of a sender who waits.
void receive_here(Operation& receive, const Envelope& envelope, MPI_Count bytes, const std::byte* packed,
                  Operation* sender) noexcept {
  const MPI_Count taken = note_message(receive, envelope, bytes);
  const int code = sender != nullptr ? copy_between(*sender, receive) : unpack_first(receive, packed, taken);
  if (sender != nullptr) {
    if (!is_one_run(*sender)) sender->code = code;  // whose memory has failed is not known
    complete(*sender);
  }
  finish_receive(receive, taken, code);
}

/// The receive gets a message whose sender could not read the bytes.
void receive_nothing(Operation& receive, const Envelope& envelope) noexcept {
  finish_receive(receive, note_message(receive, envelope, 0), bytes_missing());
}

/// The receive gets the bytes that lie at that address in the sender's process; the sender learns how that ended.
void receive_attached(Operation& receive, const Envelope& envelope, MPI_Count bytes, const std::byte* attached,
                      int loan) noexcept {
  Endpoint& endpoint = *receive.endpoint;
  const Communicator& communicator = *endpoint.communicator;
  const int process = communicator.places[static_cast<std::size_t>(envelope.source)].process;
  const MPI_Count taken = note_message(receive, envelope, bytes);
  const Lender lender{communicator.attached[static_cast<std::size_t>(process)], communicator.most_locals,
                      endpoint.from(envelope.source).ring.loan(loan)};
  const Stopwatch watch;
  const int code = copy_from_process(lender, attached, receive, taken);
  lender.loan.end(code == MPI_ERR_OTHER ? Loan::State::failed : Loan::State::taken, watch.ns());
  finish_receive(receive, taken, code);
}

/// The receive gets the bytes that lie in the sender's outbox, and the sender its room back.
void receive_from_outbox(Operation& receive, const Envelope& envelope, MPI_Count bytes, int unit) noexcept {
  const Communicator& communicator = *receive.endpoint->communicator;
  OutboxMemory& outbox =
      communicator.inboxes.outbox(communicator.places[static_cast<std::size_t>(envelope.source)].inbox);
  const MPI_Count taken = note_message(receive, envelope, bytes);
  const Stopwatch watch;
  const int code = unpack_first(receive, outbox.at(unit), taken);
  outbox.end(unit, watch.ns());
  finish_receive(receive, taken, code);
}

/// Gives the receive a message that has been taken out.
void deliver(Operation& receive, Message& message) {
  Endpoint& endpoint = *receive.endpoint;  // the receive may be gone once it is complete
  if (message.remote != MPI_MESSAGE_NULL) {
    start_remote_receive(receive, message.remote, message.envelope, message.bytes, false);
  } else if (message.loan >= 0) {
    receive_attached(receive, message.envelope, message.bytes, message.attached, message.loan);
  } else if (message.unit >= 0) {
    receive_from_outbox(receive, message.envelope, message.bytes, message.unit);
  } else if (message.has_failed) {
    receive_nothing(receive, message.envelope);
  } else {
    receive_here(receive, message.envelope, message.bytes, message.data(), message.sender);
  }
  endpoint.pool.give(message);
}

/// A message that the library has finds its receive, or joins those that nobody waits for.
void match_remote(Endpoint& endpoint, Message& message, bool is_short) {
  Posted* const posted = endpoint.matching.take_posted(message.envelope);
  if (posted != nullptr && !message.has_failed) {
    start_remote_receive(static_cast<Operation&>(*posted), message.remote, message.envelope, message.bytes, is_short);
    return endpoint.pool.give(message);
  }
  if (is_short) {
    // Libraries stop reading from a peer that has too many matched messages, so short ones are taken over.
    inner.Mrecv(message.data(), static_cast<int>(message.bytes), MPI_BYTE, &message.remote, MPI_STATUS_IGNORE);
    message.remote = MPI_MESSAGE_NULL;
  }
  if (posted != nullptr) return deliver(static_cast<Operation&>(*posted), message);
  endpoint.matching.add(message);
}

/// Of a message that this process can read.
MPI_Count bytes_in(const Cell& cell) noexcept {
  return cell.way == Way::copied      ? cell.number
         : cell.way == Way::in_outbox ? cell.in_outbox
         : cell.way == Way::lent      ? cell.lent.bytes
         : cell.way == Way::attached  ? cell.attached.bytes
                                      : 0;
}

/// A message that this process can read finds its receive, or joins those that nobody waits for. False if there
/// is no memory.
bool take_bytes(Endpoint& endpoint, const RingReader& ring, const Cell& cell, const Envelope& envelope) noexcept {
  Operation* const lender = cell.way == Way::lent ? cell.lent.address : nullptr;
  const MPI_Count here = cell.way == Way::copied ? cell.number : 0;
  const MPI_Count bytes = bytes_in(cell);
  const std::byte* const packed = here != 0 ? ring.bytes_of(cell) : nullptr;
  if (Posted* posted = endpoint.matching.take_posted(envelope)) {
    auto& receive = static_cast<Operation&>(*posted);
    if (cell.way == Way::attached) {
      receive_attached(receive, envelope, bytes, cell.attached.address, cell.number);
    } else if (cell.way == Way::in_outbox) {
      receive_from_outbox(receive, envelope, bytes, cell.number);
    } else if (cell.way == Way::failed) {
      receive_nothing(receive, envelope);
    } else {
      receive_here(receive, envelope, bytes, packed, lender);
    }
    return true;
  }
  Message* const message = endpoint.pool.take(here);
  if (message == nullptr) return false;
  message->envelope = envelope;
  message->bytes = bytes;
  message->sender = lender;
  if (cell.way == Way::attached) {
    message->attached = cell.attached.address;
    message->loan = cell.number;
  }
  if (cell.way == Way::in_outbox) message->unit = cell.number;
  message->has_failed = cell.way == Way::failed;
  copy_bytes(message->data(), packed, static_cast<std::size_t>(here));
  endpoint.matching.add(*message);
  return true;
}

/// Takes in the first message of a ring. False if it has to wait: for memory, or for the library.
bool take_in(Endpoint& endpoint, IncomingRing& incoming, const Cell& cell) noexcept {
  const Envelope envelope{incoming.ring.source(), cell.tag, cell.context};
  if (cell.way != Way::by_library) return take_bytes(endpoint, incoming.ring, cell, envelope);
  if (!incoming.arrived.is_linked()) {
    endpoint.waits_for_lane = true;
    return false;
  }
  auto& first = static_cast<Message&>(*incoming.arrived.next);
  first.remove();
  match_remote(endpoint, first, false);
  return true;
}

void hear(Endpoint& endpoint, int inbox) noexcept {
  IncomingRing& incoming = endpoint.incoming[static_cast<std::size_t>(inbox)];
  if (incoming.ring.is_open()) return;
  const Communicator& communicator = *endpoint.communicator;
  endpoint.heard.push_back(inbox);  // has room for all
  incoming.ring.open(communicator.inboxes.ring(inbox, endpoint.inbox_number()),
                     communicator.ranks_of_inboxes[static_cast<std::size_t>(inbox)]);
}

/// Opens the rings of those who have begun to send to the endpoint.
void hear_of_writers(Endpoint& endpoint) noexcept {
  const RingInboxHead& head = endpoint.inbox();
  for (; endpoint.entered != head.writers.load(std::memory_order_acquire); ++endpoint.entered) {
    const int inbox = endpoint.communicator->inboxes.writer(endpoint.inbox_number(), endpoint.entered);
    if (inbox < 0) return;
    hear(endpoint, inbox);
  }
}

/// Has that endpoint a ring to this one? It had one before it sent anything by the library, though others that entered
/// at the same time may be seen later.
bool has_ring_from(Endpoint& endpoint, int inbox) noexcept {
  if (inbox < 0) return false;
  if (endpoint.incoming[static_cast<std::size_t>(inbox)].ring.is_open()) return true;
  const std::uint32_t writers = endpoint.inbox().writers.load(std::memory_order_acquire);
  for (std::uint32_t n = endpoint.entered; n < writers; ++n) {
    if (endpoint.communicator->inboxes.writer(endpoint.inbox_number(), n) != inbox) continue;
    hear(endpoint, inbox);
    return true;
  }
  return false;
}

}  // namespace

void start_receive(Operation& operation, int source, int tag, Context context) {
  operation.envelope = {source, tag, context};
  Endpoint& endpoint = *operation.endpoint;
  const std::lock_guard lock(endpoint.lock);
  begin_receive(operation);
  Message* const message = endpoint.matching.look(operation.envelope);
  if (message == nullptr) return endpoint.matching.post(operation);
  endpoint.matching.take_out(*message);
  deliver(operation, *message);
}

void start_matched_receive(Operation& operation, Message& message) {
  const std::lock_guard lock(operation.endpoint->lock);
  begin_receive(operation);
  deliver(operation, message);
}

void Operation::cancel() noexcept {
  if (!receives) return;
  const std::lock_guard lock(endpoint->lock);
  if (!endpoint->matching.cancel(*this)) return;
  cancelled = true;
  bytes = 0;
  end_receive(*this);
}

bool empty_rings(Endpoint& endpoint) {
  constexpr int most_at_once = 64;
  bool found = false;
  endpoint.waits_for_lane = false;
  hear_of_writers(endpoint);
  for (const int inbox : endpoint.heard) {
    IncomingRing& incoming = endpoint.incoming[static_cast<std::size_t>(inbox)];
    for (int taken = 0; taken < most_at_once; ++taken) {
      const Cell* const cell = incoming.ring.front();
      if (cell == nullptr) break;
      if (taken > 0) incoming.ring.fetch_ahead(taken);
      if (!take_in(endpoint, incoming, *cell)) break;
      incoming.ring.pop();
      found = true;
    }
  }
  return found;
}

bool prepare_for_arrival(Endpoint& endpoint) noexcept {
  Message* const message = endpoint.pool.take(most_copied_aside);
  if (message != nullptr) endpoint.pool.give(*message);
  return message != nullptr;
}

void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool is_marked) {
  Message& message = *endpoint.pool.take(most_copied_aside);
  message.envelope = envelope;
  message.bytes = bytes;
  message.remote = remote;
  message.has_failed = is_marked && envelope.context == Context::collective;
  const int inbox = endpoint.communicator->places[static_cast<std::size_t>(envelope.source)].inbox;
  if (!has_ring_from(endpoint, inbox))
    return match_remote(endpoint, message, message.has_failed || (!is_marked && bytes <= most_copied_aside));
  endpoint.from(envelope.source).arrived.append(message);
}

void finish_moving(Operation& operation, int code) noexcept {
  if (operation.code == MPI_SUCCESS) operation.code = code;
  if (operation.receives && operation.packed != nullptr && code == MPI_SUCCESS) {
    const int unpacked = unpack_first(operation, operation.packed.get(), operation.bytes);
    if (operation.code == MPI_SUCCESS) operation.code = unpacked;
  }
  operation.receives ? end_receive(operation) : complete(operation);
}

}  // namespace gapless::mpi::endpoints

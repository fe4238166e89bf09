#include "endpoints/delivery/operation.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/calls/staged/byte_types.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "pack/host/engine.hpp"
#include "transfer/packing.hpp"
#include "transfer/parts.hpp"

namespace gapless::mpi::endpoints {
namespace {

bool is_one_run(const Operation& operation) noexcept { return operation.bytes == 0 || operation.run != nullptr; }

std::unique_ptr<std::byte[]> allocate(MPI_Count bytes) noexcept {
  return std::unique_ptr<std::byte[]>(new (std::nothrow)
                                          std::byte[static_cast<std::size_t>(std::max<MPI_Count>(bytes, 1))]);
}

int code_of(transfer::Result result) noexcept {
  return result == transfer::Result::ok              ? MPI_SUCCESS
         : result == transfer::Result::out_of_memory ? MPI_ERR_NO_MEM
                                                     : MPI_ERR_OTHER;
}

int pack_all(const Operation& operation, std::byte* packed) noexcept {
  if (operation.bytes == 0) return MPI_SUCCESS;
  if (is_one_run(operation)) {
    std::memcpy(packed, operation.run, static_cast<std::size_t>(operation.bytes));
    return MPI_SUCCESS;
  }
  return code_of(transfer::pack(operation.buffer.buffer, packed, {}));
}

/// The first `bytes` packed bytes of the buffer get their values; no other byte changes.
int unpack_first(const Operation& operation, const std::byte* packed, MPI_Count bytes) noexcept {
  if (bytes == 0) return MPI_SUCCESS;
  if (is_one_run(operation)) {
    std::memcpy(operation.run, packed, static_cast<std::size_t>(bytes));
    return MPI_SUCCESS;
  }
  transfer::Buffer buffer = operation.buffer.buffer;
  if (bytes == buffer.size()) return code_of(transfer::unpack(buffer, packed, {}));
  if (buffer.location.is_cpu_addressable()) {
    try {
      pack::host::run(pack::Job{buffer.type->layout.get(),
                                {buffer.count, buffer.type->extent},
                                0,
                                bytes,
                                pack::Direction::unpack,
                                buffer.memory,
                                const_cast<std::byte*>(packed)});
      return MPI_SUCCESS;
    } catch (const std::exception&) {
      return MPI_ERR_NO_MEM;
    }
  }
  // The GPU's packing knows whole buffers only: what the message does not have keeps its own bytes.
  const auto whole = allocate(buffer.size());
  if (whole == nullptr) return MPI_ERR_NO_MEM;
  if (const int code = code_of(transfer::pack(buffer, whole.get(), {})); code != MPI_SUCCESS) return code;
  std::memcpy(whole.get(), packed, static_cast<std::size_t>(bytes));
  return code_of(transfer::unpack(buffer, whole.get(), {}));
}

/// From the sender's buffer to the receiver's; both have described what they name.
int copy_between(const Operation& from, const Operation& to) noexcept {
  if (from.bytes == 0) return MPI_SUCCESS;
  const MPI_Count bytes = std::min(from.bytes, to.bytes);
  if (is_one_run(from)) return unpack_first(to, from.run, bytes);
  const bool on_host =
      from.buffer.buffer.location.is_cpu_addressable() && to.buffer.buffer.location.is_cpu_addressable();
  if (on_host && from.bytes == to.bytes) return code_of(transfer::copy_on_host(from.buffer.buffer, to.buffer.buffer));
  const auto packed = allocate(from.bytes);
  if (packed == nullptr) return MPI_ERR_NO_MEM;
  const int code = pack_all(from, packed.get());
  return code != MPI_SUCCESS ? code : unpack_first(to, packed.get(), bytes);
}

/// What a receive learns of its message. Returns how many bytes it takes.
MPI_Count note_message(Operation& receive, const Envelope& envelope, MPI_Count bytes) noexcept {
  receive.source = envelope.source;
  receive.tag = envelope.tag;
  if (bytes > receive.bytes) receive.code = MPI_ERR_TRUNCATE;
  return std::min(bytes, receive.bytes);
}

void finish_receive(Operation& receive, MPI_Count bytes, int code) noexcept {
  receive.bytes = bytes;
  if (receive.code == MPI_SUCCESS) receive.code = code;
  complete(receive);
}

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

/// The library has most short messages away at once, and then nobody has to ask it again. Precondition: the operation
/// is the last that became active.
void look_whether_moved(Operation& operation) noexcept {
  int flag = 0;
  const int code = inner.Test(&operation.moving, &flag, MPI_STATUS_IGNORE);
  if (flag == 0 && code == MPI_SUCCESS) return;
  operation.endpoint->active.pop_back();
  finish_moving(operation, code);
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
    memory = receive.packed.get();
  }
  receive.bytes = taken;
  if (!start_moving(receive, [&](MPI_Request* request) { return receive_bytes(memory, bytes, &remote, request); }))
    complete(receive);
}

/// The receive gets the bytes of a message of this process: `packed` ones, or those of a sender who waits.
void receive_here(Operation& receive, const Envelope& envelope, MPI_Count bytes, const std::byte* packed,
                  Operation* sender) noexcept {
  const MPI_Count taken = note_message(receive, envelope, bytes);
  const int code = sender != nullptr ? copy_between(*sender, receive) : unpack_first(receive, packed, taken);
  if (sender != nullptr) complete(*sender);
  finish_receive(receive, taken, code);
}

/// Gives the receive a message that has been taken out.
void deliver(Operation& receive, Message& message) {
  Endpoint& endpoint = *receive.endpoint;  // the receive may be gone once it is complete
  if (message.remote != MPI_MESSAGE_NULL) {
    start_remote_receive(receive, message.remote, message.envelope, message.bytes, false);
  } else {
    receive_here(receive, message.envelope, message.bytes, message.data(), message.sender);
  }
  endpoint.pool.give(message);
}

/// The first message of the ring finds its receive, or joins those that nobody waits for. False if there is no memory.
bool take_in(Endpoint& endpoint, Ring& ring, const Cell& cell) noexcept {
  const Envelope envelope{ring.source, cell.tag, cell.context};
  const MPI_Count here = cell.sender == nullptr ? cell.bytes : 0;
  const std::byte* const packed = here != 0 ? ring.bytes_of(cell) : nullptr;
  if (Posted* posted = endpoint.matching.take_posted(envelope)) {
    receive_here(static_cast<Operation&>(*posted), envelope, cell.bytes, packed, cell.sender);
    return true;
  }
  Message* const message = endpoint.pool.take(here);
  if (message == nullptr) return false;
  message->envelope = envelope;
  message->bytes = cell.bytes;
  message->sender = cell.sender;
  if (here != 0) std::memcpy(message->data(), packed, static_cast<std::size_t>(here));
  endpoint.matching.add(*message);
  return true;
}

/// The ring to an endpoint of the process; null if there is no memory for one.
Ring* ring_to(Endpoint& from, int local) noexcept {
  Ring*& ring = from.outgoing[static_cast<std::size_t>(local)];
  if (ring == nullptr) ring = from.communicator->inboxes[static_cast<std::size_t>(local)]->add(from.rank);
  return ring;
}

/// The operation's message enters its ring; false if that is full. Short messages are complete then, others once they
/// have been read. One that nobody will ever receive fails.
bool write(Operation& send) noexcept {
  if (send.ring->is_closed()) {
    send.code = MPI_ERR_COMM;
    complete(send);
    return true;
  }
  const bool stays = send.is_synchronous || send.bytes > most_copied_aside || !send.ring->can_hold(send.bytes);
  const Ring::Room room = send.ring->claim(stays ? 0 : send.bytes);
  if (room.cell == nullptr) return false;
  room.cell->tag = send.envelope.tag;
  room.cell->context = send.envelope.context;
  room.cell->bytes = send.bytes;
  room.cell->sender = stays ? &send : nullptr;
  if (!stays) send.code = pack_all(send, room.memory);
  send.ring->publish(*room.cell);
  if (!stays) complete(send);
  return true;
}

void send_here(Operation& send, int local, Mode mode) {
  Endpoint& from = *send.endpoint;
  const std::lock_guard lock(from.lock);
  send.ring = ring_to(from, local);
  send.is_synchronous = mode == Mode::synchronous;
  if (send.ring == nullptr) {
    send.code = MPI_ERR_NO_MEM;
    return complete(send);
  }
  if (send.ring->stalled == 0 && write(send)) return;
  from.stalled.push_back(&send);
  ++send.ring->stalled;
}

/// A buffered send is another one's, which has a copy of the bytes and which nobody waits for.
void send_copy(Operation& send, int local) {
  auto copy = std::make_unique<Operation>();
  copy->endpoint = send.endpoint;
  copy->bytes = send.bytes;
  copy->envelope = send.envelope;
  copy->packed = packed_copy(send);
  copy->run = copy->packed.get();
  copy->outlives_call = copy->is_abandoned = true;
  if (copy->run == nullptr) {
    send.code = MPI_ERR_NO_MEM;
  } else {
    begin(*copy);
    send_here(*copy.release(), local, Mode::standard);
  }
  complete(send);
}

void send_away(Operation& send, const Data& data, const Place& place, Mode mode) {
  const Communicator& communicator = *send.endpoint->communicator;
  const MPI_Comm lane = communicator.lanes[static_cast<std::size_t>(place.local)];
  const int encoded = communicator.format.encode(send.envelope.tag, send.envelope.context, mode == Mode::synchronous,
                                                 send.endpoint->local);
  const std::lock_guard lock(send.endpoint->lock);
  const bool started = start_moving(send, [&](MPI_Request* request) -> int {
    if (data.count > std::numeric_limits<int>::max()) {
#if GAPLESS_DECLARED_Isend_c
      const auto large = mode == Mode::synchronous ? inner.Issend_c
                         : mode == Mode::buffered  ? inner.Ibsend_c
                                                   : inner.Isend_c;
      if (large != nullptr) return large(data.memory, data.count, data.datatype, place.process, encoded, lane, request);
#endif
      return MPI_ERR_COUNT;
    }
    const auto start = mode == Mode::synchronous ? inner.Issend : mode == Mode::buffered ? inner.Ibsend : inner.Isend;
    return start(data.memory, static_cast<int>(data.count), data.datatype, place.process, encoded, lane, request);
  });
  if (!started) {
    complete(send);
  } else if (send.bytes <= most_copied_aside && mode != Mode::synchronous) {
    look_whether_moved(send);
  }
}

/// The bytes of plain datatypes are told without a look at their description.
bool is_plain(const Data& data, std::byte*& run, MPI_Count& bytes) noexcept {
  if (data.count == 0 && data.datatype != MPI_DATATYPE_NULL) {
    run = nullptr;
    bytes = 0;
    return true;
  }
  if (data.count <= 0 || device::in_use()) return false;
  const TypeRecord* const record = type_cache::find_in_table(data.datatype);
  if (record == nullptr || !record->plain || record->size == 0) return false;
  if (__builtin_mul_overflow(record->size, data.count, &bytes)) return false;
  const void* const first = address_of(data.memory, record->first_byte);
  run = static_cast<std::byte*>(const_cast<void*>(first));
  return !is_null_with_displacement(first);
}

}  // namespace

int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept {
  operation.endpoint = &endpoint;
  if (is_plain(data, operation.run, operation.bytes)) return MPI_SUCCESS;
  operation.run = nullptr;
  if (data.count < 0) return MPI_ERR_COUNT;
  if (data.datatype == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  operation.bytes = 0;
  if (data.count == 0) return MPI_SUCCESS;
  operation.buffer = identify(data.memory, data.count, data.datatype, Purpose::message, Analysis::now);
  if (operation.buffer.is_described()) {
    const transfer::Buffer& buffer = operation.buffer.buffer;
    operation.bytes = buffer.size();
    if (buffer.location.is_cpu_addressable() && buffer.type->contiguous_repeats)
      operation.run = static_cast<std::byte*>(const_cast<void*>(address_of(buffer.memory, buffer.type->layout->base)));
    return MPI_SUCCESS;
  }
  if (operation.buffer.opaque) return MPI_ERR_TYPE;
  const MPI_Count size = runtime::is_usable(data.datatype) ? runtime::size_of(data.datatype) : -1;
  return size < 0 ? MPI_ERR_TYPE : size == 0 ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

bool send_at_once(Endpoint& from, const Data& data, int destination, int tag) noexcept {
  const Communicator& communicator = *from.communicator;
  const Place place = communicator.places[static_cast<std::size_t>(destination)];
  if (place.process != communicator.process) return false;
  std::byte* run = nullptr;
  MPI_Count bytes = 0;
  if (!is_plain(data, run, bytes) || bytes > most_copied_aside) return false;
  const std::lock_guard lock(from.lock);
  Ring* const ring = ring_to(from, place.local);
  if (ring == nullptr || ring->stalled != 0 || ring->is_closed() || !ring->can_hold(bytes)) return false;
  const Ring::Room room = ring->claim(bytes);
  if (room.cell == nullptr) return false;
  room.cell->tag = tag;
  room.cell->context = Context::messages;
  room.cell->bytes = bytes;
  room.cell->sender = nullptr;
  if (bytes != 0) std::memcpy(room.memory, run, static_cast<std::size_t>(bytes));
  ring->publish(*room.cell);
  return true;
}

void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode) {
  begin(operation);
  operation.receives = false;
  const Endpoint& from = *operation.endpoint;
  operation.envelope = {from.rank, tag, context};
  const Place place = from.communicator->places[static_cast<std::size_t>(destination)];
  if (place.process != from.communicator->process) return send_away(operation, data, place, mode);
  if (mode == Mode::buffered) return send_copy(operation, place.local);
  send_here(operation, place.local, mode);
}

void start_receive(Operation& operation, int source, int tag, Context context) {
  begin(operation);
  operation.receives = true;
  operation.envelope = {source, tag, context};
  Endpoint& endpoint = *operation.endpoint;
  const std::lock_guard lock(endpoint.lock);
  Message* const message = endpoint.matching.look(operation.envelope);
  if (message == nullptr) return endpoint.matching.post(operation);
  endpoint.matching.take_out(*message);
  deliver(operation, *message);
}

bool empty_rings(Endpoint& endpoint) noexcept {
  constexpr int most_at_once = 64;
  bool found = false;
  const Inbox& inbox = endpoint.inbox();
  for (int i = 0; i < inbox.count(); ++i) {
    Ring* const ring = inbox.at(i);
    for (int taken = 0; ring != nullptr && taken < most_at_once; ++taken) {
      const Cell* const cell = ring->front();
      if (cell == nullptr || !take_in(endpoint, *ring, *cell)) break;
      ring->pop();
      found = true;
    }
  }
  return found;
}

void send_stalled(Endpoint& endpoint) noexcept {
  if (endpoint.stalled.empty()) return;
  for (Operation* send : endpoint.stalled) send->ring->is_full = false;
  // What does not fit holds up what comes behind it on the same ring.
  std::erase_if(endpoint.stalled, [](Operation* send) {
    Ring& ring = *send->ring;
    ring.is_full = ring.is_full || !write(*send);
    if (!ring.is_full) --ring.stalled;
    return !ring.is_full;
  });
}

void start_matched_receive(Operation& operation, Message& message) {
  begin(operation);
  operation.receives = true;
  const std::lock_guard lock(operation.endpoint->lock);
  deliver(operation, message);
}

void Operation::cancel() noexcept {
  if (!receives) return;
  {
    const std::lock_guard lock(endpoint->lock);
    if (!endpoint->matching.cancel(*this)) return;
  }
  cancelled = true;
  bytes = 0;
  complete(*this);
}

int copy_data(Endpoint& endpoint, const Data& from, const Data& to) noexcept {
  Operation source, target;
  int code = set_buffer(source, endpoint, from);
  if (code == MPI_SUCCESS) code = set_buffer(target, endpoint, to);
  if (code != MPI_SUCCESS) return code;
  const bool fits = source.bytes <= target.bytes;
  code = copy_between(source, target);
  return code == MPI_SUCCESS && !fits ? MPI_ERR_TRUNCATE : code;
}

void finish_moving(Operation& operation, int code) noexcept {
  if (operation.code == MPI_SUCCESS) operation.code = code;
  if (operation.packed != nullptr && code == MPI_SUCCESS) {
    const int unpacked = unpack_first(operation, operation.packed.get(), operation.bytes);
    if (operation.code == MPI_SUCCESS) operation.code = unpacked;
  }
  complete(operation);
}

bool prepare_for_arrival(Endpoint& endpoint) noexcept {
  Message* const message = endpoint.pool.take(most_copied_aside);
  if (message != nullptr) endpoint.pool.give(*message);
  return message != nullptr;
}

void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool synchronous) {
  const bool is_short = !synchronous && bytes <= most_copied_aside;
  if (Posted* posted = endpoint.matching.take_posted(envelope))
    return start_remote_receive(static_cast<Operation&>(*posted), remote, envelope, bytes, is_short);
  Message& message = *endpoint.pool.take(most_copied_aside);
  message.envelope = envelope;
  message.bytes = bytes;
  message.remote = remote;
  if (is_short) {
    // Libraries stop reading from a peer that has too many matched messages, so short ones are taken over.
    inner.Mrecv(message.data(), static_cast<int>(bytes), MPI_BYTE, &message.remote, MPI_STATUS_IGNORE);
    message.remote = MPI_MESSAGE_NULL;
  }
  endpoint.matching.add(message);
}

std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept {
  auto packed = allocate(operation.bytes);
  if (packed != nullptr && pack_all(operation, packed.get()) != MPI_SUCCESS) packed.reset();
  return packed;
}

}  // namespace gapless::mpi::endpoints

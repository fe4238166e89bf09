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

/// Longer messages wait where they are: one more copy would cost more than the sender's wait.
constexpr MPI_Count most_copied_aside = 8192;

bool is_one_run(const Operation& operation) noexcept {
  return operation.bytes == 0 ||
         (operation.buffer.buffer.location.is_cpu_addressable() && operation.buffer.buffer.type->contiguous_repeats);
}

std::byte* first_byte(const Operation& operation) noexcept {
  if (operation.bytes == 0) return nullptr;
  const transfer::Buffer& buffer = operation.buffer.buffer;
  return static_cast<std::byte*>(const_cast<void*>(address_of(buffer.memory, buffer.type->layout->base)));
}

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
    std::memcpy(packed, first_byte(operation), static_cast<std::size_t>(operation.bytes));
    return MPI_SUCCESS;
  }
  return code_of(transfer::pack(operation.buffer.buffer, packed, {}));
}

/// The first `bytes` packed bytes of the buffer get their values; no other byte changes.
int unpack_first(const Operation& operation, const std::byte* packed, MPI_Count bytes) noexcept {
  if (bytes == 0) return MPI_SUCCESS;
  if (is_one_run(operation)) {
    std::memcpy(first_byte(operation), packed, static_cast<std::size_t>(bytes));
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
  if (is_one_run(from)) return unpack_first(to, first_byte(from), bytes);
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

int receive_bytes(void* memory, MPI_Count bytes, MPI_Message* message, MPI_Request* request) noexcept {
  if (bytes <= std::numeric_limits<int>::max())
    return inner.Imrecv(memory, static_cast<int>(bytes), MPI_BYTE, message, request);
  const ByteType type(bytes);
  return type ? inner.Imrecv(memory, 1, type.handle(), message, request) : MPI_ERR_NO_MEM;
}

/// Precondition: the wire is locked.
void start_remote_receive(Operation& receive, MPI_Message remote, const Envelope& envelope, MPI_Count bytes) {
  const MPI_Count taken = note_message(receive, envelope, bytes);
  void* memory = first_byte(receive);
  if (!is_one_run(receive) || bytes > receive.bytes) {
    receive.packed = allocate(bytes);
    memory = receive.packed.get();
  }
  receive.bytes = taken;
  if (!start_moving(receive, [&](MPI_Request* request) { return receive_bytes(memory, bytes, &remote, request); }))
    complete(receive);
}

/// Gives the receive its message, which is deleted.
void deliver(Operation& receive, Message* message) {
  const std::unique_ptr<Message> owner(message);
  if (message->remote != MPI_MESSAGE_NULL) {
    const std::lock_guard lock(receive.endpoint->wire);
    return start_remote_receive(receive, message->remote, message->envelope, message->bytes);
  }
  const MPI_Count bytes = note_message(receive, message->envelope, message->bytes);
  if (message->sender != nullptr) {
    const int code = copy_between(*message->sender, receive);
    complete(*message->sender);
    return finish_receive(receive, bytes, code);
  }
  finish_receive(receive, bytes, unpack_first(receive, message->data.get(), bytes));
}

void send_here(Operation& send, Endpoint& to, const Envelope& envelope, Mode mode) {
  std::unique_lock lock(to.matching.mutex);
  if (Posted* posted = to.matching.take_posted(envelope)) {
    lock.unlock();  // the receive belongs to this thread alone now
    auto& receive = static_cast<Operation&>(*posted);
    const MPI_Count bytes = note_message(receive, envelope, send.bytes);
    finish_receive(receive, bytes, copy_between(send, receive));
    return complete(send);
  }
  auto message = std::make_unique<Message>();
  message->envelope = envelope;
  message->bytes = send.bytes;
  const bool aside = mode == Mode::buffered || (mode == Mode::standard && send.bytes <= most_copied_aside);
  if (aside) message->data = allocate(send.bytes);
  if (message->data == nullptr) {
    message->sender = &send;
    return to.matching.add(*message.release());
  }
  send.code = pack_all(send, message->data.get());
  to.matching.add(*message.release());
  lock.unlock();
  complete(send);
}

void send_away(Operation& send, const Data& data, const Place& place, int tag, Context context, Mode mode) {
  const Communicator& communicator = *send.endpoint->communicator;
  const MPI_Comm lane = communicator.lanes[static_cast<std::size_t>(place.local)];
  const int encoded = communicator.format.encode(tag, context, mode == Mode::synchronous, send.endpoint->local);
  const std::lock_guard lock(send.endpoint->wire);
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
  if (!started) complete(send);
}

}  // namespace

int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept {
  operation.endpoint = share(endpoint);
  if (operation.endpoint == nullptr) return MPI_ERR_COMM;
  if (data.count < 0) return MPI_ERR_COUNT;
  if (data.datatype == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  operation.bytes = 0;
  if (data.count == 0) return MPI_SUCCESS;
  operation.buffer = identify(data.memory, data.count, data.datatype, Purpose::message, Analysis::now);
  if (operation.buffer.is_described()) {
    operation.bytes = operation.buffer.buffer.size();
    return MPI_SUCCESS;
  }
  if (operation.buffer.opaque) return MPI_ERR_TYPE;
  const MPI_Count size = runtime::is_usable(data.datatype) ? runtime::size_of(data.datatype) : -1;
  return size < 0 ? MPI_ERR_TYPE : size == 0 ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode) {
  begin(operation);
  operation.receives = false;
  const Endpoint& from = *operation.endpoint;
  const Communicator& communicator = *from.communicator;
  const Place place = communicator.places[static_cast<std::size_t>(destination)];
  if (place.process != communicator.process) return send_away(operation, data, place, tag, context, mode);
  Endpoint* to = communicator.local[static_cast<std::size_t>(place.local)];
  if (to == nullptr) {  // freed already: nobody will ever receive this
    operation.code = MPI_ERR_COMM;
    return complete(operation);
  }
  send_here(operation, *to, {from.rank, tag, context}, mode);
}

void start_receive(Operation& operation, int source, int tag, Context context) {
  begin(operation);
  operation.receives = true;
  operation.envelope = {source, tag, context};
  Matching& matching = operation.endpoint->matching;
  Message* message = nullptr;
  {
    const std::lock_guard lock(matching.mutex);
    message = matching.look(operation.envelope);
    if (message == nullptr) return matching.post(operation);
    matching.take_out(*message);
  }
  deliver(operation, message);
}

void start_matched_receive(Operation& operation, Message* message) {
  begin(operation);
  operation.receives = true;
  deliver(operation, message);
}

void Operation::cancel() noexcept {
  if (!receives) return;
  {
    const std::lock_guard lock(endpoint->matching.mutex);
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

void arrive(Endpoint& endpoint, MPI_Message remote, const Envelope& envelope, MPI_Count bytes, bool synchronous) {
  auto message = std::make_unique<Message>();
  message->envelope = envelope;
  message->bytes = bytes;
  message->remote = remote;
  // A receive may be posted between this look and the next, so what is copied aside is copied before it can be seen.
  Posted* posted = nullptr;
  {
    const std::lock_guard lock(endpoint.matching.mutex);
    posted = endpoint.matching.take_posted(envelope);
    if (posted == nullptr && (synchronous || bytes > most_copied_aside)) endpoint.matching.add(*message.release());
  }
  if (posted == nullptr && message != nullptr) {
    // Libraries stop reading from a peer that has too many matched messages, so short ones are taken over.
    message->data = allocate(bytes);
    inner.Mrecv(message->data.get(), static_cast<int>(bytes), MPI_BYTE, &message->remote, MPI_STATUS_IGNORE);
    message->remote = MPI_MESSAGE_NULL;
    const std::lock_guard lock(endpoint.matching.mutex);
    posted = endpoint.matching.take_posted(envelope);
    if (posted == nullptr) return endpoint.matching.add(*message.release());
  }
  if (posted == nullptr) return;
  auto& receive = static_cast<Operation&>(*posted);
  if (message->remote != MPI_MESSAGE_NULL) return start_remote_receive(receive, message->remote, envelope, bytes);
  const MPI_Count taken = note_message(receive, envelope, bytes);
  finish_receive(receive, taken, unpack_first(receive, message->data.get(), taken));
}

std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept {
  auto packed = allocate(operation.bytes);
  if (packed != nullptr && pack_all(operation, packed.get()) != MPI_SUCCESS) packed.reset();
  return packed;
}

}  // namespace gapless::mpi::endpoints

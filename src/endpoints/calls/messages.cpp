// Point to point between endpoints, and probes.
#include "endpoints/delivery/messages.hpp"

#include "endpoints/calls/calls.hpp"
#include "endpoints/delivery/bytes.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/requests.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {

int raise(const Endpoint& endpoint, int code) noexcept {
  if (code == MPI_SUCCESS) return code;
  // A handle that is being freed is no endpoint's.
  return find(endpoint.handle) == &endpoint ? raise_on_communicator(endpoint.handle, code) : raise_without_object(code);
}

int check_send(const Endpoint& endpoint, int& destination, int tag) noexcept {
  if (destination != MPI_PROC_NULL) {
    if (!endpoint.has_peer(destination)) return MPI_ERR_RANK;
    destination += endpoint.sides.first_remote;
  }
  return tag < 0 || tag > endpoint.communicator->format.upper_bound() ? MPI_ERR_TAG : MPI_SUCCESS;
}

int check_receive(const Endpoint& endpoint, int& source, int tag) noexcept {
  if (source != MPI_ANY_SOURCE && source != MPI_PROC_NULL) {
    if (!endpoint.has_peer(source)) return MPI_ERR_RANK;
    source += endpoint.sides.first_remote;
  }
  return tag != MPI_ANY_TAG && (tag < 0 || tag > endpoint.communicator->format.upper_bound()) ? MPI_ERR_TAG
                                                                                              : MPI_SUCCESS;
}

namespace {

/// A send or receive that is waited for in the call. With MPI_PROC_NULL nothing begins, but a mistaken buffer is an
/// error.
class Blocking {
 public:
  int send(Endpoint& endpoint, const Data& data, int destination, int tag, Context context, Mode mode) {
    if (const int code = set_buffer(operation_, endpoint, data); code != MPI_SUCCESS) return code;
    if (destination == MPI_PROC_NULL) return MPI_SUCCESS;
    start_send(operation_, data, destination, tag, context, mode);
    begun_ = true;
    return MPI_SUCCESS;
  }
  int receive(Endpoint& endpoint, const Data& data, int source, int tag, Context context) {
    operation_.receives = true;
    if (const int code = set_buffer(operation_, endpoint, data); code != MPI_SUCCESS) return code;
    if (source == MPI_PROC_NULL) {
      operation_.bytes = 0;
      return MPI_SUCCESS;
    }
    start_receive(operation_, source, tag, context);
    begun_ = true;
    return MPI_SUCCESS;
  }
  int wait() {
    if (begun_) drive_until_done(operation_);
    return operation_.code;
  }
  /// Of a receive.
  int wait(MPI_Status* status) {
    const int code = wait();
    set_status(status, operation_);
    return code;
  }
  /// Cancels the operation, where another part of the call has failed.
  void give_up() {
    if (!begun_) return;
    operation_.cancel();
    drive_until_done(operation_);
  }

 private:
  Operation operation_;
  bool begun_ = false;
};

bool is_sent_at_once(Endpoint& endpoint, const Data& data, int destination, int tag, Mode mode) noexcept {
  return mode != Mode::synchronous && destination != MPI_PROC_NULL &&
         send_at_once(endpoint, data, destination, tag, Context::messages);
}

int send_and_wait(Endpoint& endpoint, const Data& data, int destination, int tag, Mode mode) {
  int code = check_send(endpoint, destination, tag);
  if (code == MPI_SUCCESS && is_sent_at_once(endpoint, data, destination, tag, mode)) return code;
  if (code == MPI_SUCCESS) {
    Blocking send;
    code = send.send(endpoint, data, destination, tag, Context::messages, mode);
    if (code == MPI_SUCCESS) code = send.wait();
  }
  return raise(endpoint, code);
}

int receive_and_wait(Endpoint& endpoint, const Data& data, int source, int tag, MPI_Status* status) {
  int code = check_receive(endpoint, source, tag);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  Blocking receive;
  code = receive.receive(endpoint, data, source, tag, Context::messages);
  if (code == MPI_SUCCESS) code = receive.wait(status);
  return raise(endpoint, code);
}

/// Starts an operation under a request. `start(operation)` is not called where the peer is MPI_PROC_NULL.
template <class Start>
int under_request(Endpoint& endpoint, const Data& data, int code, bool receives, bool has_peer, MPI_Request* request,
                  Start start) {
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  requests::Request* const made = requests::acquire(endpoint);
  if (made == nullptr) return raise(endpoint, MPI_ERR_NO_MEM);
  Operation& operation = *made->operation;
  operation.receives = receives;
  code = set_buffer(operation, endpoint, data);
  if (code != MPI_SUCCESS) {
    requests::release_alone(*made);
    return raise(endpoint, code);
  }
  *request = made->handle;
  if (has_peer) {
    start(operation);
  } else {
    const std::lock_guard lock(endpoint.lock);
    endpoint.keep();
    operation.bytes = 0;
    operation.done.store(true, std::memory_order_release);
  }
  return MPI_SUCCESS;
}

int start_send_request(Endpoint& endpoint, const Data& data, int destination, int tag, Mode mode,
                       MPI_Request* request) {
  const int code = check_send(endpoint, destination, tag);
  if (code == MPI_SUCCESS && is_sent_at_once(endpoint, data, destination, tag, mode)) {
    *request = requests::of_sent();
    if (*request != MPI_REQUEST_NULL) return MPI_SUCCESS;
    return raise(endpoint, MPI_ERR_NO_MEM);
  }
  return under_request(endpoint, data, code, false, destination != MPI_PROC_NULL, request, [&](Operation& operation) {
    start_send(operation, data, destination, tag, Context::messages, mode);
  });
}

int start_receive_request(Endpoint& endpoint, const Data& data, int source, int tag, MPI_Request* request) {
  const int code = check_receive(endpoint, source, tag);
  return under_request(endpoint, data, code, true, source != MPI_PROC_NULL, request,
                       [&](Operation& operation) { start_receive(operation, source, tag, Context::messages); });
}

int exchange(Endpoint& endpoint, const Data& out, int destination, int send_tag, const Data& in, int source,
             int receive_tag, MPI_Status* status) {
  int code = check_send(endpoint, destination, send_tag);
  if (code == MPI_SUCCESS) code = check_receive(endpoint, source, receive_tag);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  Blocking receive, send;
  code = receive.receive(endpoint, in, source, receive_tag, Context::messages);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  code = send.send(endpoint, out, destination, send_tag, Context::messages, Mode::standard);
  if (code != MPI_SUCCESS) {
    receive.give_up();
    return raise(endpoint, code);
  }
  code = send.wait();
  const int received = receive.wait(status);
  return raise(endpoint, code != MPI_SUCCESS ? code : received);
}

/// Sends a packed copy of the buffer, so that the receive may overwrite the buffer at once.
int exchange_in_place(Endpoint& endpoint, const Data& data, int destination, int send_tag, int source, int receive_tag,
                      MPI_Status* status) {
  Operation whole;
  if (const int code = set_buffer(whole, endpoint, data); code != MPI_SUCCESS) return raise(endpoint, code);
  const auto packed = packed_copy(whole);
  if (packed == nullptr) return raise(endpoint, MPI_ERR_NO_MEM);
  return exchange(endpoint, {packed.get(), whole.bytes, MPI_BYTE}, destination, send_tag, data, source, receive_tag,
                  status);
}

/// Looks once for a message that a probe would find, and takes it out of the queue if `takes`. Null if there is none.
Message* look_for(Endpoint& endpoint, int source, int tag, bool takes, Envelope& envelope, MPI_Count& bytes) {
  progress(endpoint);
  const std::lock_guard lock(endpoint.lock);
  Message* message = endpoint.matching.look({source, tag, Context::messages});
  if (message == nullptr) return nullptr;
  envelope = message->envelope;
  bytes = message->bytes;
  if (takes) endpoint.matching.take_out(*message);
  return message;
}

int probe(Endpoint& endpoint, int source, int tag, int* flag, MPI_Message* taken, MPI_Status* status) {
  if (const int code = check_receive(endpoint, source, tag); code != MPI_SUCCESS) return raise(endpoint, code);
  if (source == MPI_PROC_NULL) {
    set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
    if (taken != nullptr) *taken = MPI_MESSAGE_NO_PROC;
    if (flag != nullptr) *flag = 1;
    return MPI_SUCCESS;
  }
  Envelope envelope{};
  MPI_Count bytes = 0;
  Message* found = nullptr;
  Patience patience;
  while ((found = look_for(endpoint, source, tag, taken != nullptr, envelope, bytes)) == nullptr) {
    if (flag != nullptr) {
      *flag = 0;
      return MPI_SUCCESS;
    }
    patience.wait();
  }
  if (flag != nullptr) *flag = 1;
  set_status(status, envelope.source - endpoint.sides.first_remote, envelope.tag, bytes, false);
  return taken == nullptr ? MPI_SUCCESS : raise(endpoint, messages::make(endpoint, found, taken));
}

}  // namespace

#define ENDPOINTS_SENDS(suffix, Count)                                                                                 \
  int Send##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm) {                   \
    return send_and_wait(e, {b, n, t}, to, tag, Mode::standard);                                                       \
  }                                                                                                                    \
  int Ssend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm) {                  \
    return send_and_wait(e, {b, n, t}, to, tag, Mode::synchronous);                                                    \
  }                                                                                                                    \
  int Bsend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm) {                  \
    return send_and_wait(e, {b, n, t}, to, tag, Mode::buffered);                                                       \
  }                                                                                                                    \
  int Rsend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm) {                  \
    return send_and_wait(e, {b, n, t}, to, tag, Mode::standard);                                                       \
  }                                                                                                                    \
  int Isend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm, MPI_Request* r) {  \
    return start_send_request(e, {b, n, t}, to, tag, Mode::standard, r);                                               \
  }                                                                                                                    \
  int Issend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm, MPI_Request* r) { \
    return start_send_request(e, {b, n, t}, to, tag, Mode::synchronous, r);                                            \
  }                                                                                                                    \
  int Ibsend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm, MPI_Request* r) { \
    return start_send_request(e, {b, n, t}, to, tag, Mode::buffered, r);                                               \
  }                                                                                                                    \
  int Irsend##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm, MPI_Request* r) { \
    return start_send_request(e, {b, n, t}, to, tag, Mode::standard, r);                                               \
  }                                                                                                                    \
  int Recv##suffix(Endpoint& e, void* b, Count n, MPI_Datatype t, int from, int tag, MPI_Comm, MPI_Status* s) {        \
    return receive_and_wait(e, {b, n, t}, from, tag, s);                                                               \
  }                                                                                                                    \
  int Irecv##suffix(Endpoint& e, void* b, Count n, MPI_Datatype t, int from, int tag, MPI_Comm, MPI_Request* r) {      \
    return start_receive_request(e, {b, n, t}, from, tag, r);                                                          \
  }                                                                                                                    \
  int Sendrecv##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int send_tag, void* rb, Count rn,  \
                       MPI_Datatype rt, int from, int receive_tag, MPI_Comm, MPI_Status* s) {                          \
    return exchange(e, {b, n, t}, to, send_tag, {rb, rn, rt}, from, receive_tag, s);                                   \
  }                                                                                                                    \
  int Sendrecv_replace##suffix(Endpoint& e, void* b, Count n, MPI_Datatype t, int to, int send_tag, int from,          \
                               int receive_tag, MPI_Comm, MPI_Status* s) {                                             \
    return exchange_in_place(e, {b, n, t}, to, send_tag, from, receive_tag, s);                                        \
  }
ENDPOINTS_SENDS(, int)
#if GAPLESS_DECLARED_Send_c
ENDPOINTS_SENDS(_c, MPI_Count)
#endif
#undef ENDPOINTS_SENDS

int Probe(Endpoint& endpoint, int source, int tag, MPI_Comm, MPI_Status* status) {
  return probe(endpoint, source, tag, nullptr, nullptr, status);
}
int Iprobe(Endpoint& endpoint, int source, int tag, MPI_Comm, int* flag, MPI_Status* status) {
  return probe(endpoint, source, tag, flag, nullptr, status);
}
int Mprobe(Endpoint& endpoint, int source, int tag, MPI_Comm, MPI_Message* message, MPI_Status* status) {
  return probe(endpoint, source, tag, nullptr, message, status);
}
int Improbe(Endpoint& endpoint, int source, int tag, MPI_Comm, int* flag, MPI_Message* message, MPI_Status* status) {
  return probe(endpoint, source, tag, flag, message, status);
}

namespace {

template <class Inner, class Count>
int receive_taken(Inner library, void* memory, Count count, MPI_Datatype datatype, MPI_Message* message,
                  MPI_Status* status) {
  return guarded([&]() -> int {
    const std::shared_ptr<Endpoint> endpoint = messages::endpoint_of(message);
    if (endpoint == nullptr) {
      const InLibrary meanwhile;
      return library(memory, count, datatype, message, status);
    }
    Operation operation;
    operation.receives = true;
    const int code = set_buffer(operation, *endpoint, {memory, count, datatype});
    if (code != MPI_SUCCESS) return raise(*endpoint, code);
    start_matched_receive(operation, messages::take(message));
    drive_until_done(operation);
    endpoint->let_go(1);  // of the message
    set_status(status, operation);
    return raise(*endpoint, operation.code);
  });
}

template <class Inner, class Count>
int start_taken(Inner library, void* memory, Count count, MPI_Datatype datatype, MPI_Message* message,
                MPI_Request* request) {
  return guarded([&]() -> int {
    const std::shared_ptr<Endpoint> endpoint = messages::endpoint_of(message);
    if (endpoint == nullptr) return library(memory, count, datatype, message, request);
    requests::Request* const made = requests::acquire(*endpoint);
    if (made == nullptr) return raise(*endpoint, MPI_ERR_NO_MEM);
    Operation& operation = *made->operation;
    operation.receives = true;
    if (const int code = set_buffer(operation, *endpoint, {memory, count, datatype}); code != MPI_SUCCESS) {
      requests::release_alone(*made);
      return raise(*endpoint, code);
    }
    *request = made->handle;
    start_matched_receive(operation, messages::take(message));
    endpoint->let_go(1);  // of the message; the request keeps it from here on
    return MPI_SUCCESS;
  });
}

}  // namespace

int Mrecv(void* memory, int count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  return receive_taken(inner.Mrecv, memory, count, datatype, message, status);
}
int Imrecv(void* memory, int count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request) {
  return start_taken(inner.Imrecv, memory, count, datatype, message, request);
}
#if GAPLESS_DECLARED_Mrecv_c
int Mrecv_c(void* memory, MPI_Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  return receive_taken(inner.Mrecv_c, memory, count, datatype, message, status);
}
int Imrecv_c(void* memory, MPI_Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request) {
  return start_taken(inner.Imrecv_c, memory, count, datatype, message, request);
}
#endif

}  // namespace gapless::mpi::endpoints::calls

// Blocking messages. A buffer that is ours travels as packed bytes on the program's own communicator and tag, so
// matching, ordering and status are the library's, and the peer need not run gapless.
//
// Each function below is written once for MPI_X and MPI_X_c: `function` is the member of Native that is called in the
// end. After an error the receive buffer is untouched.
#include <optional>
#include <type_traits>

#include "mpi/entry_points.hpp"
#include "mpi/errors.hpp"
#include "mpi/user_buffer.hpp"
#include "mpi/wire_type.hpp"

namespace gapless::mpi {
namespace {

using transfer::Incoming;
using transfer::Outgoing;
using transfer::Result;
using transfer::Scheme;

// One side of a message: what is given to the library in place of the program's buffer, count and datatype.
template <class Message, class Count>
class Side {
 public:
  /// `idle` when the peer is MPI_PROC_NULL: nothing is packed or unpacked.
  Side(const void* memory, Count count, MPI_Datatype datatype, bool idle) noexcept
      : memory_(const_cast<void*>(memory)), count_(count), datatype_(datatype) {
    if (!idle) user_ = identify(memory, count, datatype);
    owner_ = owner_of(user_);
    if (owner_ == Owner::ours) message_.emplace(user_.buffer);
    if (message_ && (message_->scheme() == Scheme::native || must_stay_whole())) message_.reset();
    if (message_) wire_.emplace(message_->wire_size());
  }

  bool packs() const noexcept { return message_.has_value(); }

  /// False if the call must fail, with the error code in `code`.
  bool prepare(const char* function, int& code) noexcept {
    if (owner_ == Owner::unserved) {
      code = unserved_gpu_memory(function, user_.buffer.location.device);
      return false;
    }
    if (!packs()) {
      if (counts_native_messages) record_native(count_, datatype_);
      return true;
    }
    const Result result = wire_->is_usable() ? message_->prepare() : Result::out_of_memory;
    if (result == Result::ok) return true;
    if (user_.is_gpu_memory()) {
      code = gpu_failure(function, result);
      return false;
    }
    // No host memory to pack into: the library has its own way without.
    message_.reset();
    return true;
  }

  void* memory() noexcept {
    return packs() ? const_cast<void*>(static_cast<const void*>(message_->wire_data())) : memory_;
  }
  Count count() const noexcept { return packs() ? wire_->count() : count_; }
  MPI_Datatype datatype() const noexcept { return packs() ? wire_->type() : datatype_; }

  /// Unpacks what arrived. False if the call must fail, with the error code in `code`.
  bool finish(const MPI_Status& status, const char* function, int& code) noexcept {
    if (!packs() || status.MPI_SOURCE == MPI_PROC_NULL) return true;
    MPI_Count received = 0;
    if (native.Get_elements_x(&status, MPI_BYTE, &received) != MPI_SUCCESS || received < 0) return true;
    const Result result = message_->finish(static_cast<std::size_t>(received));
    if (result != Result::ok) code = gpu_failure(function, result);
    return result == Result::ok;
  }

 private:
  bool must_stay_whole() const noexcept {
    constexpr bool sends = std::is_same_v<Message, Outgoing>;
    return sends && !user_.is_gpu_memory() && !may_be_cut(datatype_, message_->wire_size());
  }

  void* memory_;
  Count count_;
  MPI_Datatype datatype_;
  UserBuffer user_;
  Owner owner_ = Owner::library;
  std::optional<Message> message_;
  std::optional<WireType<Count>> wire_;
};

template <class Count>
using Sending = Side<Outgoing, Count>;
template <class Count>
using Receiving = Side<Incoming, Count>;

// The program's status, or one of our own where it wants none: the received size is read from it.
class StatusPlace {
 public:
  explicit StatusPlace(MPI_Status* wanted) noexcept : status_(wanted == MPI_STATUS_IGNORE ? &own_ : wanted) {}
  MPI_Status* get() noexcept { return status_; }

 private:
  MPI_Status own_{};
  MPI_Status* status_;
};

// Cold parts are kept out of line, so that a call that goes straight through is a lookup and a jump.

template <auto function, class Count>
[[gnu::noinline]] int send_slowly(const void* memory, Count count, MPI_Datatype datatype, int destination, int tag,
                                  MPI_Comm communicator) {
  Sending<Count> side(memory, count, datatype, destination == MPI_PROC_NULL);
  int code = MPI_SUCCESS;
  if (!side.prepare(name_of<function>, code)) return raise_on_communicator(communicator, code);
  return (native.*function)(side.memory(), side.count(), side.datatype(), destination, tag, communicator);
}

template <auto function, class Count>
[[gnu::noinline]] int receive_slowly(void* memory, Count count, MPI_Datatype datatype, int source, int tag,
                                     MPI_Comm communicator, MPI_Status* status) {
  Receiving<Count> side(memory, count, datatype, source == MPI_PROC_NULL);
  int code = MPI_SUCCESS;
  if (!side.prepare(name_of<function>, code)) return raise_on_communicator(communicator, code);
  if (!side.packs()) return (native.*function)(memory, count, datatype, source, tag, communicator, status);
  StatusPlace place(status);
  code = (native.*function)(side.memory(), side.count(), side.datatype(), source, tag, communicator, place.get());
  if (code != MPI_SUCCESS || side.finish(*place.get(), name_of<function>, code)) return code;
  return raise_on_communicator(communicator, code);
}

template <auto function, class Count>
[[gnu::noinline]] int receive_matched_slowly(void* memory, Count count, MPI_Datatype datatype, MPI_Message* message,
                                             MPI_Status* status) {
  const bool idle = message == nullptr || *message == MPI_MESSAGE_NO_PROC || *message == MPI_MESSAGE_NULL;
  Receiving<Count> side(memory, count, datatype, idle);
  int code = MPI_SUCCESS;
  if (!side.prepare(name_of<function>, code)) return raise_without_object(code);
  if (!side.packs()) return (native.*function)(memory, count, datatype, message, status);
  StatusPlace place(status);
  code = (native.*function)(side.memory(), side.count(), side.datatype(), message, place.get());
  if (code != MPI_SUCCESS || side.finish(*place.get(), name_of<function>, code)) return code;
  return raise_without_object(code);
}

template <auto function, class Count>
[[gnu::noinline]] int send_receive_slowly(const void* send_memory, Count send_count, MPI_Datatype send_type,
                                          int destination, int send_tag, void* receive_memory, Count receive_count,
                                          MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm communicator,
                                          MPI_Status* status) {
  Sending<Count> out(send_memory, send_count, send_type, destination == MPI_PROC_NULL);
  Receiving<Count> in(receive_memory, receive_count, receive_type, source == MPI_PROC_NULL);
  int code = MPI_SUCCESS;
  if (!out.prepare(name_of<function>, code) || !in.prepare(name_of<function>, code))
    return raise_on_communicator(communicator, code);
  StatusPlace place(status);
  code = (native.*function)(out.memory(), out.count(), out.datatype(), destination, send_tag, in.memory(), in.count(),
                            in.datatype(), source, receive_tag, communicator, in.packs() ? place.get() : status);
  if (code != MPI_SUCCESS || !in.packs() || in.finish(*place.get(), name_of<function>, code)) return code;
  return raise_on_communicator(communicator, code);
}

// Sending and receiving through two wires makes a replacement an exchange: `exchange` is the Sendrecv of the same form.
template <auto function, auto exchange, class Count>
[[gnu::noinline]] int replace_slowly(void* memory, Count count, MPI_Datatype datatype, int destination, int send_tag,
                                     int source, int receive_tag, MPI_Comm communicator, MPI_Status* status) {
  Sending<Count> out(memory, count, datatype, false);
  Receiving<Count> in(memory, count, datatype, false);
  int code = MPI_SUCCESS;
  if (!out.prepare(name_of<function>, code) || !in.prepare(name_of<function>, code))
    return raise_on_communicator(communicator, code);
  if (!out.packs() || !in.packs()) {
    return (native.*function)(memory, count, datatype, destination, send_tag, source, receive_tag, communicator,
                              status);
  }
  StatusPlace place(status);
  code = (native.*exchange)(out.memory(), out.count(), out.datatype(), destination, send_tag, in.memory(), in.count(),
                            in.datatype(), source, receive_tag, communicator, place.get());
  if (code != MPI_SUCCESS || in.finish(*place.get(), name_of<function>, code)) return code;
  return raise_on_communicator(communicator, code);
}

// What the shim calls.

bool is_native_message(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  return goes_straight_through<&TypeRecord::one_is_native_in_message>(memory, count, datatype);
}

template <auto function, class Count>
int send(const void* memory, Count count, MPI_Datatype datatype, int destination, int tag, MPI_Comm communicator) {
  if (is_native_message(memory, count, datatype)) [[likely]] {
    return (native.*function)(memory, count, datatype, destination, tag, communicator);
  }
  return send_slowly<function>(memory, count, datatype, destination, tag, communicator);
}

template <auto function, class Count>
int receive(void* memory, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm communicator,
            MPI_Status* status) {
  if (is_native_message(memory, count, datatype)) [[likely]] {
    return (native.*function)(memory, count, datatype, source, tag, communicator, status);
  }
  return receive_slowly<function>(memory, count, datatype, source, tag, communicator, status);
}

template <auto function, class Count>
int receive_matched(void* memory, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  if (is_native_message(memory, count, datatype)) [[likely]]
    return (native.*function)(memory, count, datatype, message, status);
  return receive_matched_slowly<function>(memory, count, datatype, message, status);
}

template <auto function, class Count>
int send_receive(const void* send_memory, Count send_count, MPI_Datatype send_type, int destination, int send_tag,
                 void* receive_memory, Count receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                 MPI_Comm communicator, MPI_Status* status) {
  if (is_native_message(send_memory, send_count, send_type) &&
      is_native_message(receive_memory, receive_count, receive_type)) [[likely]] {
    return (native.*function)(send_memory, send_count, send_type, destination, send_tag, receive_memory, receive_count,
                              receive_type, source, receive_tag, communicator, status);
  }
  return send_receive_slowly<function>(send_memory, send_count, send_type, destination, send_tag, receive_memory,
                                       receive_count, receive_type, source, receive_tag, communicator, status);
}

template <auto function, auto exchange, class Count>
int replace(void* memory, Count count, MPI_Datatype datatype, int destination, int send_tag, int source,
            int receive_tag, MPI_Comm communicator, MPI_Status* status) {
  if (is_native_message(memory, count, datatype)) [[likely]] {
    return (native.*function)(memory, count, datatype, destination, send_tag, source, receive_tag, communicator,
                              status);
  }
  return replace_slowly<function, exchange>(memory, count, datatype, destination, send_tag, source, receive_tag,
                                            communicator, status);
}

}  // namespace

namespace entry {

// Count is deduced from the library's own declaration on the left.
#define GAPLESS_SAME_SHAPE(shape, name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = shape<&Native::name>;)
#define GAPLESS_BOTH_COUNTS(shape, name) GAPLESS_SAME_SHAPE(shape, name) GAPLESS_SAME_SHAPE(shape, name##_c)

GAPLESS_BOTH_COUNTS(send, Send)
GAPLESS_BOTH_COUNTS(send, Ssend)
GAPLESS_BOTH_COUNTS(send, Bsend)
GAPLESS_BOTH_COUNTS(send, Rsend)
GAPLESS_BOTH_COUNTS(receive, Recv)
GAPLESS_BOTH_COUNTS(receive_matched, Mrecv)
GAPLESS_BOTH_COUNTS(send_receive, Sendrecv)

const decltype(Native::Sendrecv_replace) Sendrecv_replace = replace<&Native::Sendrecv_replace, &Native::Sendrecv>;
GAPLESS_IF_DECLARED(Sendrecv_replace_c, const decltype(Native::Sendrecv_replace_c) Sendrecv_replace_c =
                                            replace<&Native::Sendrecv_replace_c, &Native::Sendrecv_c>;)

}  // namespace entry
}  // namespace gapless::mpi

// Blocking messages.
#include "mpi/calls/blocking_call.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace {

// With two packed buffers a replacement becomes an exchange: `exchange` is the Sendrecv of the same form. A peer that
// leaves its replacement to Open MPI receives a message whole if the message arrives in one piece. Contiguous messages
// do so, and the library sends its own replacements contiguous.
template <class Row, auto exchange, class Count>
[[gnu::noinline]] int replace_slowly(void* memory, Count count, MPI_Datatype datatype, int destination, int send_tag,
                                     int source, int receive_tag, MPI_Comm communicator, MPI_Status* wanted) {
  constexpr auto how = headers::SendBeside::waits_and_replaces;
  const headers::SendArguments<Count> sent{memory, count, datatype, destination, send_tag, communicator};
  const headers::ReceiveArguments<Count> received{memory, count, datatype, source, receive_tag, communicator};
  if (headers::do_threads_probe()) [[unlikely]]
    return headers::exchange_by_request(how, sent, received, wanted);
  int done = MPI_SUCCESS;
  const auto receive = [&](MPI_Message message) { return headers::receive(message, received, wanted); };
  if (headers::receive_stashed(how, sent, received, done, receive)) return done;
  Receiving<Count> in(memory, count, datatype, false, Looks::once_called);
  in.comes_from(communicator, source);
  Sending<Count> out(memory, count, datatype, false);
  const auto raise = [&](int code) { return raise_on_communicator(communicator, code); };
  if (transfer::headers::is_listening() && in.packs()) out.offer(communicator, destination, send_tag, true, false);
  if (library_loses_unaligned_elements && in.packs()) out.send_in_one_piece();
  int code = MPI_SUCCESS;
  if (!out.prepare(Row::name, code) || !in.prepare(Row::name, code)) return raise(code);
  if (in.is_opaque() && (code = in.fill(Row::name)) != MPI_SUCCESS) return raise(code);
  const bool is_native = transfer::headers::is_listening() ? !in.takes_part() : !out.packs() || !in.packs();
  if (is_native) {
    return Row::native_function()(memory, count, datatype, destination, send_tag, source, receive_tag, communicator,
                                  wanted);
  }
  ReceivedStatus status(wanted);
  if (!in.packs()) {
    code = Row::native_function()(in.memory(), in.count(), in.datatype(), destination, send_tag, source, receive_tag,
                                  communicator, status.get());
    return in.finish_call(status, code, Row::name, raise);
  }
  code = (native.*exchange)(out.memory(), out.count(), out.datatype(), destination, send_tag, in.memory(), in.count(),
                            in.datatype(), source, receive_tag, communicator, status.get());
  out.sent();
  return in.finish_call(status, code, Row::name, raise);
}

template <class Row, auto exchange, class Count>
constexpr auto replace = ReplaceCall<Row, replace_slowly<Row, exchange, Count>>::call;

}  // namespace

namespace entry {

#define GAPLESS_BLOCKING(name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = BlockingCall<table::rows::name>::call;)
#define GAPLESS_BLOCKING_BOTH(name) GAPLESS_BLOCKING(name) GAPLESS_BLOCKING(name##_c)

GAPLESS_BLOCKING_BOTH(Send)
GAPLESS_BLOCKING_BOTH(Ssend)
GAPLESS_BLOCKING_BOTH(Bsend)
GAPLESS_BLOCKING_BOTH(Rsend)
GAPLESS_BLOCKING_BOTH(Recv)
GAPLESS_BLOCKING_BOTH(Mrecv)
GAPLESS_BLOCKING_BOTH(Sendrecv)

const decltype(Native::Sendrecv_replace) Sendrecv_replace =
    replace<table::rows::Sendrecv_replace, &Native::Sendrecv, int>;
GAPLESS_IF_DECLARED(Sendrecv_replace_c, const decltype(Native::Sendrecv_replace_c) Sendrecv_replace_c =
                                            replace<table::rows::Sendrecv_replace_c, &Native::Sendrecv_c, MPI_Count>;)

}  // namespace entry
}  // namespace gapless::mpi

// Messages that return a request. The call packs; the call that completes the request unpacks
// (mpi/requests/completion.cpp).
#include "mpi/requests/request_call.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace {

// With two packed buffers a replacement becomes an exchange: `exchange` is the Isendrecv of the same form.
template <class Row, auto exchange, class Count>
[[gnu::noinline]] int replace_slowly(void* memory, Count count, MPI_Datatype datatype, int destination, int send_tag,
                                     int source, int receive_tag, MPI_Comm communicator, MPI_Request* request) {
  const auto call_library = [&] {
    return Row::native_function()(memory, count, datatype, destination, send_tag, source, receive_tag, communicator,
                                  request);
  };
  if (request == nullptr) return call_library();
  const headers::SendArguments<Count> sent{memory, count, datatype, destination, send_tag, communicator};
  const headers::ReceiveArguments<Count> received{memory, count, datatype, source, receive_tag, communicator};
  const headers::Posting posting([&] { return headers::is_refused_beside_probes(received); });
  int done = MPI_SUCCESS;
  const auto receive = [&](MPI_Message message) { return headers::begin_to_receive(message, received, request); };
  if (headers::receive_stashed(headers::SendBeside::returns_at_once, sent, received, done, receive)) return done;
  requests::Pending* pending = requests::acquire();
  if (pending == nullptr) return raise_on_communicator(communicator, MPI_ERR_NO_MEM);
  auto& both = pending->make<requests::Exchange<Count>>(memory, count, datatype, destination == MPI_PROC_NULL, memory,
                                                        count, datatype, source == MPI_PROC_NULL);
  both.in.comes_from(communicator, source);
  if (both.in.packs()) both.out.offer(communicator, destination, send_tag, true, false);
  int code = MPI_SUCCESS;
  const bool fails =
      !both.prepare(Row::name, code) || (both.in.is_opaque() && (code = both.in.fill(Row::name)) != MPI_SUCCESS);
  if (fails || !both.takes_part()) {
    requests::release(pending);
    return fails ? raise_on_communicator(communicator, code) : call_library();
  }
  pending->function = Row::name;
  pending->error_object = ErrorObject::of_communicator(communicator);
  const bool has_two_buffers = both.out.packs() || both.in.packs();
  if (!has_two_buffers) {
    return place_under_request(pending, request, [&] {
      return Row::native_function()(both.in.memory(), both.in.count(), both.in.datatype(), destination, send_tag,
                                    source, receive_tag, communicator, request);
    });
  }
  return place_under_request(pending, request, [&] {
    const int begun = (native.*exchange)(both.out.memory(), both.out.count(), both.out.datatype(), destination,
                                         send_tag, both.in.memory(), both.in.count(), both.in.datatype(), source,
                                         receive_tag, communicator, request);
    if (begun == MPI_SUCCESS) both.out.sent();
    return begun;
  });
}

template <class Row, auto exchange, class Count>
constexpr auto replace = ReplaceCall<Row, replace_slowly<Row, exchange, Count>>::call;

}  // namespace

namespace entry {

#define GAPLESS_NONBLOCKING(name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = NonblockingCall<table::rows::name>::call;)
#define GAPLESS_NONBLOCKING_BOTH(name) GAPLESS_NONBLOCKING(name) GAPLESS_NONBLOCKING(name##_c)

GAPLESS_NONBLOCKING_BOTH(Isend)
GAPLESS_NONBLOCKING_BOTH(Issend)
GAPLESS_NONBLOCKING_BOTH(Irsend)
GAPLESS_NONBLOCKING_BOTH(Ibsend)
GAPLESS_NONBLOCKING_BOTH(Irecv)
GAPLESS_NONBLOCKING_BOTH(Imrecv)
GAPLESS_NONBLOCKING_BOTH(Isendrecv)

GAPLESS_IF_DECLARED(Isendrecv_replace, const decltype(Native::Isendrecv_replace) Isendrecv_replace =
                                           replace<table::rows::Isendrecv_replace, &Native::Isendrecv, int>;)
GAPLESS_IF_DECLARED(Isendrecv_replace_c,
                    const decltype(Native::Isendrecv_replace_c) Isendrecv_replace_c =
                        replace<table::rows::Isendrecv_replace_c, &Native::Isendrecv_c, MPI_Count>;)

}  // namespace entry
}  // namespace gapless::mpi

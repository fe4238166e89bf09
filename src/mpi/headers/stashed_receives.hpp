// Receives of stashed messages: the program's call becomes one that receives a matched message, with a send beside that
// receive where the program's call sends as well.
#pragma once

#include <cstdint>
#include <type_traits>

#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/arguments.hpp"
#include "mpi/headers/copied_send.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/new_request.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/roles.hpp"

namespace gapless::mpi::headers {

/// Does the library refuse such a receive beside probes of other threads, so far as is easily told?
template <class Count>
bool is_refused_beside_probes(const ReceiveArguments<Count>& in) noexcept {
  return is_refused_among_threads(in.source, in.tag, in.communicator) || is_refused(in.memory, in.count, in.datatype);
}

template <class Count>
int begin_to_receive(MPI_Message message, const ReceiveArguments<Count>& in, MPI_Request* request) noexcept {
  if constexpr (std::is_same_v<Count, int>) {
    return entry::Imrecv(in.memory, in.count, in.datatype, &message, request);
  } else {
    GAPLESS_IF_DECLARED(Imrecv_c, return entry::Imrecv_c(in.memory, in.count, in.datatype, &message, request);)
  }
}

/// Completes the request of a receive from that communicator, whose error handler is told of errors.
inline int end_receive(MPI_Request& request, MPI_Comm communicator, MPI_Status* status) noexcept {
  const std::uint64_t raised_before = errors_raised();
  const int code = entry::Wait(&request, status);
  const bool is_told =
      library_names_communicators_of_matched_messages || code == raised_already || errors_raised() != raised_before;
  if (code != MPI_SUCCESS && !is_told) raise_on_communicator(communicator, code);
  return code;
}

/// As MPI_Mrecv, but errors go to the communicator's handler. (Those of MPICH's MPI_Mrecv go to the handler of
/// MPI_COMM_WORLD or MPI_COMM_SELF.)
template <class Count>
int receive(MPI_Message message, const ReceiveArguments<Count>& in, MPI_Status* status) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = begin_to_receive(message, in, &request);
  return code == MPI_SUCCESS ? end_receive(request, in.communicator, status) : code;
}

template <class Count>
int begin_to_send(const SendArguments<Count>& out, MPI_Request* request) noexcept {
  const auto& [memory, count, datatype, destination, tag, communicator] = out;
  if constexpr (std::is_same_v<Count, int>) {
    return entry::Isend(memory, count, datatype, destination, tag, communicator, request);
  } else {
    GAPLESS_IF_DECLARED(Isend_c,
                        return entry::Isend_c(memory, count, datatype, destination, tag, communicator, request);)
  }
}

/// Of a call that receives a stashed message and sends as well: does the call wait, and does the received message
/// replace the sent one?
enum class SendBeside : std::uint8_t { waits, waits_and_replaces, returns_at_once };

/// Sends while `receive()` receives. MPI_SUCCESS, or an error that has been raised.
template <class Count, class Receive>
int send_beside(SendBeside how, const SendArguments<Count>& out, Receive receive) noexcept {
  CopiedSend copied;
  MPI_Request sending = MPI_REQUEST_NULL;
  int code = how == SendBeside::waits ? begin_to_send(out, &sending) : copied.begin(out.with_large_count());
  // After an error whose handler has returned, MPICH returns MPI_SUCCESS, and has made no request.
  const bool is_sent = how == SendBeside::waits ? sending != MPI_REQUEST_NULL : copied.has_begun();
  if (code != MPI_SUCCESS || !is_sent) return code;
  code = receive();
  int sent_code = MPI_SUCCESS;
  if (how == SendBeside::waits) sent_code = entry::Wait(&sending, MPI_STATUS_IGNORE);
  if (how == SendBeside::waits_and_replaces) sent_code = copied.wait();
  if (how == SendBeside::returns_at_once) copied.leave();
  return code == MPI_SUCCESS ? sent_code : code;
}

/// If a message that the arguments match is stashed, receives it: `code` is what `receive(message)` returns. Else
/// false.
template <class Count, class Receive>
bool receive_stashed(const ReceiveArguments<Count>& in, int& code, Receive receive) noexcept {
  // A mistake is the library's business, and leaves the message in the stash.
  if (is_refused(in.memory, in.count, in.datatype)) return false;
  auto matched = take_stashed(in.source, in.tag, in.communicator);
  if (!matched) return false;
  matched->was_stashed = true;
  give(*matched);
  code = receive(matched->handle);
  stash_again(*matched);
  return true;
}

/// The same for a call that sends as well.
template <class Count, class Receive>
bool receive_stashed(SendBeside how, const SendArguments<Count>& out, const ReceiveArguments<Count>& in, int& code,
                     Receive receive) noexcept {
  if (out.destination != MPI_PROC_NULL && is_refused(out.memory, out.count, out.datatype)) return false;
  return receive_stashed(in, code,
                         [&](MPI_Message message) { return send_beside(how, out, [&] { return receive(message); }); });
}

// Where threads probe, a blocking receive becomes a receive under a request (posting.hpp).

/// MPI_Recv.
template <class Count>
int receive_by_request(const ReceiveArguments<Count>& in, MPI_Status* status) noexcept {
  const auto& [memory, count, datatype, source, tag, communicator] = in;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_ERR_INTERN;
  if constexpr (std::is_same_v<Count, int>) {
    code = entry::Irecv(memory, count, datatype, source, tag, communicator, &request);
  } else {
    GAPLESS_IF_DECLARED(Irecv_c, code = entry::Irecv_c(memory, count, datatype, source, tag, communicator, &request);)
  }
  return code == MPI_SUCCESS ? end_receive(request, communicator, status) : code;
}

/// Does the library accept such a receive? If not, `code` is what it returns, and the error has been raised. A mistake
/// has to be told before the same call has sent anything.
template <class Count>
bool is_accepted(const ReceiveArguments<Count>& in, int& code) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto make = [&] {
    if constexpr (std::is_same_v<Count, int>) {
      return native.Recv_init(in.memory, in.count, in.datatype, in.source, in.tag, in.communicator, &request);
    } else {
      GAPLESS_IF_DECLARED(Recv_init_c, return native.Recv_init_c(in.memory, in.count, in.datatype, in.source, in.tag,
                                                                 in.communicator, &request);)
    }
  };
  if (!requests::call_makes_request(&request, code, make)) return false;
  native.Request_free(&request);
  return true;
}

/// MPI_Sendrecv, or by `how` MPI_Sendrecv_replace.
template <class Count>
int exchange_by_request(SendBeside how, const SendArguments<Count>& out, const ReceiveArguments<Count>& in,
                        MPI_Status* status) noexcept {
  int code = MPI_SUCCESS;
  if (!is_accepted(in, code)) return code;
  return send_beside(how, out, [&] { return receive_by_request(in, status); });
}

}  // namespace gapless::mpi::headers

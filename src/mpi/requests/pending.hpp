// A nonblocking message that gapless serves. The program's handle is the library's own request; when the library has
// completed the request, gapless has something left to do: unpack what arrived, or let go of a packed buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "mpi/calls/sides/receiving.hpp"
#include "mpi/calls/sides/sending.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/partitioned/partitions.hpp"
#include "mpi/requests/work.hpp"
#include "mpi/table/library_traits.hpp"

namespace gapless::mpi::requests {

/// Both sides of a message that is exchanged under one request.
template <class Count>
class Exchange {
 public:
  Exchange(const void* sent, Count sent_count, MPI_Datatype sent_type, bool sends_to_nobody, const void* received,
           Count received_count, MPI_Datatype received_type, bool receives_from_nobody) noexcept
      : out(sent, sent_count, sent_type, sends_to_nobody),
        in(received, received_count, received_type, receives_from_nobody) {
    if constexpr (!library_gives_statuses_of_exchanges) in.expect_no_status();
  }

  bool takes_part() const noexcept { return out.takes_part() || in.takes_part(); }
  bool prepare(const char* function, int& code) noexcept {
    if (!out.prepare(function, code) || !in.prepare(function, code)) return false;
    // Nobody tells how many bytes arrive. So the buffer is filled with what the memory holds, and is unpacked as a
    // whole.
    if (!library_gives_statuses_of_exchanges && (in.packs() || in.is_opaque())) code = in.fill(function);
    return code == MPI_SUCCESS;
  }
  void weigh_request() noexcept {
    out.weigh_request();
    in.weigh_request();
  }
  int unpack_in(transfer::Batch& batch, ReceivedStatus& status, const char* function) noexcept {
    if constexpr (!library_gives_statuses_of_exchanges) return in.unpack_whole(function);
    return in.unpack_in(batch, status, function);
  }

  Sending<Count> out;
  Receiving<Count> in;
};

class Pending {
 public:
  template <class Side, class... Arguments>
  Side& make(Arguments&&... arguments) noexcept {
    return side_.template emplace<Side>(std::forward<Arguments>(arguments)...);
  }
  /// Lets go of packed buffers: from now on nothing is pending here.
  void clear() noexcept {
    if (header_request != MPI_REQUEST_NULL) native.Request_free(&header_request);
    side_.emplace<std::monostate>();
    error_object = {};
    matched_status_.reset();
    outcome_ = MPI_SUCCESS;
    true_bytes_.reset();
  }

  /// Null unless the message is partitioned.
  Partitions* partitions() noexcept {
    auto* message = std::get_if<std::unique_ptr<Partitions>>(&side_);
    return message != nullptr ? message->get() : nullptr;
  }
  /// Does this side receive a message, so that something may be unpacked at the end?
  bool receives() noexcept;
  /// Is this a collective, file or one-sided call, and no message?
  bool is_work() const noexcept { return std::holds_alternative<std::unique_ptr<Work>>(side_); }
  /// Is this a receive into host memory that takes a while to unpack, and that is complete when its request is?
  bool is_unpacked_early() noexcept;
  /// The library has completed the request with that status: puts the unpacking of a message that arrived into the
  /// batch. To be followed by the batch's run and batch_has_run(), which hands the batch's result on to finish().
  void unpack_in(transfer::Batch& batch, ReceivedStatus& status) noexcept;
  void batch_has_run(transfer::Result result) noexcept;
  /// Unpacks the message unless that is done, and gives the program its status. MPI_SUCCESS, or the error that is to be
  /// raised. Calls that complete nothing may come here several times for one message.
  int finish(ReceivedStatus& status) noexcept;
  /// The library has completed the request with an error: gives the program its status, and the partitions that have
  /// arrived.
  void fail(ReceivedStatus& status) noexcept;
  /// The library has told of an error, and raised it: nothing is unpacked.
  void note_failure() noexcept;
  /// For a persistent request that is not started, or has ended in an error: nothing is unpacked until the next start.
  void stop() noexcept;
  /// Does the library's status say whether anything has arrived? The status of partitions or of work does not.
  bool has_own_status() noexcept { return !is_work() && partitions() == nullptr; }
  /// A call has completed the persistent request: forgets how the message ended.
  void forget_outcome() noexcept;
  /// Is the message still on its way, though the library takes the request for complete?
  bool is_under_way() noexcept;
  /// Of a persistent message, the request that the library completes: where a probe has matched the message, that of
  /// its receive, while the persistent request is inactive.
  MPI_Request request_of_library() const noexcept { return is_being_matched() ? matched_request_ : handle; }
  bool is_being_matched() const noexcept { return matched_request_ != MPI_REQUEST_NULL; }
  /// The library has completed request_of_library(), and given its status.
  void note_matched() noexcept { matched_request_ = MPI_REQUEST_NULL; }
  /// Is this a send in whose place a header has gone?
  bool is_by_header() noexcept;
  /// Makes the request under which the headers of a persistent send go, if its messages may go by header.
  template <class Side>
  void prepare_headers(Side& side, MPI_Comm communicator, int destination, int message_tag) noexcept {
    if (!side.may_be_offered()) return;
    tag = message_tag;
    peer = headers::find_peer(communicator, destination);
    static_cast<void>(headers::listener_of(peer, side.speaks()));  // calls for the peer's attention
    const auto header = side.header_arguments(peer.rank);
    if (!header) return;
    const int code = native.Send_init(header->memory, header->count, header->datatype, destination, message_tag,
                                      communicator, &header_request);
    if (code != MPI_SUCCESS) header_request = MPI_REQUEST_NULL;
  }
  /// Is it worth trying whether the library alone is sooner with this message?
  bool may_be_tried() noexcept;
  /// Sends the header, if start_in() has offered the persistent send; `code` is the library's. False: there is no
  /// header.
  bool start_header(int& code) noexcept;
  /// Cancels a receive that is under way in the library.
  void cancel_receive() noexcept;
  /// Ends the message's use of the program's memory, without waiting for a receiver that has not come.
  void complete_alone() noexcept;
  /// For a start of the persistent request: puts the packing of its message into the batch. To be followed by the
  /// batch's run and started(), which returns MPI_SUCCESS, or the error that is to be raised.
  void start_in(transfer::Batch& batch) noexcept;
  int started(transfer::Result result) noexcept;
  /// Packs the message after a batch that has failed. MPI_SUCCESS, or the error.
  int pack_alone() noexcept;
  /// Declares the request complete with `code`, whatever the library says: because gapless has failed, or because the
  /// library has called the request complete already.
  void settle(int code) noexcept;

  int raise(int code) const noexcept { return raise_on(error_object, code); }

  /// Starts the persistent receive on a matched message, under a request of the library's own for this one start.
  /// MPI_SUCCESS, or the library's error.
  int start_matched(const headers::Matched& matched) noexcept;

  /// Of a persistent message with two requests, the one that the last start has started. May be called on either: an
  /// error handler that leaves a call by longjmp may leave the program with the other request's handle.
  Pending* in_use() noexcept {
    Pending* const own = programs_own();
    return own->goes_as_native ? own->as_native : own;
  }
  /// The message whose handle the program has: `of_program` if there is one, else this message.
  Pending* programs_own() noexcept { return of_program != nullptr ? of_program : this; }

  MPI_Request handle{};        ///< the key
  const char* function = "";   ///< that started it, for error texts
  ErrorObject error_object;    ///< whose handler is called
  int source = 0, tag = 0;     ///< of a persistent message
  bool is_persistent = false;  ///< the complete request stays, and may be started again
  /// The library's request is persistent and the program's is not: gapless frees the request when it is complete.
  bool frees_request = false;
  headers::Peer peer;                             ///< of a persistent send that may go by header
  MPI_Request header_request = MPI_REQUEST_NULL;  ///< for the headers of a persistent send; persistent, too
  Pending* as_native = nullptr;   ///< the same persistent message, left to the library; null where that is not tried
  bool goes_as_native = false;    ///< is `as_native` in use since the last start?
  bool is_started = false;        ///< a persistent message that no call has completed since
  Pending* of_program = nullptr;  ///< of an `as_native`: the message whose handle the program has
  std::uint64_t kind = 0;         ///< of a message that is tried: tells kinds apart
  bool is_settled = false;        ///< complete, though the library takes the request for inactive
  bool is_claimed = false;        ///< a call is completing the request
  /// Among several threads: the one whose call has claimed the message, which no other call may look at meanwhile; else
  /// null.
  const void* claiming_thread = nullptr;
  bool needs_no_unpacking = false;  ///< is unpacked already, or has nothing to unpack
  bool is_told = false;             ///< a handler has been called for the message's error
  Pending* next = nullptr;          ///< in its list

 private:
  /// Is that the status of a message that has arrived?
  bool has_arrived(const ReceivedStatus& status) noexcept;
  // Calls visit(side) if the side is one of those.
  template <template <class> class Side, class Visit>
  void visit(Visit visit) noexcept;

  /// Waits until the library has sent the header, which does not wait for the receiver: the bytes are few.
  void complete_header() noexcept;
  /// Waits for the matched message. False where the library has failed to receive it.
  bool complete_matched() noexcept;

  bool is_header_under_way_ = false;
  MPI_Request matched_request_ = MPI_REQUEST_NULL;  ///< of a message that a probe has matched, while it is received
  std::optional<MPI_Status> matched_status_;        ///< of the message, once it has been received
  int start_code_ = MPI_SUCCESS;
  int outcome_ = MPI_SUCCESS;              ///< how the message ended; where unpacking need not be done, why
  std::optional<std::size_t> true_bytes_;  ///< bytes, where the library says otherwise

  std::variant<std::monostate, Sending<int>, Receiving<int>, Exchange<int>, Sending<MPI_Count>, Receiving<MPI_Count>,
               Exchange<MPI_Count>, std::unique_ptr<Partitions>, std::unique_ptr<Work>>
      side_;
};

}  // namespace gapless::mpi::requests

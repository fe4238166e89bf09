// The side of a point-to-point call that sends. The message goes as the program gave it, as packed bytes, or as a
// header by which the receiver fetches the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "model/model.hpp"
#include "mpi/calls/sides/side.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/library_traits.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/corrected_send.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/headers/offers.hpp"

namespace gapless::mpi {

template <class Count>
class Sending : public Side<Count> {
  using Base = Side<Count>;
  using Base::described_size, Base::user_, Base::owner_, Base::message_, Base::packed_type_;

 public:
  using Base::packs;

  /// `idle`: the peer is MPI_PROC_NULL, and nothing is packed. `locator`: the one that calls share
  /// (mpi/requests/deferred.hpp), or null.
  Sending(const void* memory, Count count, MPI_Datatype datatype, bool idle,
          device::Locator* locator = nullptr) noexcept
      : Base(memory, count, datatype) {
    if (idle) return;
    this->look_at_arguments(Analysis::when_it_pays, locator);
    if (owner_ != Owner::ours) return;
    message_.emplace(user_.buffer, side);
    drop_if_native();
  }

  /// Is there more to do than the library's call?
  bool takes_part() const noexcept { return packs() || offer_.has_value(); }

  /// Leaves a message that gets a request to the library where packing gains less than the request costs. To be called
  /// before offer() and prepare().
  void weigh_request() noexcept {
    gets_request_ = true;
    const bool is_packed = message_ && message_->scheme() == transfer::Scheme::packed;
    if (is_packed && !transfer::is_worth_a_request(user_.buffer)) message_.reset();
  }

  /// Has the message packed together with others. To be called after offer(). Precondition: may_join().
  void join_others() noexcept { this->join(side); }
  /// Does a GPU pack the message, together with others if there are others?
  bool is_gathered(std::size_t most_bytes) const noexcept { return user_.is_gpu_memory() && may_wait(most_bytes); }

  /// Has a header go in the message's place, if a header is sooner, the peer listens, and slots or segments are free
  /// now. `whole`: all bytes are packed before the library's call, which waits for the peer. `may_stay`: the program's
  /// memory may be read until complete() or complete_alone(). `timed`: where the send's time is kept; null unless the
  /// call is blocking and only sends. `later`: how much work may be done later, together with other messages.
  void offer(MPI_Comm communicator, int destination, int tag, bool whole, bool may_stay,
             std::optional<transfer::CorrectedSend>* timed = nullptr, transfer::headers::Later later = {}) noexcept {
    const bool is_on_host = !user_.is_gpu_memory();
    if (is_on_host && may_stay && offer_to_gpu(communicator, destination)) return go_by_header(whole);
    if (owner_ != Owner::ours) return;
    const bool may_take_fabric = transfer::goes_by_fabric(user_.buffer);
    const bool may_take_header =
        is_on_host ? transfer::goes_by_header(user_.buffer, gets_request_) : transfer::may_go_direct(user_.buffer);
    if (!may_take_header && !may_take_fabric) return;
    const headers::Listener listener = headers::find_listener(communicator, destination, speaks());
    if (may_take_fabric && offer_by_fabric(listener, may_stay)) return go_by_header(false);
    if (!may_take_header || listener.inbox == nullptr || listener.inbox->is_remote()) return;
    if (timed != nullptr) {
      timed->emplace(user_.buffer, is_on_host ? transfer::header_scheme(user_.buffer) : transfer::Scheme::direct);
    }
    if (offer_in_node(listener, tag, may_stay, later)) {
      if (timed != nullptr && !is_on_host && transfer::report_wanted()) (*timed)->expect(offer_->predicted_ns());
      return go_by_header(whole);
    }
    if (timed != nullptr) timed->reset();
  }
  headers::Speaks speaks() const noexcept {
    return user_.is_gpu_memory() ? headers::Speaks::to_itself_too : headers::Speaks::to_others;
  }
  /// May the messages of a persistent send go by header, each from its start on?
  bool may_be_offered() const noexcept {
    if (owner_ != Owner::ours) return false;
    return user_.is_gpu_memory() ? transfer::goes_direct(user_.buffer, model::Pair::peer_gpu)
                                 : transfer::goes_by_header(user_.buffer, true);
  }
  /// What the library is given in the place of a persistent send's messages that go by header.
  struct HeaderArguments {
    const void* memory;
    int count;
    MPI_Datatype datatype;
  };
  /// The same for all messages of a persistent send to that rank of MPI_COMM_WORLD. Nothing where the library makes no
  /// datatype for them.
  std::optional<HeaderArguments> header_arguments(int rank) noexcept {
    offer_.emplace();
    std::optional<HeaderArguments> arguments;
    if (split_header(rank)) arguments = {memory(), static_cast<int>(count()), datatype()};
    offer_.reset();
    return arguments;
  }
  /// Offers one message of a persistent send; GPU memory is packed by pack_in(). False where slots or segments are not
  /// free now: the message goes as packed bytes.
  bool offer_started(const headers::Listener& listener, int tag) noexcept {
    constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
    return listener.inbox != nullptr && offer_in_node(listener, tag, true, {any, any});
  }
  /// To be called when the message that offer_started() has offered is complete, and for a message whose header does
  /// not leave: what is offered is withdrawn.
  void forget_offer() noexcept { offer_.reset(); }
  /// To be called when the library has taken the header that offer() has put in the message's place. Packs what is not
  /// packed yet, while the header is on its way.
  void sent() noexcept {
    if (offer_) offer_->hand_over();
  }
  /// Does a header go in the message's place?
  bool is_by_header() const noexcept { return offer_.has_value(); }
  /// Does the message need its memory beyond the library's call?
  bool goes_on() const noexcept { return offer_ && offer_->goes_on(); }
  bool is_under_way() noexcept { return goes_on() && offer_->is_under_way(); }
  /// Waits until the message does not need its memory any more. MPI_SUCCESS, or the error that is to be raised. The
  /// library makes progress meanwhile, because the receiver may wait for another message of this process.
  int complete(const char* function) noexcept {
    runtime::make_progress_until([this] { return !is_under_way(); });
    const transfer::Result result = goes_on() ? offer_->wait() : transfer::Result::ok;
    return result == transfer::Result::ok ? MPI_SUCCESS : transfer_failure(function, result);
  }
  /// Ends the message's need of its memory without waiting for the receiver: copies a message that nobody has fetched.
  /// complete() tells the result.
  void complete_alone() noexcept {
    if (goes_on()) static_cast<void>(offer_->complete_alone());
  }

  /// Chooses the scheme of GPU memory by the times of earlier sends as well, and times this send. Leaves a long message
  /// in host memory to the library where new memory would cost too much. Does nothing for a message that goes by
  /// header. For blocking sends; to be called before prepare().
  void correct(std::optional<transfer::CorrectedSend>& call, MPI_Comm communicator, int destination) noexcept {
    weigh_memory();
    if (call || owner_ != Owner::ours) return;
    if (user_.is_gpu_memory()) return choose_by_times(call, communicator, destination);
    const bool is_tried = transfer::host_way() == transfer::HostWay::native;
    if (packs() || is_tried) call.emplace(user_.buffer, packs() ? message_->scheme() : transfer::Scheme::native);
  }

  /// Sends the message as contiguous packed bytes, even if another way is sooner, if such bytes arrive in one piece. A
  /// message that goes by header keeps its header.
  void send_in_one_piece() noexcept {
    if (owner_ != Owner::ours || offer_ || !is_in_one_piece_if_contiguous(described_size())) return;
    may_split_ = false;
    if (!packs()) pack_by(transfer::Scheme::packed);
  }

  /// Packs. False if the call must fail, with the error code in `code`.
  bool prepare(const char* function, int& code) noexcept {
    weigh_memory();
    if (!prepare_by(start_and_wait, function, code)) return false;
    if (!offer_) this->count_if_native(side);
    split();
    return true;
  }
  /// May packing wait, to be done together with the packing of other messages?
  bool may_wait(std::size_t most_bytes) const noexcept {
    if (offer_) return offer_->is_to_be_prepared();
    return packs() && message_->joins_batches() && message_->packed_size() <= most_bytes;
  }
  std::size_t packed_size() const noexcept { return offer_ ? offer_->bytes_to_pack() : message_->packed_size(); }
  /// Takes the place of prepare() for a message that is packed later, once or with each start.
  bool reserve(const char* function, int& code) noexcept { return prepare_by(reserve_memory, function, code); }
  /// Packs what the memory holds now, in a batch with other messages. Does nothing for a message that lies in the
  /// peer's slots already, or that goes to the library as the program gave it. Precondition: reserve() was true.
  void pack_in(transfer::Batch& batch) noexcept {
    if (offer_ && offer_->is_to_be_prepared()) return offer_->pack_in(batch);
    if (!offer_ && packs()) message_->start_in(batch);
  }
  /// To be called when the batch has run, and the message leaves.
  void note_packed() noexcept {
    split();
    sent();
  }
  /// Packs this message alone, and waits for the packing.
  transfer::Result pack_alone() noexcept {
    const transfer::Result result = offer_ ? offer_->pack_alone() : start_and_wait(*message_);
    if (result == transfer::Result::ok) note_packed();
    return result;
  }

  void* memory() noexcept { return offer_ ? &offer_->header() : Base::memory(); }
  Count count() const noexcept {
    if (!offer_) return Base::count();
    return header_type_ ? header_type_->count() : static_cast<Count>(transfer::headers::Header::size);
  }
  MPI_Datatype datatype() const noexcept {
    if (!offer_) return Base::datatype();
    return header_type_ ? header_type_->handle() : MPI_BYTE;
  }

 private:
  /// Offers the message by the fabric, to a peer that listens. If that fails, the message goes as without a fabric.
  bool offer_by_fabric(const headers::Listener& listener, bool may_stay) noexcept {
    if (listener.inbox != nullptr && may_stay && offer_.emplace().secure_fabric(user_.buffer, *listener.inbox) &&
        split_header(listener.inbox->speaker().rank))
      return true;
    offer_.reset();
    const bool is_on_host = !user_.is_gpu_memory();
    if (is_on_host && transfer::choose_without_fabric(user_.buffer, side) == transfer::Scheme::native) message_.reset();
    return false;
  }
  bool offer_in_node(const headers::Listener& listener, int tag, bool may_stay,
                     transfer::headers::Later later) noexcept {
    const transfer::headers::Envelope envelope{listener.communicator, tag};
    if (offer_.emplace().secure(user_.buffer, *listener.inbox, envelope, may_stay, later) &&
        split_header(listener.inbox->speaker().rank))
      return true;
    offer_.reset();
    return false;
  }
  /// Has the library tell of a receive that is too short for the header, also where the header goes to this process
  /// itself: `rank` is the peer's. False where the library makes no datatype for that.
  bool split_header(int rank) noexcept {
    if (!library_overlooks_truncation_by_itself || rank != transfer::headers::own_rank()) return true;
    if (!header_type_) header_type_.emplace(transfer::headers::Header::size, side, false);
    header_type_->split(&offer_->header());
    return header_type_->is_usable();
  }

  static constexpr transfer::Side side = transfer::Side::sender;

  /// Has the offer go, in place of packed bytes.
  void go_by_header(bool whole) noexcept {
    if (whole) offer_->pack();
    packed_type_.reset();
    message_.reset();
  }

  /// Offers a long message in host memory, contiguous or not, to a peer whose last long message has gone into GPU
  /// memory.
  bool offer_to_gpu(MPI_Comm communicator, int destination) noexcept {
    if (!user_.is_described() || !transfer::may_go_direct_from_host(user_.buffer)) return false;
    const headers::Peer peer = headers::find_peer(communicator, destination);
    if (peer.rank < 0) return false;
    const transfer::headers::Inbox* const inbox = transfer::headers::find_inbox(peer.rank);
    const bool takes_on_gpu =
        inbox != nullptr && !inbox->is_remote() && inbox->head().takes_long_on_gpu.load(std::memory_order_relaxed);
    if (!takes_on_gpu) return false;
    const headers::Listener listener = headers::listener_of(peer, headers::Speaks::to_others);
    if (listener.inbox != nullptr && offer_.emplace().secure_from_host(user_.buffer, *listener.inbox)) return true;
    offer_.reset();
    return false;
  }

  void pack_by(transfer::Scheme scheme) noexcept {
    message_.emplace(user_.buffer, side, scheme);
    drop_if_native();
  }
  void drop_if_native() noexcept {
    if (message_->scheme() == transfer::Scheme::native || must_stay_whole()) message_.reset();
  }
  void choose_by_times(std::optional<transfer::CorrectedSend>& call, MPI_Comm communicator, int destination) noexcept {
    if (!packs()) return;
    const auto peer = static_cast<std::uint64_t>(number_of(communicator)) << 16;
    call.emplace(user_.buffer, message_->scheme(), peer ^ static_cast<std::uint64_t>(destination));
    if (call->scheme() != message_->scheme()) pack_by(call->scheme());
  }
  /// Would the library cut the packed bytes where the receiver cannot put them together?
  bool must_stay_whole() const noexcept {
    if (user_.is_gpu_memory()) return false;
    return would_lose_elements(message_->packed_size(), *user_.buffer.type);
  }

  /// Leaves a long message to the library while new memory for its packed bytes costs more than packing gains.
  void weigh_memory() noexcept {
    if (packs() && !offer_ && !message_->takes_memory_if_worth_it()) message_.reset();
  }

  template <class Prepare>
  bool prepare_by(Prepare prepare, const char* function, int& code) noexcept {
    if (!this->is_served(function, code)) return false;
    if (offer_) return true;
    const auto may_be_native = [] { return true; };
    return this->prepare_packed(prepare, side, may_split_, may_be_native, function, code);
  }
  void split() noexcept {
    if (packs() && !offer_) packed_type_->split(memory());
  }

  std::optional<transfer::headers::Offers> offer_;
  std::optional<PackedType<Count>> header_type_;  ///< of a header that is split
  bool may_split_ = true;                         ///< packed bytes, as packed_type.hpp has them
  bool gets_request_ = false;
};

}  // namespace gapless::mpi

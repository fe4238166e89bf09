// One side of a point-to-point call: the memory, count and datatype that the library is given in place of the
// program's.
//
// A side is made from the call's arguments and decides what the library gets:
//   the program's own buffer     the library does the message best. A receive of that kind may still have to look for a
//                                header: where the message lies (contiguous), or in its blocks (scattered)
//   packed bytes                 `message_` packs before the library's call, or unpacks after it
//   a header                     of a send: `offer_` says by which ways the receiver fetches the message
//   bytes                        of a receive into an opaque datatype: the library unpacks them afterwards
// A send goes: constructor, [weigh_request], offer, [correct], prepare, the library's call, sent. A receive goes:
// constructor, [weigh_request], prepare, the library's call, finish_call; or unpack_in and has_unpacked, where several
// messages are completed by one batch.
#pragma once

#include <sched.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "layout/datatype/datatype.hpp"
#include "model/model.hpp"
#include "mpi/calls/by_library.hpp"
#include "mpi/calls/packed_type.hpp"
#include "mpi/calls/received_status.hpp"
#include "mpi/calls/scattered.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/corrected_send.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/headers/fetch.hpp"
#include "transfer/headers/introductions.hpp"
#include "transfer/headers/offers.hpp"
#include "transfer/operation.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi {

/// The code for a message that is too long where the error handler must not be called again: the library has called it
/// already, and MPICH returns MPI_SUCCESS once the handler has returned.
inline constexpr int raised_already = MPI_ERR_TRUNCATE;

/// When does a receive look whether a header has come? `once_called` is for receives that may be the library's alone
/// until a peer has called for this process's attention (transfer/headers/attention.hpp).
enum class Looks : std::uint8_t { always, once_called };

/// Count is int or MPI_Count.
template <End end, class Count>
class Side {
 public:
  /// `idle` when the peer is MPI_PROC_NULL: nothing is packed or unpacked.
  Side(const void* memory, Count count, MPI_Datatype datatype, bool idle, Looks looks = Looks::always) noexcept
      : memory_(const_cast<void*>(memory)), count_(count), datatype_(datatype) {
    constexpr bool receives = end == End::receive;
    if (receives && headers::are_looked_for()) {
      looks_ = looks == Looks::always || idle || !unattended_.begin();
      if (looks_) transfer::headers::answer_calls();
    }
    // A header may land in the memory of a receive that looks, so its datatype has to be known; a send can wait.
    const auto analysis = looks_ ? Analysis::now : Analysis::when_it_pays;
    if (!idle) user_ = identify(memory, count, datatype, Purpose::message, analysis);
    owner_ = owner_of(user_);
    if (owner_ == Owner::ours) message_.emplace(user_.buffer, side);
    if (receives && message_ && message_->scheme() == transfer::Scheme::native &&
        (is_lost_in_pieces() || (takes_header_of(user_.buffer) && !look_at_scattered())))
      message_.emplace(user_.buffer, side, transfer::Scheme::packed);
    if (message_ && (message_->scheme() == transfer::Scheme::native || must_stay_whole())) message_.reset();
    if (looks_) {
      look_at_contiguous();
      look_at_opaque();
    }
    if (packs() || is_too_short_for_header()) unattended_.end();
  }

  bool packs() const noexcept { return message_.has_value(); }
  /// Is it a receive into a datatype that gapless does not understand, which may take a header? The message is then
  /// received as bytes, and the library unpacks them.
  bool is_opaque() const noexcept { return opaque_bytes_ != 0; }
  /// Is there more to do than the library's call? Also for a contiguous receive that may take a header.
  bool takes_part() const noexcept {
    return packs() || landing_ != nullptr || scattered_ || offer_.has_value() || matched_.has_value() || is_opaque() ||
           unattended_;
  }

  /// Leaves a message that gets a request to the library where packing gains less than the request costs. To be called
  /// before offer() and prepare().
  void weigh_request() noexcept {
    gets_request_ = true;
    if (!message_ || message_->scheme() != transfer::Scheme::packed || is_lost_in_pieces()) return;
    if (!transfer::is_worth_a_request(user_.buffer) && (may_go_unattended() || look_at_scattered())) message_.reset();
  }

  /// Sends a header in the message's place, if that is sooner, the peer listens, and slots or segments are free now.
  /// `whole`: all is packed before the library's call, which waits for the peer. `may_stay`: the program's memory may
  /// be read until complete() or complete_alone(). `timed`: where the send's time is kept; null unless the call is
  /// blocking and only sends. `packed_later`: up to so many bytes of GPU memory are packed later, together with other
  /// messages.
  void offer(MPI_Comm communicator, int destination, int tag, bool whole, bool may_stay,
             std::optional<transfer::CorrectedSend>* timed = nullptr, std::size_t packed_later = 0) noexcept {
    if (owner_ != Owner::ours) return;
    const bool is_on_host = !user_.is_gpu_memory();
    const bool may_take_slots = is_on_host && transfer::choose_slots(user_.buffer, gets_request_);
    const bool may_take_fabric = is_on_host && transfer::choose_fabric(user_.buffer);
    if (is_on_host && !may_take_slots && !may_take_fabric) return;
    const auto [inbox, number] = headers::find_listener(communicator, destination, speaks());
    if (may_take_fabric && inbox != nullptr && may_stay && offer_.emplace().secure_fabric(user_.buffer, *inbox)) {
      packed_type_.reset();
      return message_.reset();
    }
    offer_.reset();
    if (may_take_fabric && transfer::choose_without_fabric(user_.buffer, side) == transfer::Scheme::native)
      message_.reset();
    if (inbox == nullptr) return;
    if (inbox->is_remote() || (is_on_host && !may_take_slots)) return;
    if (is_on_host && timed != nullptr) {
      correct(*timed, peer_number(communicator, destination), transfer::Scheme::slots);
      if ((*timed)->scheme() != transfer::Scheme::slots) return;
    }
    if (!is_on_host && timed != nullptr) timed->emplace(user_.buffer, transfer::Scheme::direct);
    if (!offer_.emplace().secure(user_.buffer, *inbox, {number, tag}, may_stay, packed_later)) {
      if (timed != nullptr) timed->reset();
      return offer_.reset();
    }
    if (!is_on_host && timed != nullptr && transfer::report_wanted()) (*timed)->expect(offer_->predicted_ns());
    if (whole) offer_->pack();
    packed_type_.reset();
    message_.reset();
  }
  headers::Speaks speaks() const noexcept {
    return user_.is_gpu_memory() ? headers::Speaks::to_itself_too : headers::Speaks::to_others;
  }
  /// Of a persistent send: may its messages go by header, each as it is started?
  bool may_be_offered() const noexcept {
    if (owner_ != Owner::ours) return false;
    return user_.is_gpu_memory() ? transfer::choose_direct(user_.buffer, model::Pair::peer_gpu)
                                 : transfer::choose_slots(user_.buffer, true);
  }
  /// Where the header of each message of a persistent send is to be.
  const void* header_place() noexcept {
    const void* const place = &offer_.emplace().header();
    offer_.reset();
    return place;
  }
  /// Offers one message of a persistent send; GPU memory is packed by pack_in(). False where slots or segments are not
  /// free now: the message goes as packed bytes.
  bool offer_started(const headers::Listener& listener, int tag) noexcept {
    constexpr std::size_t all_later = std::numeric_limits<std::size_t>::max();
    const transfer::headers::Envelope envelope{listener.communicator, tag};
    const bool is_offered =
        listener.inbox != nullptr && offer_.emplace().secure(user_.buffer, *listener.inbox, envelope, true, all_later);
    if (!is_offered) offer_.reset();
    return is_offered;
  }
  /// The message that offer_started() has offered is complete.
  void forget_offer() noexcept { offer_.reset(); }
  /// A probe has matched the message, and perhaps put it back as a message to this process.
  void has_been_matched(const headers::Matched& matched) noexcept {
    matched_.reset();
    if (!matched.was_put_back) return;
    matched_ = matched;
    if (buffer_size() < header_bytes) scratch_.emplace();
  }
  /// A persistent receive starts again.
  void forget_match() noexcept {
    matched_.reset();
    scratch_.reset();
  }
  /// The library has taken what offer() has put in the message's place.
  void sent() noexcept {
    if (offer_) offer_->release();
  }
  /// Does a header go in the message's place?
  bool is_by_header() const noexcept { return offer_.has_value(); }
  /// Does the message need its memory beyond the library's call?
  bool goes_on() const noexcept { return offer_ && offer_->goes_on(); }
  bool is_under_way() noexcept { return goes_on() && offer_->is_under_way(); }
  /// Waits until the message does not need its memory any more. MPI_SUCCESS, or the error that is to be raised. The
  /// library makes progress meanwhile: the receiver may wait in a call for something else that this process has sent.
  int complete() noexcept {
    constexpr unsigned looks = 16;  // take about as long as the library's progress
    for (unsigned times = 1; is_under_way(); ++times) {
      if (times % looks != 0) continue;
      runtime::make_progress();
      ::sched_yield();
    }
    return !goes_on() || offer_->wait() == transfer::Result::ok ? MPI_SUCCESS : peer_failure();
  }
  /// The same without waiting for the receiver: what nobody has fetched is copied.
  int complete_alone() noexcept {
    return !goes_on() || offer_->complete_alone() == transfer::Result::ok ? MPI_SUCCESS : peer_failure();
  }

  /// Chooses the scheme by the times of earlier sends as well, and times this one. For a blocking send without a
  /// header; to be called before prepare().
  void correct(std::optional<transfer::CorrectedSend>& call, MPI_Comm communicator, int destination) noexcept {
    if (packs() && !call) correct(call, peer_number(communicator, destination), message_->scheme());
  }

  /// Sends the message as contiguous bytes, even if another way is sooner, provided that contiguous bytes arrive in one
  /// piece. A message that goes by header keeps its header.
  void send_in_one_piece() noexcept {
    if (owner_ != Owner::ours || offer_ || !is_in_one_piece_if_contiguous(buffer_size())) return;
    if (!packs()) message_.emplace(user_.buffer, side, transfer::Scheme::packed);
    may_split_ = false;
    if (must_stay_whole()) message_.reset();
  }

  /// False if the call must fail, with the error code in `code`.
  bool prepare(const char* function, int& code) noexcept {
    if (!prepare_by([](transfer::Operation& message) { return message.wait(message.start()); }, function, code))
      return false;
    split();
    return true;
  }
  /// Can packing wait, to be done together with that of others?
  bool may_wait(std::size_t most_bytes) const noexcept {
    if (offer_) return offer_->is_to_be_prepared();
    return packs() && message_->joins_batches() && message_->packed_size() <= most_bytes;
  }
  std::size_t packed_size() const noexcept { return offer_ ? offer_->bytes_to_pack() : message_->packed_size(); }
  /// Gets the packed memory of a persistent send, which is packed at each start. Results as of prepare().
  bool reserve(const char* function, int& code) noexcept {
    return prepare_by([](transfer::Operation& message) { return message.reserve(); }, function, code);
  }
  /// Packs what the memory holds now, in a batch with other messages. Does nothing for a message that is in the peer's
  /// memory already, or that the library gets as it is. Precondition: reserve() was true.
  void pack_in(transfer::Batch& batch) noexcept {
    if (offer_ && offer_->is_to_be_prepared()) return offer_->pack_in(batch);
    if (!offer_ && packs()) message_->start_in(batch);
  }
  /// The batch has been packed, and the message leaves.
  void is_packed() noexcept {
    split();
    sent();
  }
  /// Packs this message alone, and waits.
  transfer::Result pack_alone() noexcept {
    const transfer::Result result = offer_ ? offer_->pack_alone() : message_->wait(message_->start());
    if (result == transfer::Result::ok) is_packed();
    return result;
  }

  /// Does unpacking into host memory take longer than asking the library once more what has arrived?
  bool takes_long_to_unpack() const noexcept {
    constexpr std::size_t some_microseconds = 4096;  // bytes
    return takes_part() && !user_.is_gpu_memory() && buffer_size() >= some_microseconds;
  }

  /// Has the message come by header? Then the status is not what the library says.
  bool has_fetched() const noexcept { return has_fetched_ || matched_.has_value(); }
  const headers::Matched* matched() const noexcept { return matched_ ? &*matched_ : nullptr; }

  /// For calls of which the library does not tell how much they have received. Host memory is left to the library. GPU
  /// memory is packed before the receive, so that unpack_whole() leaves what does not arrive as it was. To be called
  /// before prepare() and after it.
  void expect_no_status() noexcept {
    // Without the length that arrived, a header among scattered bytes could not be told from a message.
    may_scatter_ = false;
    if (scattered_) message_.emplace(user_.buffer, side, transfer::Scheme::packed);
    scattered_.end();
    if (!user_.is_gpu_memory() && !headers::are_looked_for()) message_.reset();
  }
  int fill(const char* function) noexcept {
    if (is_opaque()) return by_library::pack(memory_, count_, datatype_, bytes_.data());
    const transfer::Result result = transfer::pack(user_.buffer, memory(), message_->packed_location());
    return result == transfer::Result::ok ? MPI_SUCCESS : gpu_failure(function, result);
  }
  int unpack_whole(const char* function) noexcept {
    arrived_ = opaque_bytes_;
    if (takes_header_of(user_.buffer)) {
      if (packs()) packed_type_->join(memory(), message_->packed_size() == header_bytes ? header_bytes : 0);
      if (transfer::headers::is_header(landing(), header_bytes)) return fetch_unseen(function);
    }
    if (!packs()) {
      has_unpacked();
      return MPI_SUCCESS;
    }
    const transfer::Result result = message_->wait(message_->finish(message_->packed_size()));
    return result == transfer::Result::ok ? MPI_SUCCESS : gpu_failure(function, result);
  }

  void* memory() noexcept {
    if (offer_) return const_cast<transfer::headers::Header*>(&offer_->header());
    if (scratch_) return scratch_->data();
    if (is_opaque()) return bytes_.data();
    return packs() ? message_->packed_data() : memory_;
  }
  Count count() const noexcept {
    if (offer_ || scratch_) return static_cast<Count>(header_bytes);
    if (is_opaque()) return static_cast<Count>(opaque_bytes_);
    return packs() ? packed_type_->count() : count_;
  }
  MPI_Datatype datatype() const noexcept {
    if (offer_ || scratch_ || is_opaque()) return MPI_BYTE;
    return packs() ? packed_type_->handle() : datatype_;
  }

  /// The library has received: puts the unpacking into the batch, and has the status tell of no more bytes than are
  /// unpacked. MPI_SUCCESS, or the error that is to be raised.
  int unpack_in(transfer::Batch& batch, ReceivedStatus& status) noexcept {
    if (!status.is_set() || status.source() == MPI_PROC_NULL) return MPI_SUCCESS;
    if (matched_) status.set_envelope(matched_->status.MPI_SOURCE, matched_->status.MPI_TAG);
    const std::size_t received = status.bytes();
    has_fetched_ = false;
    if (user_.is_gpu_memory() && headers::are_looked_for())
      transfer::headers::answer_introductions(user_.buffer.location.device);
    if (scratch_) return refuse(status);
    if (scattered_ && received == header_bytes) return unpack_scattered(batch, status);
    if (!packs() && landing_ == nullptr) return MPI_SUCCESS;
    if (received > buffer_size()) return raised_already;
    if (is_opaque()) arrived_ = received;
    if (packs()) packed_type_->join(memory(), received);
    if (transfer::headers::is_header(landing(), received)) return fetch(batch, status);
    if (!packs() && !lands_as_bytes_) return MPI_SUCCESS;
    const std::size_t whole = bytes_to_unpack(received);
    if (packs()) message_->finish_in(batch, whole);
    if (whole == received || runtime::is_alone()) return MPI_SUCCESS;
    status.set_bytes(whole);
    return MPI_ERR_TYPE;
  }

  /// The batch has run: gives back what a header has offered, and has the library unpack what came as bytes.
  void has_unpacked() noexcept {
    if (fetch_) fetch_->end();
    fetch_.reset();
    if (scattered_) message_.reset();
    if (arrived_ != 0) static_cast<void>(by_library::unpack(bytes_.data(), arrived_, memory_, datatype_));
    arrived_ = 0;
  }

  /// The end of a receive that the library answered with `code`. `raise` raises an error of ours.
  template <class Raise>
  int finish_call(ReceivedStatus& status, int code, const char* function, Raise raise) noexcept {
    if (code != MPI_SUCCESS) {
      if (matched_ && status.is_set()) status.set_envelope(matched_->status.MPI_SOURCE, matched_->status.MPI_TAG);
      status.deliver();
      // A message that was put back failed on a communicator of gapless, whose handler is not the program's.
      return matched_ ? raise(code) : code;
    }
    transfer::Batch batch;
    code = unpack_in(batch, status);
    const transfer::Result result = batch.run();
    has_unpacked();
    if (transfer::headers::may_be_lost()) [[unlikely]]
      headers::take_back_lost_slots();
    if (result != transfer::Result::ok) code = gpu_failure(function, result);
    status.deliver();
    return code == MPI_SUCCESS || code == raised_already ? code : raise(code);
  }

 private:
  static constexpr std::size_t header_bytes = transfer::headers::Header::size;

  static std::uint64_t peer_number(MPI_Comm communicator, int destination) noexcept {
    return static_cast<std::uint64_t>(number_of(communicator)) << 16 ^ static_cast<std::uint64_t>(destination);
  }
  void correct(std::optional<transfer::CorrectedSend>& call, std::uint64_t peer, transfer::Scheme predicted) noexcept {
    const transfer::Scheme scheme = call.emplace(user_.buffer, predicted, peer).scheme();
    if (scheme == transfer::Scheme::native) return message_.reset();
    if (scheme == transfer::Scheme::slots || (message_ && scheme == message_->scheme())) return;
    message_.emplace(user_.buffer, side, scheme);
    if (must_stay_whole()) message_.reset();
  }

  bool takes_header_of(const transfer::Buffer& buffer) const noexcept {
    return looks_ && buffer.type != nullptr && static_cast<std::size_t>(buffer.size()) >= header_bytes;
  }
  bool is_too_short_for_header() const noexcept {
    return user_.is_described() && static_cast<std::size_t>(user_.buffer.size()) < header_bytes;
  }
  /// May the library have the program's memory itself, so that nobody looks at what comes? If so, a receive is counted
  /// as unattended.
  bool may_go_unattended() noexcept {
    if (end == End::send || !headers::are_looked_for() || is_too_short_for_header()) return true;
    return !looks_ && unattended_.begin();
  }
  std::size_t buffer_size() const noexcept {
    return user_.is_described() ? static_cast<std::size_t>(user_.buffer.size()) : opaque_bytes_;
  }
  /// Where a header would be.
  void* landing() noexcept {
    if (scratch_) return scratch_->data();
    return packs() ? message_->packed_data() : landing_;
  }

  /// May the library lose parts of what it receives into that memory by itself?
  bool is_lost_in_pieces() const noexcept {
    return end == End::receive && user_.is_described() && user_.buffer.type->is_lost_in_pieces &&
           is_long_enough_to_be_cut(buffer_size()) && !transfer::is_forced(transfer::Scheme::native);
  }

  /// Is a header whole elements of the datatype, so that the library receives it as such?
  static bool takes_header_as_elements(const transfer::Described& type) noexcept {
    constexpr auto length = static_cast<layout::Offset>(header_bytes);
    return !type.has_long_doubles && type.elements != nullptr && type.elements->whole(length) == length;
  }
  /// A contiguous receive that may take a header lands in the program's memory either way. The library gets the
  /// program's datatype if a header is whole elements of it, for then the library finds the program's mistakes; else
  /// the library gets bytes.
  void look_at_contiguous() noexcept {
    if (packs() || owner_ != Owner::library || !takes_header_of(user_.buffer) || !is_contiguous(user_.buffer)) return;
    if (!user_.buffer.location.is_cpu_addressable()) return;
    const transfer::Described& type = *user_.buffer.type;
    landing_ = static_cast<std::byte*>(const_cast<void*>(address_of(user_.buffer.memory, type.layout->base)));
    if (takes_header_as_elements(type)) return;
    if (buffer_size() > static_cast<std::size_t>(std::numeric_limits<Count>::max())) return;
    lands_as_bytes_ = true;
    memory_ = landing_;
    count_ = static_cast<Count>(buffer_size());
    datatype_ = MPI_BYTE;
  }

  /// May the library scatter what comes into the program's blocks, so that a header would be gathered from there? To
  /// the library a header is whole elements of the datatype; the message that is fetched overwrites them.
  bool look_at_scattered() noexcept {
    const transfer::Described& type = *user_.buffer.type;
    const bool is_understood = owner_ == Owner::ours && user_.buffer.location.is_cpu_addressable();
    if (!may_scatter_ || !is_understood || !takes_header_of(user_.buffer) || !takes_header_as_elements(type))
      return false;
    return scattered_.begin(address_of(user_.buffer.memory, type.facts.true_lower_bound));
  }
  /// As many bytes as a header has have come: is it one?
  int unpack_scattered(transfer::Batch& batch, ReceivedStatus& status) noexcept {
    int code = MPI_ERR_NO_MEM;
    if (transfer::gather(user_.buffer, scratch_.emplace()) == transfer::Result::ok)
      code = transfer::headers::is_header(landing(), header_bytes) ? fetch(batch, status) : int{MPI_SUCCESS};
    scratch_.reset();
    return code;
  }

  void look_at_opaque() noexcept {
    if (!user_.opaque || user_.is_gpu_memory() || count_ <= 0) return;
    MPI_Count size = 0, all = 0;
    native.Type_size_x(datatype_, &size);
    const bool is_too_long = __builtin_mul_overflow(size, static_cast<MPI_Count>(count_), &all) ||
                             all > static_cast<MPI_Count>(std::numeric_limits<Count>::max());
    if (!is_too_long && all >= static_cast<MPI_Count>(header_bytes)) opaque_bytes_ = static_cast<std::size_t>(all);
  }
  /// Makes room for the bytes of an opaque receive, and describes it as a buffer of bytes. False where there is no
  /// memory.
  bool reserve_bytes() noexcept {
    try {
      bytes_ = transfer::PoolBuffer(device::MemoryKind::host, -1, opaque_bytes_);
      if (!bytes_) return false;
      const auto size = static_cast<layout::Offset>(opaque_bytes_);
      auto described = std::make_shared<transfer::Described>();
      described->layout = layout::named(size, size).layout;
      described->facts = layout::facts_of(*described->layout);
      described->extent = size;
      described->contiguous_repeats = true;
      user_.description = std::move(described);
      user_.buffer = {user_.description.get(), 1, bytes_.data(), {}};
      landing_ = bytes_.data();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// A header has landed: fetches what it offers. MPI_SUCCESS, or the error that is to be raised.
  int fetch(transfer::Batch& batch, ReceivedStatus& status) noexcept {
    has_fetched_ = true;
    const transfer::headers::Header header = take_header();
    const std::size_t whole = header.bytes() <= buffer_size() ? bytes_to_unpack(header.bytes()) : 0;
    const transfer::headers::Decision decision = decide(header, whole);
    const int code = fetch(batch, header, decision);
    status.set_bytes(decision.outcome == transfer::headers::Outcome::truncated ? buffer_size() : decision.bytes);
    if (is_opaque()) arrived_ = code == MPI_SUCCESS ? decision.bytes : 0;
    return code;
  }
  /// The same where the library does not tell how much has arrived.
  int fetch_unseen(const char* function) noexcept {
    const transfer::headers::Header header = take_header();
    transfer::Batch batch;
    const int code = fetch(batch, header, decide(header, header.bytes()));
    if (is_opaque()) arrived_ = code == MPI_SUCCESS ? header.bytes() : 0;
    const transfer::Result unpacked = batch.run();
    has_unpacked();
    return code == MPI_SUCCESS && unpacked != transfer::Result::ok ? gpu_failure(function, unpacked) : code;
  }
  /// A message that was put back is longer than the program's buffer: lets go of what its header offers.
  int refuse(ReceivedStatus& status) noexcept {
    if (transfer::headers::is_header(landing(), header_bytes)) {
      transfer::Batch nothing;
      static_cast<void>(fetch(nothing, take_header(), {.outcome = transfer::headers::Outcome::truncated}));
    }
    has_fetched_ = true;
    status.set_bytes(buffer_size());
    return truncated_message();
  }
  transfer::headers::Decision decide(const transfer::headers::Header& header, std::size_t whole) const noexcept {
    return transfer::headers::decide(transfer::headers::facts_of(header),
                                     {.room = buffer_size(),
                                      .whole = whole,
                                      .is_on_gpu = !user_.buffer.location.is_cpu_addressable(),
                                      .ways = transfer::headers::ways_of_receiver()});
  }
  int fetch(transfer::Batch& batch, const transfer::headers::Header& header,
            const transfer::headers::Decision& decision) noexcept {
    if (scattered_ && decision.goes_by_packed_memory) {
      // The GPU that unpacks does not reach the program's memory.
      const bool has_memory =
          message_.emplace(user_.buffer, side, transfer::Scheme::packed).reserve() == transfer::Result::ok;
      if (!has_memory) {
        message_.reset();
        static_cast<void>(fetch(batch, header, {.outcome = transfer::headers::Outcome::truncated}));
        return MPI_ERR_NO_MEM;
      }
    }
    transfer::Operation* const packed = message_ ? &*message_ : nullptr;
    auto* const landed = static_cast<std::byte*>(packed != nullptr ? packed->packed_data() : landing());
    const transfer::Result result = fetch_.emplace().begin(header, decision, user_.buffer, landed, packed, batch);
    if (result != transfer::Result::ok) return peer_failure();
    switch (decision.outcome) {
      case transfer::headers::Outcome::truncated:
        return truncated_message();
      case transfer::headers::Outcome::partial:
        return MPI_ERR_TYPE;
      default:
        return MPI_SUCCESS;
    }
  }
  /// The header that has landed. Its nonce is wiped out in memory, so that it is not taken twice.
  transfer::headers::Header take_header() noexcept {
    transfer::headers::Header header;
    std::memcpy(&header, landing(), sizeof header);
    std::memset(landing(), 0, sizeof(transfer::headers::Nonce));
    return header;
  }

  static constexpr transfer::Side side = end == End::send ? transfer::Side::sender : transfer::Side::receiver;

  template <class Prepare>
  bool prepare_by(Prepare prepare, const char* function, int& code) noexcept {
    if (owner_ == Owner::unserved) {
      code = unserved_gpu_memory(function, user_.buffer.location.device);
      return false;
    }
    if (is_opaque() && !reserve_bytes()) {
      code = MPI_ERR_NO_MEM;  // what the library received by itself could be a header
      return false;
    }
    if (!packs()) {
      if (counts_native_messages && !offer_) record_native(count_, datatype_);
      return true;
    }
    transfer::Result result = prepare(*message_);
    if (result == transfer::Result::ok) {
      const bool is_on_gpu = message_->packed_location().kind == device::MemoryKind::device;
      packed_type_.emplace(message_->packed_size(), end, is_on_gpu || !may_split_);
      if (packed_type_->is_usable()) return true;
      result = transfer::Result::out_of_memory;
    }
    if (user_.is_gpu_memory()) {
      code = gpu_failure(function, result);
      return false;
    }
    if (!may_go_unattended()) {
      code = MPI_ERR_NO_MEM;  // what the library received by itself could be a header
      return false;
    }
    // No host memory to pack into: the library has its own way without.
    message_.reset();
    return true;
  }

  void split() noexcept {
    if (end == End::send && packs() && !offer_) packed_type_->split(memory());
  }

  bool must_stay_whole() const noexcept {
    if (end == End::receive || user_.is_gpu_memory()) return false;
    return is_long_enough_to_be_cut(message_->packed_size()) && !type_cache::find(datatype_)->may_be_cut;
  }

  /// How many of the bytes that arrived are unpacked. Of short messages MPICH receives whole basic elements only, and
  /// returns an error for a message that ends inside of one, except in jobs of one process. Open MPI receives the part.
  /// (MPI_Get_elements is not asked: MPICH 5.0.2 divides by zero for some datatypes with pairs.)
  std::size_t bytes_to_unpack(std::size_t received) const noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
    return received;
#else
    constexpr std::size_t longest_diagnosed = 8192;
    const bool is_short = received <= longest_diagnosed;
    const layout::ElementsPointer& elements = user_.buffer.type->elements;
    if (!is_short || elements == nullptr || received == buffer_size()) return received;
    return static_cast<std::size_t>(elements->whole(static_cast<layout::Offset>(received)));
#endif
  }

  void* memory_;
  Count count_;
  MPI_Datatype datatype_;
  UserBuffer user_;
  Owner owner_ = Owner::library;
  std::optional<transfer::Operation> message_;
  std::optional<PackedType<Count>> packed_type_;
  std::optional<transfer::headers::Offers> offer_;
  std::optional<transfer::headers::Fetch> fetch_;
  std::optional<std::array<std::byte, transfer::headers::Header::size>> scratch_;  ///< for a header that does not fit
  std::byte* landing_ = nullptr;  ///< of a contiguous receive that may take a header
  std::optional<headers::Matched> matched_;
  transfer::PoolBuffer bytes_;    ///< what arrives for a datatype that is not understood
  std::size_t opaque_bytes_ = 0;  ///< how much room that is; 0 where it is understood
  std::size_t arrived_ = 0;       ///< of it, to be unpacked by the library
  bool lands_as_bytes_ = false;
  Scattered scattered_;  ///< a noncontiguous receive of the library's own that may take a header
  bool may_scatter_ = true;
  bool may_split_ = true;  ///< packed bytes, as packed_type.hpp has them
  bool gets_request_ = false;
  bool looks_ = false;                        ///< this receive looks at what comes, which may be a header
  transfer::headers::Unattended unattended_;  ///< counts a receive that does not look, while it is the library's own
  bool has_fetched_ = false;
};

template <class Count>
using Sending = Side<End::send, Count>;
template <class Count>
using Receiving = Side<End::receive, Count>;

}  // namespace gapless::mpi

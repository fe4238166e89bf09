// The side of a point-to-point call that receives. The message comes as packed bytes, which are unpacked, or as a
// header, by which the message is fetched. A header may land in the memory of packed bytes, in the program's own
// memory, or in memory of its own; under a library that reads GPU memory, also in GPU memory (gpu_landing.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "mpi/calls/sides/gpu_landing.hpp"
#include "mpi/calls/sides/opaque_bytes.hpp"
#include "mpi/calls/sides/received_status.hpp"
#include "mpi/calls/sides/scattered.hpp"
#include "mpi/calls/sides/side.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/library_traits.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/fetch.hpp"
#include "transfer/headers/lost_slots.hpp"
#include "transfer/packing.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::mpi {

/// Unpacking so many bytes into host memory takes longer than asking the library once more what has arrived.
inline constexpr std::size_t long_to_unpack = 4096;

/// When does a receive look whether a header has come? `once_called` is for receives that may be the library's alone
/// until a peer has called for this process's attention (transfer/headers/attention.hpp).
enum class Looks : std::uint8_t { always, once_called };

/// What a receive is, the member that is set, and where a header lands:
///
///   packed              message_                     in the packed bytes
///   contiguous, looks   landing_                     in the program's memory
///   scattered           scattered_                   over the program's blocks; gathered into scratch_
///   opaque              opaque_, landing_            in the bytes that the library unpacks later
///   put back            matched_, scratch_ if short  in scratch_, else as above
///   unattended          unattended_                  nowhere: peers send no headers meanwhile
///   the library's own   none                         nowhere: too short for a header
template <class Count>
class Receiving : public Side<Count> {
  using Base = Side<Count>;
  using Base::described_size, Base::user_, Base::owner_, Base::message_, Base::packed_type_;
  using Base::memory_, Base::count_, Base::datatype_;

 public:
  using Base::packs;

  /// `idle`: the peer is MPI_PROC_NULL, and nothing is unpacked. `locator`: the one that calls share
  /// (mpi/requests/deferred.hpp), or null.
  Receiving(const void* memory, Count count, MPI_Datatype datatype, bool idle, Looks looks = Looks::always,
            device::Locator* locator = nullptr) noexcept
      : Base(memory, count, datatype) {
    if (transfer::headers::is_listening()) {
      looks_ = looks == Looks::always || idle || !unattended_.begin();
      if (looks_) transfer::headers::begin_look();
    }
    // A header may land in the memory of a receive that looks, so its datatype has to be known.
    if (!idle) this->look_at_arguments(looks_ ? Analysis::now : Analysis::when_it_pays, locator);
    if (owner_ == Owner::ours) message_.emplace(user_.buffer, side);
    if (message_ && message_->scheme() == transfer::Scheme::native) {
      message_.reset();
      if (is_lost_in_pieces() || (takes_header_of(user_.buffer) && !look_at_scattered())) unpack_from_packed();
    }
    if (looks_) {
      receive_nothing_as_bytes();
      look_at_contiguous();
      if (user_.opaque && owner_ == Owner::library && count_ > 0) opaque_.begin(count_, datatype_);
    }
    if (packs() || is_too_short_for_header()) unattended_.end();
  }

  /// Does this receive into an opaque datatype, and may it take a header? The message is then received as bytes, and
  /// the library unpacks the bytes.
  bool is_opaque() const noexcept { return static_cast<bool>(opaque_); }
  /// Is there more to do than the library's call? A contiguous receive that may take a header counts, too.
  bool takes_part() const noexcept {
    return packs() || landing_ != nullptr || scattered_ || matched_.has_value() || is_opaque() || unattended_;
  }

  /// Says which process the message comes from. To be called before prepare().
  void comes_from(MPI_Comm communicator, int source) noexcept {
    if (!looks_ || !message_ || !user_.is_gpu_memory()) return;
    if (transfer::is_any_forced() && !transfer::is_forced(transfer::Scheme::direct)) return;
    const bool is_long = room() > gpu_landing::longest_page_locked;
    if (!is_long && message_->scheme() != transfer::Scheme::device) return;
    expects_header_ =
        transfer::goes_direct(user_.buffer, model::Pair::peer_gpu) && gpu_landing::expects_header(communicator, source);
    if (!expects_header_) return;
    const auto on_host = is_long ? std::optional(transfer::Scheme::pipelined)
                                 : transfer::next_best(user_.buffer, side, transfer::Scheme::device);
    if (on_host) message_.emplace(user_.buffer, side, *on_host);
  }

  /// Leaves a message that gets a request to the library where unpacking gains less than the request costs. To be
  /// called before prepare().
  void weigh_request() noexcept {
    if (!message_ || message_->scheme() != transfer::Scheme::packed || is_lost_in_pieces()) return;
    if (!transfer::is_worth_a_request(user_.buffer) && (may_go_unattended() || look_at_scattered())) message_.reset();
  }

  /// Has the message unpacked together with others. To be called before prepare(). Precondition: may_join().
  void join_others() noexcept {
    this->join(side);
    landing_ = nullptr;
    lands_as_bytes_ = false;
    unattended_.end();
  }
  /// Does a GPU unpack the message, together with others if there are others?
  bool is_gathered(std::size_t) const noexcept { return packs() && user_.is_gpu_memory(); }

  /// To be called for a message that a probe has matched, and perhaps put back as a message of this process to itself.
  void take_match(const headers::Matched& matched) noexcept {
    matched_.reset();
    if (!matched.was_put_back) return;
    matched_ = matched;
    if (room() < header_bytes) scratch_.emplace();
  }
  /// To be called when a persistent receive starts again.
  void forget_match() noexcept {
    matched_.reset();
    scratch_.reset();
  }
  const headers::Matched* matched() const noexcept { return matched_ ? &*matched_ : nullptr; }

  /// Takes over a receive of that buffer that the library has begun as it came. To be called before prepare(), on a
  /// side that was made idle.
  void goes_on_scattered(UserBuffer user, Scattered place) noexcept {
    user_ = std::move(user);
    owner_ = Owner::ours;
    scattered_ = std::move(place);
  }

  /// Takes over an unattended receive that the library has begun as it came, and that is counted meanwhile. To be
  /// called on a side that was made idle.
  void goes_on_unattended() noexcept { unattended_.begin_beside_another(); }

  /// False if the call must fail, with the error code in `code`.
  bool prepare(const char* function, int& code) noexcept {
    weigh_memory();
    if (!prepare_by(start_and_wait, function, code)) return false;
    this->count_if_native(side);
    return true;
  }
  /// prepare() of a persistent receive.
  bool reserve(const char* function, int& code) noexcept {
    if (scattered_ && !scattered_.persist()) unpack_from_packed();
    return prepare_by(reserve_memory, function, code);
  }

  void* memory() noexcept {
    if (scratch_) return scratch_->data();
    return is_opaque() ? opaque_.data() : Base::memory();
  }
  Count count() const noexcept {
    if (scratch_) return static_cast<Count>(header_bytes);
    return is_opaque() ? static_cast<Count>(opaque_.size()) : Base::count();
  }
  MPI_Datatype datatype() const noexcept { return scratch_ || is_opaque() ? MPI_BYTE : Base::datatype(); }

  bool takes_long_to_unpack() const noexcept {
    return takes_part() && !user_.is_gpu_memory() && room() >= long_to_unpack;
  }
  /// Has the message come by header? The library's status then is not the message's.
  bool has_fetched() const noexcept { return has_fetched_ || matched_.has_value(); }

  /// expect_no_status(), fill() and unpack_whole() are for calls of which the library does not tell how many bytes have
  /// arrived. Host memory is left to the library. GPU memory is packed before the receive, so that unpack_whole()
  /// leaves the bytes that do not arrive as they were. expect_no_status() comes before prepare(), fill() after it.
  void expect_no_status() noexcept {
    // Without the length that arrived, a header among scattered bytes could not be told from a message.
    may_scatter_ = false;
    if (scattered_) unpack_from_packed();
    scattered_.end();
    if (!user_.is_gpu_memory() && !transfer::headers::is_listening()) message_.reset();
  }
  int fill(const char* function) noexcept {
    if (is_opaque()) return by_library::pack(memory_, count_, datatype_, opaque_.data());
    const transfer::Result result = transfer::pack(user_.buffer, memory(), message_->packed_location());
    return result == transfer::Result::ok ? MPI_SUCCESS : transfer_failure(function, result);
  }
  int unpack_whole(const char* function) noexcept {
    opaque_.note_arrived(opaque_.size());
    if (takes_header_of(user_.buffer)) {
      if (packs()) packed_type_->join(memory(), message_->packed_size() == header_bytes ? header_bytes : 0);
      void* const landed = landing();
      const bool is_on_gpu = lands_on_gpu();
      if (has_header(header_bytes)) {
        if (is_on_gpu) gpu_landing::wipe(landed, user_.buffer.location.device);
        return fetch_unseen(function);
      }
    }
    if (!packs()) {
      note_unpacked();
      return MPI_SUCCESS;
    }
    const transfer::Result result = message_->wait(message_->finish(message_->packed_size()));
    return result == transfer::Result::ok ? MPI_SUCCESS : transfer_failure(function, result);
  }

  /// To be called when the library has received: puts the unpacking into the batch, and has the status tell of no more
  /// bytes than are unpacked. MPI_SUCCESS, or the error that is to be raised.
  int unpack_in(transfer::Batch& batch, ReceivedStatus& status, const char* function) noexcept {
    if (!status.is_set() || status.source() == MPI_PROC_NULL) return MPI_SUCCESS;
    if (matched_) status.set_envelope(matched_->status.MPI_SOURCE, matched_->status.MPI_TAG);
    const std::size_t received = status.bytes();
    has_fetched_ = false;
    if (transfer::headers::is_listening()) transfer::headers::answer_introductions(user_.buffer.gpu());
    if (scratch_) return refuse(status, function);
    if (scattered_) return received == header_bytes ? unpack_scattered(batch, status, function) : has_come_scattered();
    if (!packs() && landing_ == nullptr) return MPI_SUCCESS;
    if (received > room()) return raised_already;
    if (is_opaque()) opaque_.note_arrived(received);
    if (packs()) packed_type_->join(memory(), received);
    if (has_header(received)) return fetch_landed(batch, status, function);
    note_long_landing(received);
    if (!packs() && !lands_as_bytes_) return MPI_SUCCESS;
    const std::size_t whole = bytes_to_unpack(received);
    if (packs()) message_->finish_in(batch, whole);
    if (whole == received || runtime::is_alone()) return MPI_SUCCESS;
    status.set_bytes(whole);
    return MPI_ERR_TYPE;
  }

  /// To be called when the batch has run: releases the offer of a header, and has the library unpack opaque bytes.
  void note_unpacked() noexcept {
    if (fetch_) fetch_->end();
    fetch_.reset();
    if (scattered_) message_.reset();
    beside_.reset();
    opaque_.unpack(memory_);
  }

  /// Ends a receive that the library has answered with `code`. `raise` raises an error of ours.
  template <class Raise>
  int finish_call(ReceivedStatus& status, int code, const char* function, Raise raise) noexcept {
    if (code != MPI_SUCCESS) {
      if (matched_ && status.is_set()) status.set_envelope(matched_->status.MPI_SOURCE, matched_->status.MPI_TAG);
      status.deliver();
      // A message that was put back has failed on a communicator of gapless, which has no handler of the program.
      return matched_ ? raise(code) : code;
    }
    transfer::Batch batch;
    code = unpack_in(batch, status, function);
    const transfer::Result result = batch.run();
    note_unpacked();
    if (transfer::headers::may_be_lost()) [[unlikely]]
      headers::look_for_lost_slots();
    if (result != transfer::Result::ok) code = transfer_failure(function, result);
    status.deliver();
    return code == MPI_SUCCESS || code == raised_already ? code : raise(code);
  }

 private:
  static constexpr transfer::Side side = transfer::Side::receiver;
  static constexpr std::size_t header_bytes = transfer::headers::Header::size;

  void unpack_from_packed() noexcept { message_.emplace(user_.buffer, side, transfer::Scheme::packed); }

  /// How many bytes fit. The library's bytes of an opaque datatype are as many as the message may have.
  std::size_t room() const noexcept { return user_.is_described() ? described_size() : opaque_.size(); }
  /// Where a header would be.
  void* landing() noexcept {
    if (scratch_) return scratch_->data();
    return packs() ? message_->packed_data() : landing_;
  }

  /// Does the message land in memory that the CPU does not reach?
  bool lands_on_gpu() const noexcept {
    if (scratch_ || is_opaque()) return false;
    return packs() ? !message_->packed_location().is_cpu_addressable() : landing_ != nullptr && user_.is_gpu_memory();
  }
  /// Has a header landed, with that many bytes? A header in GPU memory is copied to `scratch_` until it is taken.
  bool has_header(std::size_t received) noexcept {
    bool is_there = false;
    if (!lands_on_gpu()) {
      is_there = transfer::headers::is_header(landing(), received);
    } else if (received == header_bytes) {
      const void* const landed = landing();
      const bool is_copied = gpu_landing::copy_out(landed, user_.buffer.location.device, scratch_.emplace());
      is_there = is_copied && transfer::headers::is_header(scratch_->data(), received);
      if (!is_there) scratch_.reset();
    }
    if (expects_header_ || (is_there && user_.is_gpu_memory())) gpu_landing::note(is_there);
    return is_there;
  }

  bool takes_header_of(const transfer::Buffer& buffer) const noexcept {
    return looks_ && buffer.type != nullptr && static_cast<std::size_t>(buffer.size()) >= header_bytes;
  }
  bool is_too_short_for_header() const noexcept { return user_.is_described() && described_size() < header_bytes; }
  /// May the library receive into the program's memory, with nobody looking for a header? Such a receive is counted.
  bool may_go_unattended() noexcept {
    if (!transfer::headers::is_listening() || is_too_short_for_header()) return true;
    return !looks_ && unattended_.begin();
  }
  /// May the library lose parts of a message that it receives into that memory itself?
  bool is_lost_in_pieces() const noexcept {
    return user_.is_described() && would_be_lost_in_pieces(room(), *user_.buffer.type) &&
           !transfer::is_forced(transfer::Scheme::native);
  }

  /// A contiguous receive that may take a header lands in the program's memory either way. The library gets the
  /// program's datatype if a header is a whole number of its elements, because the library then finds the program's
  /// mistakes; else bytes.
  void look_at_contiguous() noexcept {
    if (packs() || owner_ != Owner::library || !takes_header_of(user_.buffer) || !is_contiguous(user_.buffer)) return;
    const transfer::Described& type = *user_.buffer.type;
    landing_ = static_cast<std::byte*>(const_cast<void*>(address_of(user_.buffer.memory, type.layout->base)));
    if (takes_header_as_elements(type)) return;
    if (room() > static_cast<std::size_t>(std::numeric_limits<Count>::max())) return;
    lands_as_bytes_ = true;
    memory_ = landing_;
    count_ = static_cast<Count>(room());
    datatype_ = MPI_BYTE;
  }

  /// MPICH divides by zero where a short contiguous message, such as a header, comes for a datatype without bytes.
  void receive_nothing_as_bytes() noexcept {
    if (!user_.is_empty_type) return;
    count_ = 0;
    datatype_ = MPI_BYTE;
  }

  /// May the library scatter the message into the program's blocks, from which a header would be gathered? To the
  /// library a header is a whole number of elements of the datatype; the fetched message overwrites these.
  bool look_at_scattered() noexcept {
    const transfer::Described& type = *user_.buffer.type;
    const bool is_understood = owner_ == Owner::ours && user_.buffer.location.is_cpu_addressable();
    if (!may_scatter_ || !is_understood || !takes_header_of(user_.buffer) || !takes_header_as_elements(type))
      return false;
    return scattered_.begin(address_of(user_.buffer.memory, type.facts.true_lower_bound));
  }
  static int has_come_scattered() noexcept {
    Scattered::note(false);
    return MPI_SUCCESS;
  }
  /// As many bytes as a header has have come: fetches the message if they are a header. The nonce is then wiped out in
  /// the program's memory, too.
  int unpack_scattered(transfer::Batch& batch, ReceivedStatus& status, const char* function) noexcept {
    constexpr std::array<std::byte, sizeof(transfer::headers::Nonce)> nothing{};
    int code = MPI_ERR_NO_MEM;
    if (transfer::gather(user_.buffer, scratch_.emplace()) == transfer::Result::ok) {
      const bool is_header = transfer::headers::is_header(landing(), header_bytes);
      Scattered::note(is_header);
      if (is_header) static_cast<void>(transfer::scatter(user_.buffer, nothing));
      code = is_header ? fetch_landed(batch, status, function) : int{MPI_SUCCESS};
    }
    scratch_.reset();
    return code;
  }

  /// Notes for senders of long messages whether the last one has gone into GPU memory.
  void note_long_landing(std::size_t bytes) const noexcept {
    if (bytes <= transfer::schemes::most_slots_bytes || !transfer::headers::is_listening()) return;
    auto& takes_on_gpu = transfer::headers::own_inbox().head().takes_long_on_gpu;
    if (takes_on_gpu.load(std::memory_order_relaxed) != user_.is_gpu_memory())
      takes_on_gpu.store(user_.is_gpu_memory(), std::memory_order_relaxed);
  }

  /// Fetches the message of a header that has landed. MPI_SUCCESS, or the error that is to be raised.
  int fetch_landed(transfer::Batch& batch, ReceivedStatus& status, const char* function) noexcept {
    has_fetched_ = true;
    const transfer::headers::Header header = take_header();
    note_long_landing(header.bytes());
    const std::size_t whole = header.bytes() <= room() ? bytes_to_unpack(header.bytes()) : 0;
    const transfer::headers::Decision decision = decide(header, whole);
    const int code = fetch_by(batch, header, decision, function);
    status.set_bytes(decision.outcome == transfer::headers::Outcome::truncated ? room() : decision.bytes);
    if (is_opaque()) opaque_.note_arrived(code == MPI_SUCCESS ? decision.bytes : 0);
    return code;
  }
  /// The same where the library does not tell how many bytes have arrived.
  int fetch_unseen(const char* function) noexcept {
    const transfer::headers::Header header = take_header();
    transfer::Batch batch;
    const int code = fetch_by(batch, header, decide(header, header.bytes()), function);
    if (is_opaque()) opaque_.note_arrived(code == MPI_SUCCESS ? header.bytes() : 0);
    const transfer::Result unpacked = batch.run();
    note_unpacked();
    return code == MPI_SUCCESS && unpacked != transfer::Result::ok ? transfer_failure(function, unpacked) : code;
  }
  /// Ends the receive of a message that was put back and is longer than the program's buffer: releases the offer of its
  /// header.
  int refuse(ReceivedStatus& status, const char* function) noexcept {
    if (transfer::headers::is_header(landing(), header_bytes)) {
      transfer::Batch nothing;
      refuse_offer(take_header(), nothing, function);
    }
    has_fetched_ = true;
    status.set_bytes(room());
    return truncated_message();
  }
  /// Ends the offer of a header whose message is not fetched.
  void refuse_offer(const transfer::headers::Header& header, transfer::Batch& batch, const char* function) noexcept {
    static_cast<void>(fetch_by(batch, header, {.outcome = transfer::headers::Outcome::truncated}, function));
  }
  /// Gets memory for packed bytes of a header's message. Without memory the offer ends.
  bool reserve_packed(std::optional<transfer::Operation>& packed, const transfer::headers::Header& header,
                      transfer::Batch& batch, const char* function) noexcept {
    if (packed->reserve() == transfer::Result::ok) return true;
    packed.reset();
    refuse_offer(header, batch, function);
    return false;
  }
  transfer::headers::Decision decide(const transfer::headers::Header& header, std::size_t whole) const noexcept {
    return transfer::headers::decide(transfer::headers::facts_of(header),
                                     {.room = room(),
                                      .whole = whole,
                                      .is_on_gpu = !user_.buffer.location.is_cpu_addressable(),
                                      .ways = transfer::headers::ways_of_receiver()});
  }
  /// Moves the message as decided.
  int fetch_by(transfer::Batch& batch, const transfer::headers::Header& header,
               const transfer::headers::Decision& decision, const char* function) noexcept {
    if (scattered_ && decision.goes_by_packed_memory) {
      // The GPU that unpacks does not reach the program's memory.
      unpack_from_packed();
      if (!reserve_packed(message_, header, batch, function)) return MPI_ERR_NO_MEM;
    }
    transfer::Operation* packed = message_ ? &*message_ : nullptr;
    if (decision.goes_by_packed_memory && lacks_host_memory()) {
      const auto on_host = transfer::next_best(user_.buffer, side, transfer::Scheme::device);
      packed = &beside_.emplace(user_.buffer, side, on_host.value_or(transfer::Scheme::staged));
      if (!reserve_packed(beside_, header, batch, function)) return MPI_ERR_NO_MEM;
    }
    auto* const landed = static_cast<std::byte*>(packed != nullptr ? packed->packed_data() : landing());
    const transfer::Result result = fetch_.emplace().begin(header, decision, user_.buffer, landed, packed, batch);
    if (result == transfer::Result::out_of_memory) return MPI_ERR_NO_MEM;
    if (result != transfer::Result::ok) return transfer_failure(function, result);
    switch (decision.outcome) {
      case transfer::headers::Outcome::truncated:
        return truncated_message();
      case transfer::headers::Outcome::partial:
        return MPI_ERR_TYPE;
      default:
        return MPI_SUCCESS;
    }
  }
  /// Has a receive into GPU memory no packed bytes that the CPU reaches?
  bool lacks_host_memory() const noexcept {
    return user_.is_gpu_memory() && !(packs() && message_->packed_location().is_cpu_addressable());
  }
  /// Takes the header that has landed, and wipes out its nonce in memory, so that the header is not taken twice.
  transfer::headers::Header take_header() noexcept {
    transfer::headers::note_header();
    this->count_no_more(side);
    transfer::headers::Header header;
    std::memcpy(&header, landing(), sizeof header);
    transfer::headers::wipe(landing());
    transfer::headers::wipe(&header);
    if (!matched_) scratch_.reset();  // a copy: nothing lands there
    return header;
  }

  /// Leaves a long message to the library while new memory for its packed bytes costs more than unpacking gains. The
  /// message may be packed bytes of another datatype, of which the library would lose some.
  void weigh_memory() noexcept {
    if (!packs() || matched_ || is_lost_in_pieces() || would_lose_elements(room(), *user_.buffer.type)) return;
    if (message_->takes_memory_if_worth_it()) return;
    if (may_go_unattended() || look_at_scattered()) message_.reset();
  }

  template <class Prepare>
  bool prepare_by(Prepare prepare, const char* function, int& code) noexcept {
    if (!this->is_served(function, code)) return false;
    if (is_opaque()) {
      if (!opaque_.reserve(user_)) {
        code = MPI_ERR_NO_MEM;  // in the program's memory a header could land
        return false;
      }
      landing_ = opaque_.data();
    }
    // A header could land in the program's memory, unless the receive may go unattended.
    const auto may_be_native = [this] { return may_go_unattended(); };
    return this->prepare_packed(prepare, side, true, may_be_native, function, code);
  }

  /// How many of the bytes that have arrived are unpacked.
  std::size_t bytes_to_unpack(std::size_t received) const noexcept {
    return received == room() ? received : bytes_that_library_receives(received, *user_.buffer.type);
  }

  std::optional<transfer::headers::Fetch> fetch_;
  /// For a header that has no other place: of a message that was put back, which stays; else a copy, out of GPU memory
  /// or gathered from scattered blocks, until the header is taken.
  std::optional<std::array<std::byte, header_bytes>> scratch_;
  std::optional<transfer::Operation> beside_;  ///< packed bytes on the host, of a receive that has none there
  std::byte* landing_ = nullptr;               ///< of a receive that is not packed and may take a header
  std::optional<headers::Matched> matched_;
  OpaqueBytes opaque_;
  Scattered scattered_;  ///< a noncontiguous receive of the library's own that may take a header
  bool may_scatter_ = true;
  bool expects_header_ = false;  ///< of a receive into GPU memory (gpu_landing.hpp)
  bool lands_as_bytes_ = false;
  bool looks_ = false;                        ///< does the receive look whether a header has come?
  transfer::headers::Unattended unattended_;  ///< a receive that does not look, as long as it is the library's own
  bool has_fetched_ = false;
};

}  // namespace gapless::mpi

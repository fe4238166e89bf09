// The sender's side of a message that goes by header: the header, and the memory that its offers name. Everything that
// a header offers is secured before the header leaves.
#pragma once

#include <cstddef>
#include <optional>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/headers/lost_slots.hpp"
#include "transfer/message.hpp"
#include "transfer/pulls/offer.hpp"
#include "transfer/rdma/rendezvous/fabric_message.hpp"
#include "transfer/schemes/direct.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::transfer::headers {

/// Up to how many bytes a message is packed later, by Offers::pack_in(), and up to how many bytes Offers::pack_in()
/// waits later for the program's default stream, for a message that nobody packs.
struct Later {
  std::size_t packed = 0, awaited = 0;
};

/// A header, with room behind it for a copy of its last byte (mpi/calls/sides/packed_type.hpp).
struct SentHeader : Header {
  using Header::operator=;
  std::byte last{};
};

/// One message. The destructor of a message that is not handed over takes every offer back.
class Offers {
 public:
  /// Offers the ways by which the buffer can go to the process of the inbox, on this node. False where there is no way,
  /// no slots or segments are free now, or the process is not attentive any more: then this object is to be destroyed.
  /// `may_stay`: the memory may be needed until wait() has returned. `later` applies to GPU memory.
  bool secure(const Buffer& buffer, Inbox& inbox, const Envelope& envelope, bool may_stay, Later later) noexcept;
  /// Offers a long message in host memory, contiguous or not, to a process of this node whose GPU unpacks such
  /// messages. The memory is needed until wait() has returned.
  bool secure_from_host(const Buffer& buffer, Inbox& inbox) noexcept;
  /// Offers the buffer by a fabric alone, to a process of any node. The memory is needed until wait() has returned.
  bool secure_fabric(const Buffer& buffer, Inbox& inbox) noexcept;
  /// Packs the bytes that are not packed yet, or begins to.
  void pack() noexcept {
    slots_.pack();
    direct_.pack();
    pull_.offer_now();
  }
  /// To be called when the header has been sent: the offers are the receiver's from now on. Packs the bytes that are
  /// not packed yet.
  void hand_over() noexcept;

  /// Is anything left to pack_in()?
  bool is_to_be_prepared() const noexcept { return direct_.is_to_be_packed() || pull_.is_to_be_awaited(); }
  /// How many bytes pack_in() has to pack.
  std::size_t bytes_to_pack() const noexcept {
    return direct_.is_to_be_packed() ? static_cast<std::size_t>(header_.bytes()) : 0;
  }
  /// Has the batch pack the message. pack_alone() packs after a batch that has failed.
  void pack_in(Batch& batch) noexcept {
    if (pull_.is_there()) return pull_.await_in(batch);
    direct_.pack_in(batch);
  }
  Result pack_alone() noexcept { return pull_.is_there() ? pull_.await() : direct_.pack_alone(); }

  /// The predicted time of a message that goes direct, in nanoseconds.
  double predicted_ns() const noexcept { return pull_.is_there() ? pull_.predicted_ns() : direct_.predicted_ns(); }

  SentHeader& header() noexcept { return header_; }

  /// Is the memory needed beyond the call that sends the header? is_under_way(), wait() and complete_alone() then say
  /// until when.
  bool goes_on() const noexcept { return fabric_ || pull_.is_there() || direct_.ring() != nullptr; }
  bool is_under_way() noexcept;
  /// Waits until the memory is not needed any more: ok, or a failure. Precondition: goes_on().
  Result wait() noexcept;
  /// Like wait(), but copies a message that the receiver has not begun to fetch.
  Result complete_alone() noexcept;

 private:
  bool secure_slots(const Buffer& buffer, Inbox& inbox, const Envelope& envelope) noexcept;
  bool secure_from_gpu(const Buffer& buffer, Inbox& inbox, bool may_stay, Later later) noexcept;

  SentHeader header_;
  schemes::SlotsOffer slots_;
  schemes::DirectOffer direct_;
  pulls::PullOffer pull_;
  std::optional<rdma::FabricOffer> fabric_;
};

}  // namespace gapless::transfer::headers

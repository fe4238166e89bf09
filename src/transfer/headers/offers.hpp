// The sender's side of a message that goes by header: the header, and what its offers name. Everything that is offered
// is secured before the header leaves.
#pragma once

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

/// Up to how many bytes of a message Offers::pack_in() packs it, and up to how many it waits for the work of the
/// program's default stream on a message that nobody packs.
struct Later {
  std::size_t packed = 0, awaited = 0;
};

/// One message. Unless it is released, its destructor takes every offer back.
class Offers {
 public:
  /// Offers the ways by which the buffer can go to the process of that inbox, which is of this node. False, with
  /// nothing offered, where there is no such way, or no slots or segments are free now. `may_stay`: the memory may be
  /// needed until wait() has returned. `later`: of GPU memory.
  bool secure(const Buffer& buffer, Inbox& inbox, const Envelope& envelope, bool may_stay, Later later) noexcept;
  /// Offers a long message in host memory, contiguous or not, to a process of this node whose GPU unpacks such: the
  /// memory is needed until wait() has returned.
  bool secure_from_host(const Buffer& buffer, Inbox& inbox) noexcept;
  /// Offers it by a fabric alone, to a process of any node: the memory is needed until wait() has returned.
  bool secure_fabric(const Buffer& buffer, Inbox& inbox) noexcept;
  /// Packs what is not yet, or begins to.
  void pack() noexcept {
    slots_.pack();
    direct_.pack();
    pull_.offer_now();
  }
  /// The header has been sent: what is offered is the receiver's. Packs what is not yet.
  void release() noexcept;

  /// Is anything left to pack_in()?
  bool is_to_be_prepared() const noexcept { return direct_.is_to_be_packed() || pull_.is_to_be_awaited(); }
  /// How many bytes of it are to be packed?
  std::size_t bytes_to_pack() const noexcept {
    return direct_.is_to_be_packed() ? static_cast<std::size_t>(header_.bytes()) : 0;
  }
  /// Has the batch pack it; pack_alone(), after a batch that has failed.
  void pack_in(Batch& batch) noexcept {
    if (pull_.is_there()) return pull_.await_in(batch);
    direct_.pack_in(batch);
  }
  Result pack_alone() noexcept { return pull_.is_there() ? pull_.await() : direct_.pack_alone(); }

  /// What a message that goes direct is predicted to take.
  double predicted_ns() const noexcept { return pull_.is_there() ? pull_.predicted_ns() : direct_.predicted_ns(); }

  const Header& header() const noexcept { return header_; }

  /// Is the memory needed beyond the call that sends the header, until is_under_way(), wait() or complete_alone() says
  /// that it is not?
  bool goes_on() const noexcept { return fabric_ || pull_.is_there() || direct_.ring() != nullptr; }
  bool is_under_way() noexcept;
  /// Waits until the memory is not needed any more: ok, or a failure. Precondition: goes_on().
  Result wait() noexcept;
  /// Like wait(), but what the receiver has not begun to fetch is copied.
  Result complete_alone() noexcept;

 private:
  bool secure_slots(const Buffer& buffer, Inbox& inbox, const Envelope& envelope) noexcept;

  Header header_;
  schemes::SlotsOffer slots_;
  schemes::DirectOffer direct_;
  pulls::PullOffer pull_;
  std::optional<rdma::FabricOffer> fabric_;
};

}  // namespace gapless::transfer::headers

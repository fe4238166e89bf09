// The sender's side of a message that goes by header: the header, and what its offers name. Everything that is offered
// is secured before the header leaves.
#pragma once

#include <optional>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/headers/lost_slots.hpp"
#include "transfer/message.hpp"
#include "transfer/rdma/rendezvous/fabric_message.hpp"
#include "transfer/schemes/direct.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::transfer::headers {

/// One message. Unless it is released, its destructor takes every offer back.
class Offers {
 public:
  /// Offers what the buffer can go by to the process of that inbox. False, and nothing is offered, where that is
  /// nothing, or cannot be had now.
  bool secure(const Buffer& buffer, Inbox& inbox, const Envelope& envelope) noexcept;
  /// Offers it by a fabric alone: the memory is needed until fabric() has come to its end.
  bool secure_fabric(const Buffer& buffer, Inbox& inbox) noexcept;
  /// Packs what is not yet.
  void pack() noexcept { slots_.pack(); }
  /// The header has been sent: what is offered is the receiver's. Packs what is not yet.
  void release() noexcept;

  const Header& header() const noexcept { return header_; }
  /// The message under way where it is offered by a fabric; else null.
  rdma::FabricOffer* fabric() noexcept { return fabric_ ? &*fabric_ : nullptr; }
  const rdma::FabricOffer* fabric() const noexcept { return fabric_ ? &*fabric_ : nullptr; }

 private:
  Header header_;
  schemes::SlotsOffer slots_;
  schemes::DirectOffer direct_;
  std::optional<rdma::FabricOffer> fabric_;
};

}  // namespace gapless::transfer::headers

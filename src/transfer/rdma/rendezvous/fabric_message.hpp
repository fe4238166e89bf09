// A message whose header offers a fabric: the sender's side, and the receiver's fetching.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/operation.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::transfer::rdma {

/// In a header: the sender's offer, rank and address.
struct FabricWay {
  static constexpr headers::WayKind kind = headers::WayKind::fabric;
  Offer offer;
  std::int32_t rank = 0;
  std::uint32_t address_bytes = 0;
  std::array<std::byte, most_address_bytes> address{};
};

/// One message on its sender's side. The destructor withdraws a message that is not handed over, and completes a
/// handed-over one.
class FabricOffer {
 public:
  FabricOffer() noexcept = default;
  ~FabricOffer() {
    if (!is_handed_over_) withdraw(transfer_);
  }
  FabricOffer(const FabricOffer&) = delete;
  FabricOffer& operator=(const FabricOffer&) = delete;

  /// Adds the offer of the buffer, for the process of the inbox, to the header. GPU memory is packed first, into
  /// registered GPU memory or else into page-locked memory, and the packed bytes are offered. False where the fabric
  /// cannot take the message now.
  bool secure(const Buffer& buffer, const headers::Inbox& inbox, headers::Header& header) noexcept;
  /// The header has been sent.
  void hand_over() noexcept { is_handed_over_ = true; }

  /// Is the program's memory still needed? Polls. Copies a message out that nobody has taken for long, whose memory
  /// then is not needed.
  bool is_under_way() noexcept;
  /// Waits until the program's memory is not needed.
  transfer::Result wait() noexcept;
  /// As wait(), but copies a message that nobody has taken out at once.
  transfer::Result complete_alone() noexcept;

 private:
  OwnedTransfer transfer_;
  bool is_handed_over_ = false;
};

/// Fetches a message into GPU memory, through packed bytes in memory of that GPU that the fabric writes to. end(), or
/// the destructor, gives that memory back once the batch has run.
class FabricFetch {
 public:
  /// Fetches all of the message, and has the batch unpack its first `bytes` bytes. Where the message has to go another
  /// way, nothing is fetched, and is_there() is false.
  transfer::Result begin(const FabricWay& way, const Buffer& into, std::size_t bytes, Batch& batch) noexcept;
  bool is_there() const noexcept { return transfer_ != nullptr; }
  /// The batch has run.
  void end() noexcept { transfer_.reset(); }

 private:
  OwnedTransfer transfer_;
};

/// Fetches all of a message. peer_failed: no more bytes will come.
transfer::Result fetch_by_fabric(const FabricWay& way, const Buffer& into) noexcept;
/// The same into contiguous memory.
transfer::Result fetch_by_fabric(const FabricWay& way, std::byte* into) noexcept;
/// Tells the sender that nobody will fetch the message.
void refuse_by_fabric(const FabricWay& way) noexcept;

}  // namespace gapless::transfer::rdma

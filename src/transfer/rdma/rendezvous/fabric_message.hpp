// A message whose header offers a fabric: its sender's side, and how its receiver fetches it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/operation.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::transfer::rdma {

/// In a header: the sender's offer, and who it is.
struct FabricWay {
  static constexpr headers::WayKind kind = headers::WayKind::fabric;
  Offer offer;
  std::int32_t rank = 0;
  std::uint32_t address_bytes = 0;
  std::array<std::byte, most_address_bytes> address{};
};

/// One message on its sender's side. Unless it is released, its destructor withdraws it; a released one is completed
/// by it.
class FabricOffer {
 public:
  FabricOffer() noexcept = default;
  ~FabricOffer() {
    if (!is_released_) withdraw(transfer_);
  }
  FabricOffer(const FabricOffer&) = delete;
  FabricOffer& operator=(const FabricOffer&) = delete;

  /// Adds to the header what the process of that inbox fetches the buffer by. GPU memory is packed before, into
  /// registered GPU memory, or else page-locked memory, which goes in its place. False where that cannot be had now.
  bool secure(const Buffer& buffer, const headers::Inbox& inbox, headers::Header& header) noexcept;
  /// The header has been sent.
  void release() noexcept { is_released_ = true; }

  /// Is the program's memory still needed, or is it worth polling? Where nobody has taken the message for long,
  /// neither.
  bool is_under_way() noexcept;
  /// Until it is not.
  transfer::Result wait() noexcept;
  /// The same at once, where nobody has taken the message.
  transfer::Result complete_alone() noexcept;

 private:
  OwnedTransfer transfer_;
  bool is_released_ = false;
};

/// Fetches messages of GPU memory through memory of the GPU that the fabric writes to, where it does. What a message
/// has taken until the batch has run is given back by end(), or by the destructor.
class FabricFetch {
 public:
  /// All of the message is fetched, and the batch unpacks the first `bytes` of it. Nothing happens, and is_there() says
  /// so, where it has to go another way.
  transfer::Result begin(const FabricWay& way, const Buffer& into, std::size_t bytes, Batch& batch) noexcept;
  bool is_there() const noexcept { return transfer_ != nullptr; }
  /// The batch has run.
  void end() noexcept { transfer_.reset(); }

 private:
  OwnedTransfer transfer_;
};

/// Fetches a message of `bytes` bytes, all of it. peer_failed: nothing more will come.
transfer::Result fetch_by_fabric(const FabricWay& way, const Buffer& into) noexcept;
/// The same into contiguous memory.
transfer::Result fetch_by_fabric(const FabricWay& way, std::byte* into) noexcept;
/// Tells the sender that nobody will fetch it.
void refuse_by_fabric(const FabricWay& way) noexcept;

}  // namespace gapless::transfer::rdma

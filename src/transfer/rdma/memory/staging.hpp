// Staging segments: bounded, registered once, for packed bytes on their way.
//
// Senders and receivers have a half of the segments each. Else two processes whose receives hold all segments could
// wait for each other's sends, which find no segment.
#pragma once

#include <memory>
#include <vector>

#include "fabric/remote/endpoint.hpp"
#include "transfer/message.hpp"
#include "transfer/rdma/information.hpp"

namespace gapless::transfer::rdma {

class Staging {
 public:
  /// Makes and registers `segments` segments for each side, and `mailboxes` mailboxes. ok() says whether the fabric has
  /// registered them.
  Staging(fabric::Endpoint& endpoint, std::size_t segment_bytes, std::size_t segments, std::size_t mailboxes = 0);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  bool ok() const noexcept { return region_.handle != nullptr; }
  /// What a peer has to know, with the address of that mailbox.
  PoolInformation information(std::size_t mailbox = 0) const noexcept;
  std::size_t segment_bytes() const noexcept { return segment_bytes_; }
  const fabric::Region& region() const noexcept { return region_; }

  /// Bytes to send beside an immediate.
  std::byte* bell() const noexcept { return memory_.get(); }
  static constexpr std::size_t bell_bytes = 8;

  /// A mailbox of `mailbox_bytes` bytes, for a peer to write to, or for this process to send from.
  std::byte* mailbox(std::size_t index) const noexcept { return memory_.get() + bells_bytes + index * mailbox_bytes; }

  /// An unused segment of that side; negative if there is none.
  int acquire(Side side) noexcept;
  void release(int segment) noexcept;
  std::byte* memory(int segment) const noexcept {
    return memory_.get() + header_bytes_ + static_cast<std::size_t>(segment) * segment_bytes_;
  }
  std::size_t available(Side side) const noexcept { return free_[static_cast<std::size_t>(side)].size(); }

 private:
  static constexpr std::size_t bells_bytes = 4096;  ///< own bell, the peers' bell, and alignment
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  fabric::Endpoint& endpoint_;
  std::size_t segment_bytes_;
  std::size_t segments_;      ///< of one side
  std::size_t header_bytes_;  ///< before the segments: bells and mailboxes
  std::unique_ptr<std::byte, Free> memory_;
  fabric::Region region_;
  std::vector<int> free_[2];
};

}  // namespace gapless::transfer::rdma

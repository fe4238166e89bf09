// The receiver's side of a message that has come by header: moves the bytes the way that was decided on, and lets go of
// everything that the header offers.
#pragma once

#include "transfer/headers/decide.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/fetch.hpp"
#include "transfer/rdma/rendezvous/fabric_message.hpp"
#include "transfer/schemes/direct.hpp"

namespace gapless::transfer::headers {

/// What this process can fetch by.
WaySet ways_of_receiver() noexcept;

SenderFacts facts_of(const Header& header) noexcept;

/// One message. What it needs of the sender until the batch has run is let go of by end(), or by the destructor.
class Fetch {
 public:
  /// Moves the bytes to `into`, or has the batch move them. `landing` is where the receive has its packed bytes, and
  /// `packed` its operation; without one, `landing` is the user's memory itself. peer_failed where the sender has
  /// ended, or nothing was decided on but to refuse. Where nothing is to be fetched, only lets go.
  Result begin(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
               Operation* packed, Batch& batch) noexcept;
  /// The batch has run.
  void end() noexcept {
    direct_.end();
    pull_.end();
    fabric_.end();
  }

 private:
  /// Lets go of all offers of a header but the one that was taken.
  static void release_others(const Header& header, WayKind taken) noexcept;
  Result move(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
              Batch& batch) noexcept;

  schemes::DirectFetch direct_;
  pulls::PullFetch pull_;
  rdma::FabricFetch fabric_;
};

}  // namespace gapless::transfer::headers

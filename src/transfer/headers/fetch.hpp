// The receiver's side of a message that has come by header: moves the bytes by the way that is decided on, and releases
// all offers of the header.
#pragma once

#include "transfer/headers/decide.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/fetch.hpp"
#include "transfer/rdma/rendezvous/fabric_message.hpp"
#include "transfer/schemes/direct.hpp"

namespace gapless::transfer::headers {

/// The ways by which this process can fetch.
WaySet ways_of_receiver() noexcept;

SenderFacts facts_of(const Header& header) noexcept;

/// One message. end(), or the destructor, releases the sender's memory once the batch has run.
class Fetch {
 public:
  /// Moves the bytes to `into`, or has the batch move them. `landing` is where the receive has its packed bytes, and
  /// `packed` the receive's operation; without an operation, `landing` is the user's memory itself. peer_failed where
  /// the sender has ended, or the decision is `refused`. Where nothing is to be fetched, releases the offers alone.
  Result begin(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
               Operation* packed, Batch& batch) noexcept;
  /// The batch has run.
  void end() noexcept {
    direct_.end();
    pull_.end();
    fabric_.end();
  }

 private:
  /// Releases all offers of a header but the one that is taken.
  static void release_others(const Header& header, WayKind taken) noexcept;
  Result move(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
              Batch& batch) noexcept;

  schemes::DirectFetch direct_;
  pulls::PullFetch pull_;
  rdma::FabricFetch fabric_;
};

}  // namespace gapless::transfer::headers

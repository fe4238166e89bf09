// The receiver's side of a message that has come by header: moves the bytes the way that was decided on, and lets go of
// everything that the header offers.
#pragma once

#include "transfer/headers/decide.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/operation.hpp"

namespace gapless::transfer::headers {

/// What this process can fetch by.
WaySet ways_of_receiver() noexcept;

SenderFacts facts_of(const Header& header) noexcept;

/// One message. What it needs of the sender until the batch has run is let go of by end(), or by the destructor.
class Fetch {
 public:
  /// Moves the bytes to `into`, or has the batch move them. `packed` is the receive's own operation, which has packed
  /// memory; null where the receive has none. peer_failed where the sender has ended, or nothing was decided on but to
  /// refuse. Where nothing is to be fetched, only lets go.
  Result begin(const Header& header, const Decision& decision, const Buffer& into, Operation* packed,
               Batch& batch) noexcept;
  /// The batch has run.
  void end() noexcept {}

 private:
  /// Of all offers but the one that was taken.
  static void release_others(const Header& header, WayKind taken) noexcept;
};

}  // namespace gapless::transfer::headers

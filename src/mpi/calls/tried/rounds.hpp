// A round: the blocking sends and receives of noncontiguous host memory that a thread makes, from one of them to the
// next that equals it. A round is tried as a whole (transfer/choice/host_trial.hpp), because what a send leaves to the
// receiver, the program waits for in its next receive. Two processes that answer each other have rounds of the same
// length, and so mostly try the same way at the same time.
#pragma once

#include <cstdint>

#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi::rounds {

/// One call that sends or receives. To be made before the message's way is chosen.
class Call {
 public:
  /// `key` tells kinds of messages apart.
  explicit Call(std::uint64_t key) noexcept : way_(join(key)) {}

  /// The way of all messages of the round.
  transfer::HostWay way() const noexcept { return way_; }
  /// To be called when the call has ended with `code`. `went_native`: the message has gone to the library as it came.
  static void end(int code, bool went_native) noexcept;

 private:
  static transfer::HostWay join(std::uint64_t key) noexcept;

  transfer::HostWay way_;
};

/// A round of more calls is not compared with others. One of more calls than the round before is over, too: the program
/// sends other messages now, which are not to go the way of those.
inline constexpr int most_calls = 256;

}  // namespace gapless::mpi::rounds

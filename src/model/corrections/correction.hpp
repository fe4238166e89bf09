// Corrects predictions by what a run measures. For one kind of message (a datatype, a size, a peer) there are two ways:
// the one predicted to be the best, and the next best one. A few messages by each way are timed.
//
// The way in use is timed now and then. The other way is tried seldom: the slower the way, the longer until the next
// trial, so that trials cost about a sixty-fourth of the time of all messages. While few of its times are known, a way
// that is not slower is tried often, which costs nothing. Medians of the last times decide, because a message may wait
// for its peer.
//
// A send may be over before its message; the program then waits for the message in another call. So the time from one
// message to the next decides first. Where both ways take about the same time, because the program does something else
// most of the time, the time of the call decides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/corrections/recent.hpp"

namespace gapless::model {

class Correction {
 public:
  enum class Way : std::uint8_t { predicted, other };

  struct Turn {
    Way way = Way::predicted;
    bool is_timed = false;
  };

  static constexpr std::uint32_t period = 64;        ///< one of so many messages is timed
  static constexpr std::uint32_t first_period = 8;   ///< the same, until enough times are known
  static constexpr std::uint32_t before_other = 64;  ///< messages before the other way is tried for the first time
  static constexpr std::uint32_t first_trials = 4;   ///< least messages between trials, until enough times are known
  static constexpr std::size_t fewest = 8;           ///< times of each way before a way is left
  static constexpr float margin = 0.9F;              ///< a way is better below this multiple of the way in use

  /// Counts a message, and says which way it goes. Some nanoseconds; no allocation.
  Turn next() noexcept;
  /// What a timed message took, and how long after its beginning the next message began.
  void note(Way way, float ns, float until_next_ns) noexcept;

  /// The way of messages that are no trials.
  Way in_use() const noexcept { return in_use_; }

 private:
  using Times = Recent<fewest>;

  /// Of one way.
  struct Cost {
    Times own{}, until_next{};
  };

  Cost& cost(Way way) noexcept { return costs_[static_cast<std::size_t>(way)]; }
  static Way opposite(Way way) noexcept { return way == Way::predicted ? Way::other : Way::predicted; }
  bool is_better(Way tried) noexcept;
  std::uint32_t messages_until_trial() noexcept;

  std::array<Cost, 2> costs_{};
  std::uint32_t until_timed_ = first_period;
  std::uint32_t until_trial_ = before_other;
  Way in_use_ = Way::predicted;
};

}  // namespace gapless::model

// Predictions corrected by what a run measures: for one kind of message (a datatype, a size, a peer) the way that was
// predicted to be the best and the next best one, of which a few messages are timed.
//
// The way in use is timed now and then. The other way is tried seldom: the slower it is, the longer until it is tried
// again, so that trying costs about a sixty-fourth of the time of all messages. While too little is known of it, one
// that is not slower is tried often, which costs nothing. Medians of the last times decide, for a message may wait for
// its peer.
//
// A send may be over before its message is, which the program then waits for in another call. So the time from one
// message to the next has the first word; where both ways take about as much, for the program does something else most
// of the time, that of the call decides.
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
  static constexpr std::uint32_t first_period = 8;   ///< the same until enough are known
  static constexpr std::uint32_t before_other = 64;  ///< messages before the other way is tried for the first time
  static constexpr std::uint32_t first_trials = 4;   ///< messages between its trials, at least, until enough are known
  static constexpr std::size_t fewest = 8;           ///< times of each way before any is left
  static constexpr float margin = 0.9F;              ///< of the time in use: a way that is not below is not better

  /// Counts a message, and says which way it goes. Some nanoseconds; no allocation.
  Turn next() noexcept;
  /// What a timed message took, and after how long since its beginning the next one began.
  void note(Way way, float ns, float until_next_ns) noexcept;

  /// The way that messages go which are no trial.
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

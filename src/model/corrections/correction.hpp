// Predictions corrected by what a run measures: for one kind of message (a datatype, a size, a peer) the way that was
// predicted to be the best and the next best one, of which a few messages are timed.
//
// The way in use is timed now and then. The other way is tried seldom: the slower it is, the longer until it is tried
// again, so that trying costs about a sixty-fourth of the time of all messages. Medians of the last times decide, for a
// message may wait for its peer.
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

  static constexpr std::uint32_t period = 64;         ///< one of so many messages is timed
  static constexpr std::uint32_t before_other = 256;  ///< messages before the other way is tried for the first time
  static constexpr std::size_t fewest = 8;            ///< times of each way before any is left
  static constexpr float margin = 0.9F;               ///< of the time in use: a way that is not below is not better

  /// Counts a message, and says which way it goes. Some nanoseconds; no allocation.
  Turn next() noexcept;
  /// What a timed message took.
  void note(Way way, float ns) noexcept;

  /// The way that messages go which are no trial.
  Way in_use() const noexcept { return in_use_; }

 private:
  using Times = Recent<fewest>;

  Times& times(Way way) noexcept { return times_[static_cast<std::size_t>(way)]; }
  static Way opposite(Way way) noexcept { return way == Way::predicted ? Way::other : Way::predicted; }
  std::uint32_t messages_until_trial() noexcept;

  std::array<Times, 2> times_{};
  std::uint32_t until_timed_ = period;
  std::uint32_t until_trial_ = before_other;
  Way in_use_ = Way::predicted;
};

}  // namespace gapless::model

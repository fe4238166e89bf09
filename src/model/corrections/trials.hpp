// Which of several ways messages of one kind go, by what they have taken in this run.
//
// Messages go in runs, each run one way, so that what a way costs is seen where many messages are under way at once. A
// run's cost is the mean of its later half, for its first messages share the machine with those before them, without
// the longest fourth of these, for a program does something else now and then. Between two runs the usual way, another
// way may be tried for one run, and is compared with the cheaper one of the two: what disturbs the machine for longer
// disturbs all three, and what disturbs a run the usual way does not speak for the other. No other runs are timed. The
// median of a few such comparisons decides, or fewer ones where each of them is clear. The slower a way is, the longer
// until it is tried again, so that all trials together take about a sixteenth of the time; each time that a way is seen
// to be slower doubles this, until trials take a two hundred and fifty-sixth.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/corrections/recent.hpp"

namespace gapless::model {

class Trials {
 public:
  static constexpr std::size_t most_ways = 4;
  static constexpr std::uint32_t run = 16;             ///< messages
  static constexpr std::size_t fewest = 5;             ///< comparisons before the usual way is left
  static constexpr float margin = 0.95F;               ///< a way that is not below is not better
  static constexpr float clear = 0.85F;                ///< a way below in two comparisons, the only ones, is better
  static constexpr std::uint8_t most_doublings = 4;    ///< of the time between trials
  static constexpr double worth_trying = 4;            ///< a way predicted to take more times the least is never tried
  static constexpr std::uint32_t most_runs = 1 << 16;  ///< between two trials of a way

  Trials() noexcept = default;
  /// By what each way is predicted to take; infinite for ways that there are not.
  explicit Trials(std::span<const double> predicted_ns) noexcept;

  struct Turn {
    std::uint8_t way = 0;
    bool is_timed = false;
    std::uint16_t number = 0;  ///< of its run
  };

  /// Counts a message, and says which way it goes. Some nanoseconds; no allocation.
  Turn next() noexcept;
  /// What a timed message took.
  void note(const Turn& turn, float ns) noexcept;

  /// The way that messages go which are no trial.
  std::uint8_t in_use() const noexcept { return in_use_; }

 private:
  /// Of a way beside the one in use.
  struct Compared {
    Recent<fewest> times{};              ///< its costs as multiples of the usual ones
    std::uint32_t runs_until_trial = 0;  ///< 0: never
    std::uint8_t doublings = 0;

    bool is_better() const noexcept;
    float median() const noexcept { return times.median(1); }
  };

  void begin_run() noexcept;
  void end_run() noexcept;
  /// Of this run; 0: nothing is noted.
  float cost_ns() noexcept;
  /// What the way that was tried has taken as a multiple of the usual way.
  void compare(float times) noexcept;
  void leave_for(std::uint8_t way) noexcept;
  static std::uint32_t runs_between(const Compared& way, float last) noexcept;

  std::array<Compared, most_ways> compared_{};
  std::uint8_t in_use_ = 0, running_ = 0, tried_ = 0;
  bool is_watched_ = false;  ///< is this run compared with another?
  std::uint16_t number_ = 0;
  std::uint32_t begun_ = 0, noted_ = 0;  ///< messages of this run
  std::array<float, run / 2> noted_ns_{};
  float usual_ns_ = 0, tried_ns_ = 0;  ///< of the last runs; 0: not known
};

}  // namespace gapless::model

// Chooses among several ways for messages of one kind, by what messages have taken in this run of the program.
//
// Messages go in runs, each run one way, so that a run shows what its way costs with many messages under way at once. A
// run's cost is the mean over its later half, because the first messages share the machine with the messages of the run
// before. The longest fourth of the later half does not count, because a program does something else now and then.
//
// A trial is one run another way, between two runs the usual way. The cost of the trial is compared with the cheaper of
// the two usual runs: a long disturbance of the machine slows all three runs, and a short one in a usual run must not
// speak for the other way. No other runs are timed. The median of a few comparisons decides, or two or more where each
// of them is clear. A trial whose first messages all take several times as long as the usual way ends with them: many
// a program sends no more messages of a kind than a few runs have.
//
// The slower a way, the longer until its next trial, so that all trials together take about a sixteenth of the time.
// Each comparison that finds the way slower doubles the time until the next one, until trials take a two hundred and
// fifty-sixth; so does each trial that ends without a comparison, because too few of its messages could be noted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "model/corrections/recent.hpp"

namespace gapless::model {

class Trials {
 public:
  static constexpr std::size_t most_ways = 4;
  static constexpr std::uint32_t run = 16;             ///< messages
  static constexpr std::size_t fewest = 5;             ///< comparisons before the usual way is left
  static constexpr float margin = 0.95F;               ///< a way is better below this multiple of the usual cost
  static constexpr float clear = 0.85F;                ///< the same while there are fewer comparisons, at least two
  static constexpr std::uint8_t most_doublings = 4;    ///< of the time between trials
  static constexpr double worth_trying = 4;            ///< a way above this multiple of the least is never tried
  static constexpr std::uint32_t most_runs = 1 << 16;  ///< between two trials of a way
  static constexpr std::uint32_t first_looks = 4;      ///< messages of a trial that are looked at before the later half
  static constexpr float hopeless = 3;  ///< a trial ends where they all take that multiple of the usual cost

  Trials() noexcept = default;
  /// `predicted_ns` has each way's predicted time; infinite for a way that does not exist.
  explicit Trials(std::span<const double> predicted_ns) noexcept;

  struct Turn {
    std::uint8_t way = 0;
    bool is_timed = false;
    bool is_first_look = false;
    std::uint16_t number = 0;  ///< of the message's run
  };

  /// Counts a message, and says which way it goes. Some nanoseconds; no allocation.
  Turn next() noexcept;
  /// Counts the rest of the run if nothing of the run is timed. Returns how many messages those are: they go the same
  /// way without next().
  std::uint32_t claim_rest() noexcept { return is_watched_ ? 0 : run - std::exchange(begun_, run); }
  /// What a timed message took.
  void note(const Turn& turn, float ns) noexcept;

  /// The way of messages that are no trials.
  std::uint8_t in_use() const noexcept { return in_use_; }

 private:
  /// What is known of a way that is not in use.
  struct Compared {
    Recent<fewest> times{};              ///< its costs as multiples of the usual ones
    std::uint32_t runs_until_trial = 0;  ///< 0: never
    std::uint8_t doublings = 0;

    bool is_better() const noexcept;
    float median() const noexcept { return times.median(1); }
  };

  void begin_run() noexcept;
  void end_run() noexcept;
  /// The cost of this run; 0 where no message has been noted.
  float cost_ns() noexcept;
  /// Notes one of a trial's first messages, the last of which may end the trial.
  void look(float ns) noexcept;
  /// Notes what the tried way has taken, as a multiple of the usual way.
  void compare(float times) noexcept;
  void postpone() noexcept;
  void leave_for(std::uint8_t way) noexcept;
  static std::uint32_t runs_between(const Compared& way, float last) noexcept;

  std::array<Compared, most_ways> compared_{};
  std::uint8_t in_use_ = 0, running_ = 0, tried_ = 0;
  bool is_watched_ = false;  ///< is this run compared with another?
  std::uint16_t number_ = 0;
  std::uint32_t begun_ = 0, noted_ = 0, looked_at_ = 0;  ///< messages of this run
  float least_looked_ns_ = 0;
  std::array<float, run / 2> noted_ns_{};
  float usual_ns_ = 0, tried_ns_ = 0;  ///< costs of the last runs; 0: not known
};

}  // namespace gapless::model

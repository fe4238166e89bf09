// Which of several ways messages of one kind go, by what they have taken in this run.
//
// Messages go in runs, each run one way, so that what a way costs is seen where many messages are under way at once. A
// run's cost is the mean of its later half, for its first messages share the machine with those before them. The way in
// use is left for one whose runs have cost less, by medians. The other ways are tried in turn, in single runs: the
// slower a way is, the longer until it is tried again, so that all trials together take about a sixteenth of the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gapless::model {

class Trials {
 public:
  static constexpr std::size_t most_ways = 4;
  static constexpr std::uint32_t run = 16;             ///< messages
  static constexpr std::size_t kept = 5;               ///< costs of a way's last runs
  static constexpr std::size_t fewest = 3;             ///< runs of each way before any is left
  static constexpr float margin = 0.95F;               ///< of the cost in use: a way that is not below is not better
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
  struct Costs {
    std::array<float, kept> last{};
    std::uint32_t count = 0;
    std::uint32_t runs_until_trial = 0;  ///< 0: never

    float median() const noexcept;
    void add(float ns) noexcept;
  };

  void begin_run() noexcept;
  void end_run() noexcept;
  std::uint32_t runs_between(const Costs& way) const noexcept;

  std::array<Costs, most_ways> costs_{};
  std::uint8_t in_use_ = 0, running_ = 0;
  std::uint16_t number_ = 0;
  std::uint32_t begun_ = 0;  ///< messages of this run
  std::uint32_t noted_ = 0;
  float total_ns_ = 0;
};

}  // namespace gapless::model

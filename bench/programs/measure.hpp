// Timing contestants fairly: their samples are interleaved, so that a disturbance of the machine meets all of them, and
// each sample repeats its call often enough for the clock. Nobody always follows the same contestant, and everybody
// begins with a call that is not timed: what the one before left in the caches is nobody's gain or loss.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace gapless::bench {

struct Contestant {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  double median;  ///< seconds a call
  double minimum;
};

/// Seconds since some moment.
using Clock = double (*)();

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds that this thread has run, the system's work for it included: what other programs do meanwhile does not
/// count. For work that waits for nobody.
inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline double seconds_of(const std::function<void()>& run, long calls, Clock now = wall_seconds) {
  const double start = now();
  for (long i = 0; i < calls; ++i) run();
  return now() - start;
}

/// `samples` samples of about `sample_seconds` each, for every contestant, interleaved; the first round warms up.
inline std::vector<Timing> measure(const std::vector<Contestant>& contestants, int samples, double sample_seconds,
                                   Clock now = wall_seconds) {
  std::vector<long> calls;
  for (const Contestant& contestant : contestants) {
    long n = 1;
    double seconds = seconds_of(contestant.run, n, now);
    while (seconds < sample_seconds / 4) seconds = seconds_of(contestant.run, n *= 2, now);
    calls.push_back(std::max(1L, static_cast<long>(static_cast<double>(n) * sample_seconds / seconds)));
  }
  std::vector<std::vector<double>> all(contestants.size());
  for (int sample = -1; sample < samples; ++sample) {
    for (std::size_t turn = 0; turn < contestants.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(sample + 1)) % contestants.size();
      contestants[i].run();
      const double seconds = seconds_of(contestants[i].run, calls[i], now) / static_cast<double>(calls[i]);
      if (sample >= 0) all[i].push_back(seconds);
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& values : all) {
    std::sort(values.begin(), values.end());
    timings.push_back({values[values.size() / 2], values.front()});
  }
  return timings;
}

}  // namespace gapless::bench

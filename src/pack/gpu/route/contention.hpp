// Contention for one GPU: how late each engine is, estimated from runs that were waited for.
//
// Nobody tells the library that a program keeps the multiprocessors or the bus busy; it shows in that runs take many
// times what they should. But a run that had to wait for the program's own work in its stream takes long too, and is
// not late. So a late run raises a suspicion, and lateness counts when a run whose stream was idle before it is late.
// What is counted fades with the time spent on other ways, so that trials cost no more than a small part of it; one run
// in time, and it is forgotten. When another engine becomes late too, things have changed, and all get a trial.
//
// All state is relaxed atomics: threads that overwrite each other's observations lose one, and a later one makes up.
#pragma once

#include <array>
#include <atomic>

#include "pack/gpu/route/engine.hpp"

namespace gapless::pack::gpu {

/// What was known of the stream before a run.
enum class Before : std::uint8_t { unknown, idle, busy };

class ContentionEstimator {
 public:
  /// By how many nanoseconds each engine is to be expected later than expected_ns().
  Delays delays(const Movement& movement) const noexcept;

  /// Would it help to know whether the stream is idle before the engine's next run?
  bool should_ask(Engine engine, const Movement& movement) const noexcept;

  /// A run has taken `elapsed_ns`.
  void note(Engine engine, const Movement& movement, std::int64_t elapsed_ns, Before before) noexcept;

 private:
  /// One for each engine, traffic and size.
  struct Record {
    /// What an idle run takes here, in 256ths of what is expected: machines differ.
    std::atomic<std::uint32_t> pace{256};
    std::atomic<std::uint32_t> late_runs{0};  ///< in succession
    std::atomic<std::int64_t> delay{0};       ///< as last seen; not 0 until a run is in time
    std::atomic<std::int64_t> delayed_at{0};  ///< what Kind::spent was then
  };
  struct Kind {
    std::array<Record, engine_count> records;
    std::atomic<std::int64_t> spent{0};  ///< nanoseconds of all runs
  };
  static constexpr std::uint64_t small_bytes = 64 << 10;

  static std::size_t kind_of(const Movement& movement) noexcept {
    return static_cast<std::size_t>(movement.traffic) * 2 + (movement.bytes > small_bytes ? 1 : 0);
  }

  static void note_delay(Kind& kind, Record& late, std::int64_t delay) noexcept;

  std::array<Kind, 2 * traffic_count> kinds_;
};

}  // namespace gapless::pack::gpu

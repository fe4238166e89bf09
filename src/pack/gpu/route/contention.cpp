#include "pack/gpu/route/contention.hpp"

#include <algorithm>
#include <bit>

namespace gapless::pack::gpu {
namespace {

constexpr std::uint32_t pace_unit = 256;
constexpr std::uint32_t slowest_pace = 4 * pace_unit;
constexpr std::int64_t spent_for_trials = 32;  // one part of so many
constexpr std::int64_t grace_ns = 5'000;

/// Beyond two and a half times what it takes otherwise: noise of a factor of two is none.
bool is_late(std::int64_t elapsed_ns, std::int64_t expected_ns, std::uint32_t pace) {
  return elapsed_ns > expected_ns * pace / pace_unit * 5 / 2 + grace_ns;
}

/// The fastest seen so far, forgotten slowly.
std::uint32_t next_pace(std::uint32_t pace, std::int64_t elapsed_ns, std::int64_t expected_ns) {
  const std::int64_t seen = elapsed_ns * pace_unit / std::max<std::int64_t>(expected_ns, 1);
  const auto bounded = static_cast<std::uint32_t>(std::clamp<std::int64_t>(seen, pace_unit, slowest_pace));
  return std::min(bounded, std::min(pace + pace / 256, slowest_pace));
}

}  // namespace

Delays ContentionEstimator::delays(const Movement& movement) const noexcept {
  const Kind& kind = kinds_[kind_of(movement)];
  const std::int64_t spent = kind.spent.load(std::memory_order_relaxed);
  Delays delays{};
  for (std::size_t i = 0; i < engine_count; ++i) {
    const Record& record = kind.records[i];
    const std::int64_t delay = record.delay.load(std::memory_order_relaxed);
    if (delay == 0) continue;
    const std::int64_t since = spent - record.delayed_at.load(std::memory_order_relaxed);
    delays[i] = std::max<std::int64_t>(0, delay - since / spent_for_trials);
  }
  return delays;
}

bool ContentionEstimator::should_ask(Engine engine, const Movement& movement) const noexcept {
  const Record& record = kinds_[kind_of(movement)].records[static_cast<std::size_t>(engine)];
  // A stream that always has the program's work in it is asked less and less often.
  return std::has_single_bit(record.late_runs.load(std::memory_order_relaxed)) ||
         record.delay.load(std::memory_order_relaxed) != 0;
}

void ContentionEstimator::note(Engine engine, const Movement& movement, std::int64_t elapsed_ns,
                               Before before) noexcept {
  Kind& kind = kinds_[kind_of(movement)];
  Record& record = kind.records[static_cast<std::size_t>(engine)];
  kind.spent.store(kind.spent.load(std::memory_order_relaxed) + elapsed_ns, std::memory_order_relaxed);
  const std::int64_t expected = expected_ns(engine, movement);
  const std::uint32_t pace = record.pace.load(std::memory_order_relaxed);
  record.pace.store(next_pace(pace, elapsed_ns, expected), std::memory_order_relaxed);
  if (!is_late(elapsed_ns, expected, pace)) {
    record.late_runs.store(0, std::memory_order_relaxed);
    record.delay.store(0, std::memory_order_relaxed);
    return;
  }
  record.late_runs.store(record.late_runs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (before == Before::idle) note_delay(kind, record, elapsed_ns - expected);
}

void ContentionEstimator::note_delay(Kind& kind, Record& late, std::int64_t delay) noexcept {
  const bool is_news = late.delay.load(std::memory_order_relaxed) == 0;
  late.delay.store(delay, std::memory_order_relaxed);
  late.delayed_at.store(kind.spent.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (!is_news) return;
  for (Record& other : kind.records) {
    constexpr std::int64_t least = 1;  // still to be asked for before it counts as in time
    if (&other != &late && other.delay.load(std::memory_order_relaxed) != 0) {
      other.delay.store(least, std::memory_order_relaxed);
    }
  }
}

}  // namespace gapless::pack::gpu

// That a wait ends at its time although the clock of the day is set back meanwhile.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/steady_condition.hpp"

namespace {

std::atomic<int> hours_ahead{0};

}  // namespace

/// In the place of the C library's in this program: a clock of the day that is ahead until it is set back.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += 3600 * hours_ahead;
  return static_cast<int>(result);
}

namespace gapless::tests {
namespace {

TEST(SteadyCondition, EndsAtItsTimeWhateverTheClockOfTheDayIs) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  SteadyCondition never;
  hours_ahead = 1;
  const auto read_ahead = std::chrono::system_clock::now();
  hours_ahead = 0;
  ASSERT_LT(std::chrono::minutes(59), read_ahead - std::chrono::system_clock::now());
  hours_ahead = 1;
  never.wait_for(lock, std::chrono::milliseconds(10), [] { return false; });
  hours_ahead = 0;
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SteadyCondition, EndsOnceItIsNotified) {
  std::mutex mutex;
  SteadyCondition condition;
  bool is_met = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    is_met = true;
    condition.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    condition.wait_for(lock, std::chrono::hours(1), [&] { return is_met; });
    EXPECT_TRUE(is_met);
  }
  other.join();
}

}  // namespace
}  // namespace gapless::tests

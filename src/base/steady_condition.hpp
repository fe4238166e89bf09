// Waits that end at a time, whatever becomes of the clock of the day.
//
// A std::condition_variable waits by the clock of the day where the C library is older than glibc 2.30. Once that clock
// is set back, such a wait lasts as much longer.
#pragma once

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <mutex>

namespace gapless {

class SteadyCondition {
 public:
  SteadyCondition() noexcept {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~SteadyCondition() { pthread_cond_destroy(&condition_); }
  SteadyCondition(const SteadyCondition&) = delete;
  SteadyCondition& operator=(const SteadyCondition&) = delete;

  void notify_one() noexcept { pthread_cond_signal(&condition_); }

  /// Waits until `is_met()`, which is asked first and after each notification. The lock is held when it is asked, and
  /// on return.
  template <class IsMet>
  void wait(std::unique_lock<std::mutex>& lock, IsMet is_met) {
    while (!is_met()) pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  /// The same, but no longer than that.
  template <class IsMet>
  void wait_for(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds longest, IsMet is_met) {
    const timespec end = from_now(longest);
    int error = 0;
    while (!is_met() && error == 0) {
      error = pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &end);
    }
  }

 private:
  static timespec from_now(std::chrono::nanoseconds time) noexcept {
    constexpr long second = 1'000'000'000;
    timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += time.count() / second;
    end.tv_nsec += time.count() % second;
    if (end.tv_nsec < second) return end;
    ++end.tv_sec;
    end.tv_nsec -= second;
    return end;
  }

  pthread_cond_t condition_;
};

}  // namespace gapless

// The lock of one endpoint. Mostly one thread has the endpoint, so taking it is one write to a cache line that the
// thread has already; a thread that finds it taken lets others run.
#pragma once

#include <atomic>
#include <thread>

#include "base/pause.hpp"

namespace gapless::mpi::endpoints {

/// A Lockable, for std::lock_guard and std::unique_lock.
class Lock {
 public:
  bool try_lock() noexcept {
    return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
  }
  void lock() noexcept {
    for (unsigned rounds = 1; !try_lock(); ++rounds) rounds % 64 == 0 ? std::this_thread::yield() : pause();
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace gapless::mpi::endpoints

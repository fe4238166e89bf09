// What moves messages of endpoints on while threads wait.
//
// A waiting thread drives its own endpoint (Dinan et al., 2014, section 3.4). A thread of the program that is inside a
// blocking call of the library cannot; while such a thread is there and endpoints have operations under way, one thread
// of gapless drives all of them. It also does so now and then whatever the program's threads do, for operations may
// begin when a thread is inside the library already.
#pragma once

#include <chrono>
#include <thread>

#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints {

/// Takes in messages that have arrived for the endpoint, and looks whether the library has moved its bytes.
void progress(Endpoint& endpoint);

/// The same for every endpoint of the process: one thread may have begun work on several, and waits for one.
void progress_of_all();

/// Has the library move on what the process has there, such as receives of processes: who sends to those may be whom an
/// endpoint waits for.
void poke_library() noexcept;

/// progress_of_all() in one of many calls, where anything is under way. A program repeats tests of others' requests
/// until they succeed, which may depend on what its endpoints do.
void progress_now_and_then();

/// Starts gapless's thread, the first time.
void begin_progress() noexcept;
/// Operations move memory of that GPU, which gapless's thread then works for.
void note_gpu(int device) noexcept;

/// Returns once the sends of endpoints whose handles are freed have left this process, which their receivers may have
/// to be awaited for.
void finish_sends();

/// Precondition: no endpoint is left. Ends gapless's thread.
void end_progress();

/// Lets other threads run. Who has waited for so many rounds, some milliseconds, can wait a little longer, and yielding
/// does not help threads of other processes for which there is no core.
inline void give_way(unsigned rounds) {
  constexpr unsigned long_wait = 1 << 15;
  if (rounds > long_wait) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  } else {
    std::this_thread::yield();
  }
}

/// Gives way now and then, for threads that wait may be more than there are cores. In the first microsecond there is no
/// pause: on some processors it takes as long as half a message, and most that a thread waits for are there by then.
class Patience {
 public:
  void wait() {
    constexpr unsigned rounds_at_once = 64;
    if (++rounds_ % 4096 == 0) progress_of_all();
    if (rounds_ % 64 == 0) {
      give_way(rounds_);
    } else if (rounds_ > rounds_at_once) {
      pause();
    }
  }

 private:
  unsigned rounds_ = 0;
};

/// Calls `drive()` until the condition is met, and looks at once after each call whether that was enough.
template <class Drive, class Condition>
void repeat_until(Drive drive, Condition is_met) {
  if (is_met()) return;
  for (Patience patience;; patience.wait()) {
    drive();
    if (is_met()) return;
  }
}

template <class Condition>
void drive_until(Endpoint& endpoint, Condition is_met) {
  repeat_until([&] { progress(endpoint); }, is_met);
}

inline void drive_until_done(const Task& task) {
  drive_until(*task.endpoint, [&] { return task.is_done(); });
}

/// Stands around a call of the library that may block. Gapless's thread helps at once where it `wakes`, which is a
/// system call; else when that thread looks next.
class InLibrary {
 public:
  explicit InLibrary(bool wakes = true) noexcept : counted_(has_outstanding_operations()) {
    if (counted_) enter(wakes);
  }
  ~InLibrary() {
    if (counted_) leave();
  }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;

 private:
  static void enter(bool wakes) noexcept;
  static void leave() noexcept;
  bool counted_;
};

}  // namespace gapless::mpi::endpoints

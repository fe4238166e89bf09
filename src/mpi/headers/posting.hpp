// Receives of several threads, one of which probes. A probe takes messages for others out of the library into the stash
// (matched.hpp), so a receive has to look there, and to be given to the library before anything else is stashed: what
// is stashed between the two would be received too late, or never.
//
// As long as no thread has probed, all that costs is a load. From then on a receive that waits is one under a request,
// for nothing may be stashed while it is given to the library, and much may be while it waits.
#pragma once

#include <atomic>

namespace gapless::mpi::headers {

namespace internal {
extern std::atomic<bool> threads_probe;
}  // namespace internal

/// Has any thread of a program with MPI_THREAD_MULTIPLE probed where headers are looked for?
inline bool do_threads_probe() noexcept { return internal::threads_probe.load(std::memory_order_acquire); }

/// While one lives, no other thread stashes anything. The program's error handler, once the library has refused what is
/// posted, may post and stash itself, or leave the call by longjmp.
class Posting {
 public:
  Posting() noexcept {
    if (do_threads_probe()) begin();
  }
  ~Posting() {
    if (locks_) end();
  }
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

 private:
  void begin() noexcept;
  void end() noexcept;

  bool locks_ = false;
};

/// While one lives, of a thread that probes, no other gives receives to the library.
class Stashing {
 public:
  Stashing() noexcept;
  ~Stashing();
  Stashing(const Stashing&) = delete;
  Stashing& operator=(const Stashing&) = delete;

 private:
  bool locks_;
  bool is_inside_ = false;  ///< of a call of this thread that posts
};

}  // namespace gapless::mpi::headers

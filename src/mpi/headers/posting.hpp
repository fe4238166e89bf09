// Receives of several threads, of which one probes. A probe may take messages for other threads out of the library into
// the stash (matched.hpp). So a receive has to look into the stash, and to be given to the library before any other
// message is stashed: a message that is stashed in between would be received too late, or never.
//
// As long as no thread has probed, the cost is a load. The first probe waits a while for receives that have just loaded
// and are on their way to the library; the library is not known to have them then. From then on a blocking receive
// becomes a receive under a request: nothing may be stashed while the receive is given to the library, and messages may
// be stashed while the receive waits.
#pragma once

#include <atomic>

namespace gapless::mpi::headers {

namespace internal {
extern std::atomic<bool> threads_probe;
}  // namespace internal

/// Has any thread of a program with MPI_THREAD_MULTIPLE probed where headers are looked for?
inline bool do_threads_probe() noexcept { return internal::threads_probe.load(std::memory_order_acquire); }

/// While the object lives, no other thread stashes anything. If the library refuses the call, the program's error
/// handler may post and stash itself, or leave the call by longjmp: the lock is then held until the thread calls MPI
/// again.
class Posting {
 public:
  /// A call that the library refuses matches no message, and needs no lock: `is_refused()` tells those that are easily
  /// told.
  template <class IsRefused>
  explicit Posting(IsRefused is_refused) noexcept {
    if (do_threads_probe() && !is_refused()) begin();
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

/// While the object lives, in a thread that probes, no other thread gives receives to the library.
class Stashing {
 public:
  Stashing() noexcept;
  ~Stashing();
  Stashing(const Stashing&) = delete;
  Stashing& operator=(const Stashing&) = delete;

 private:
  bool locks_;
  bool is_inside_ = false;  ///< does this thread hold the lock of a Posting?
};

}  // namespace gapless::mpi::headers

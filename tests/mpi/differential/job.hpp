// What the processes of a run tell each other and the driver, in a file that all of them map: how far each is, and how
// it ended. It shares nothing with MPI, so it holds when a call of MPI crashes, and disturbs no message.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace gapless::test::differential {

/// How a process is doing; run.py knows the same numbers.
enum class State : std::int64_t { starting, running, done, signal, heap_damaged, left_early };

/// One thread of one rank. run.py reads the same fields in the same order.
struct Slot {
  std::atomic<std::int64_t> state;
  std::atomic<std::int64_t> case_number;
  std::atomic<std::int64_t> stage;
  std::atomic<std::int64_t> checks;
  std::atomic<std::int64_t> detail;  ///< the signal's number
  std::atomic<std::int64_t> packed_messages;
  std::atomic<std::int64_t> under_gapless;
  std::atomic<std::int64_t> process;
};

inline constexpr int max_threads = 8;
inline constexpr int max_ranks = 8;

/// Stages of the case with ordinal number k are 4 k + one of these.
enum class Stage { begun, posted, finished, cleared };

class Job {
 public:
  /// Maps `path`, which the driver made. Ends the process if it cannot.
  Job(const char* path, int rank, int ranks);

  Slot& slot(int rank, int thread) const { return slots_[rank * max_threads + thread]; }
  Slot& mine(int thread) const { return slot(rank_, thread); }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void reach(int thread, int ordinal, Stage stage) const;
  /// Waits until `rank` is at least so far, calling `progress` meanwhile.
  void wait_for(int rank, int thread, int ordinal, Stage stage, const std::function<void()>& progress) const;
  void wait_for_all(int thread, int ordinal, Stage stage, const std::function<void()>& progress) const;

  /// From now on signals that end the process and calls of exit() are noted in this thread's or every slot.
  void note_ends() const;

 private:
  Slot* slots_;
  int rank_;
  int ranks_;
};

/// The thread's number, for the note a signal leaves.
void set_thread_number(int thread);

}  // namespace gapless::test::differential

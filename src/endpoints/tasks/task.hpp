// What a request of an endpoint stands for: one message, or a schedule of many. Its outcome, and who learns that it is
// done.
#pragma once

#include <array>
#include <atomic>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

namespace internal {

/// Tasks that nobody may be waiting for, counted in several places, so that endpoints seldom write to the same.
struct alignas(64) Count {
  std::atomic<int> tasks{0};
};
extern std::array<Count, 8> outstanding;
/// False: all of these are 0. Every call of the program asks that, so one line that is seldom written answers.
struct alignas(64) Hint {
  std::atomic<bool> may_be_outstanding{false};
};
extern Hint hint;
/// Asks the counts, and has the hint say what they say.
bool is_any_outstanding() noexcept;

inline Count& count_of(const Endpoint& endpoint) noexcept {
  return outstanding[static_cast<std::size_t>(endpoint.local) % outstanding.size()];
}
inline void count_one(Count& count) noexcept {
  count.tasks.fetch_add(1);
  if (!hint.may_be_outstanding.load()) hint.may_be_outstanding.store(true);
}

}  // namespace internal

struct Task {
  Endpoint* endpoint = nullptr;  ///< kept by the request, or by the call that waits
  bool receives = false;         ///< its status tells of a message
  bool outlives_call = false;    ///< nobody may be waiting for it
  bool is_abandoned = false;     ///< nobody ever will: it ends itself
  internal::Count* counted_in = nullptr;

  // The outcome, valid once `done`.
  int source = MPI_PROC_NULL;
  int tag = MPI_ANY_TAG;
  int code = MPI_SUCCESS;
  MPI_Count bytes = 0;
  bool cancelled = false;
  std::atomic<bool> done{false};

  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual void cancel() noexcept {}
  bool is_done() const noexcept { return done.load(std::memory_order_acquire); }
};

void begin(Task& task) noexcept;
/// The task may be gone afterwards.
void complete(Task& task) noexcept;

/// `status` may be MPI_STATUS_IGNORE.
void set_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled) noexcept;
void set_status(MPI_Status* status, const Task& task) noexcept;

/// Have tasks that outlive their calls begun and not ended in this process?
inline bool has_outstanding_operations() noexcept {
  return internal::hint.may_be_outstanding.load(std::memory_order_relaxed) && internal::is_any_outstanding();
}

}  // namespace gapless::mpi::endpoints

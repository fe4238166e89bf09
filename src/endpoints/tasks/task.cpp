#include "endpoints/tasks/task.hpp"

#include <algorithm>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints {
namespace internal {

std::array<Count, 8> outstanding;
Hint hint;

namespace {

bool are_counted() noexcept {
  return std::any_of(outstanding.begin(), outstanding.end(),
                     [](const Count& count) { return count.tasks.load() != 0; });
}

}  // namespace

bool is_any_outstanding() noexcept {
  if (are_counted()) return true;
  // Who begins a task counts it before it looks at the hint, so one of both sees the other.
  hint.may_be_outstanding.store(false);
  if (!are_counted()) return false;
  hint.may_be_outstanding.store(true);
  return true;
}

}  // namespace internal

void begin(Task& task) noexcept {
  if (task.outlives_call) {
    task.counted_in = &internal::count_of(*task.endpoint);
    internal::count_one(*task.counted_in);
  }
  task.done.store(false, std::memory_order_relaxed);
}

void complete(Task& task) noexcept {
  if (task.outlives_call) task.counted_in->tasks.fetch_sub(1, std::memory_order_relaxed);
  if (task.is_abandoned) {
    delete &task;
  } else {
    task.done.store(true, std::memory_order_release);
  }
}

void set_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  native.Status_set_elements_x(status, MPI_BYTE, bytes);
  native.Status_set_cancelled(status, cancelled ? 1 : 0);
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
}

void set_status(MPI_Status* status, const Task& task) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  if (task.receives) {
    set_status(status, task.source, task.tag, task.bytes, task.cancelled);
  } else {
    set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, task.cancelled);
  }
}

}  // namespace gapless::mpi::endpoints

#include "endpoints/delivery/task.hpp"

#include "endpoints/delivery/requests.hpp"
#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints {
namespace {

std::atomic<int> outstanding{0};

}  // namespace

void begin(Task& task) noexcept {
  outstanding.fetch_add(1, std::memory_order_relaxed);
  task.done.store(false, std::memory_order_relaxed);
}

void complete(Task& task) noexcept {
  const Notice notice = task.notice;
  const MPI_Request request = task.request;
  const int signal = task.signal;
  outstanding.fetch_sub(1, std::memory_order_relaxed);
  task.done.store(true, std::memory_order_release);
  if (notice == Notice::generalised) native.Grequest_complete(request);
  if (notice == Notice::persistent) requests::send_signal(signal);
}

void set_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  native.Status_set_elements_x(status, MPI_BYTE, bytes);
  native.Status_set_cancelled(status, cancelled ? 1 : 0);
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
}

void set_status(MPI_Status* status, const Task& task) noexcept {
  if (task.receives) {
    set_status(status, task.source, task.tag, task.bytes, task.cancelled);
  } else {
    set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, task.cancelled);
  }
}

int outstanding_operations() noexcept { return outstanding.load(std::memory_order_relaxed); }

}  // namespace gapless::mpi::endpoints

#include "endpoints/delivery/requests.hpp"

#include <exception>
#include <unordered_map>
#include <utility>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::requests {
namespace {

std::uintptr_t key_of(MPI_Request request) noexcept {
#if defined(GAPLESS_VARIANT_MPICH)
  return static_cast<std::uint32_t>(request);
#else
  return reinterpret_cast<std::uintptr_t>(request);
#endif
}

/// Many small tables, so that threads seldom wait for each other.
struct Shard {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, Task*> tasks;
};

std::atomic<int> count{0};

Shard& shard_of(MPI_Request request) {
  static auto& all = *new std::array<Shard, 64>;
  return all[(static_cast<std::uint64_t>(key_of(request)) * 0x9e3779b97f4a7c15u) >> 58];
}

std::vector<Failure>& failures() {
  static thread_local std::vector<Failure> all;
  return all;
}

void note_failure(const Task& task) noexcept {
  if (task.code == MPI_SUCCESS) return;
  try {
    failures().push_back({task.request, task.code, task.endpoint});
  } catch (const std::exception&) {
  }
}

int query(void* state, MPI_Status* status) {
  const auto& task = *static_cast<Task*>(state);
  set_status(status, task);
  // Reported by whoever completes the request, through the endpoint's handler, which the library does not know.
  note_failure(task);
  return MPI_SUCCESS;
}

int enter(Task* task) noexcept {
  try {
    Shard& shard = shard_of(task->request);
    const std::lock_guard lock(shard.mutex);
    shard.tasks[key_of(task->request)] = task;
    count.fetch_add(1, std::memory_order_relaxed);
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

void leave(const Task& task) noexcept {
  Shard& shard = shard_of(task.request);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.tasks.find(key_of(task.request));
  if (found == shard.tasks.end() || found->second != &task) return;
  shard.tasks.erase(found);
  count.fetch_sub(1, std::memory_order_relaxed);
}

int free_task(void* state) {
  const std::unique_ptr<Task> task(static_cast<Task*>(state));
  leave(*task);
  return MPI_SUCCESS;
}

int cancel_nothing(void*, int) { return MPI_SUCCESS; }

/// Where this process sends signals to itself.
MPI_Comm signals() noexcept {
  static const MPI_Comm made = [] {
    MPI_Comm comm = MPI_COMM_NULL;
    if (inner.Comm_split(MPI_COMM_SELF, 0, 0, &comm) == MPI_SUCCESS) inner.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
  }();
  return made;
}

/// No two persistent requests alive have the same, for MPI promises as many tags.
int next_signal() noexcept {
  static std::atomic<unsigned> next{0};
  return static_cast<int>(next.fetch_add(1) % 32768);
}

/// Tasks whose persistent requests were freed while they were under way.
struct Orphans {
  std::mutex mutex;
  std::vector<std::unique_ptr<Task>> tasks;
};

Orphans& orphans() {
  static auto& all = *new Orphans;
  return all;
}

}  // namespace

int make(Task* task, MPI_Request* request) noexcept {
  int code = native.Grequest_start(query, free_task, cancel_nothing, task, &task->request);
  if (code != MPI_SUCCESS) return code;
  *request = task->request;
  code = enter(task);
  if (code == MPI_SUCCESS) {
    task->notice = Notice::generalised;
  } else {
    native.Grequest_complete(*request);
    inner.Request_free(request);
  }
  return code;
}

int make_persistent(Task* task, MPI_Request* request) noexcept {
  std::unique_ptr<Task> owner(task);
  task->signal = next_signal();
  int code = signals() == MPI_COMM_NULL
                 ? MPI_ERR_OTHER
                 : native.Recv_init(nullptr, 0, MPI_BYTE, 0, task->signal, signals(), &task->request);
  if (code != MPI_SUCCESS) return code;
  code = enter(task);
  if (code != MPI_SUCCESS) {
    native.Request_free(&task->request);
    return code;
  }
  task->notice = Notice::persistent;
  *request = owner.release()->request;
  return MPI_SUCCESS;
}

int activate(Task& task) noexcept {
  if (task.active) return MPI_ERR_REQUEST;
  const int code = native.Start(&task.request);
  if (code == MPI_SUCCESS) task.active = true;
  return code;
}

void send_signal(int signal) noexcept { native.Send(nullptr, 0, MPI_BYTE, 0, signal, signals()); }

void finish_persistent(Task& task, MPI_Status* status) noexcept {
  task.active = false;
  set_status(status, task);
  note_failure(task);
}

int free_persistent(Task& task, MPI_Request* request) noexcept {
  leave(task);
  std::unique_ptr<Task> owner(&task);
  const std::lock_guard lock(orphans().mutex);
  std::erase_if(orphans().tasks, [](const auto& orphan) { return orphan->done.load(std::memory_order_acquire); });
  if (task.active && !task.done.load(std::memory_order_acquire)) {
    try {
      orphans().tasks.push_back(std::move(owner));
    } catch (const std::exception&) {
      static_cast<void>(owner.release());  // kept for good: others still write to it
    }
  }
  return native.Request_free(request);
}

Task* find(MPI_Request request) noexcept {
  if (are_none() || request == MPI_REQUEST_NULL) return nullptr;
  Shard& shard = shard_of(request);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.tasks.find(key_of(request));
  return found == shard.tasks.end() ? nullptr : found->second;
}

bool are_none() noexcept { return count.load(std::memory_order_relaxed) == 0; }

std::vector<Failure> take_failures() noexcept { return std::exchange(failures(), {}); }

}  // namespace gapless::mpi::endpoints::requests

#include "endpoints/tasks/requests.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::requests {
namespace {

/// From handles to requests, by open addressing. Entries are never taken out, so readers need no lock.
struct Table {
  struct Entry {
    std::atomic<std::uintptr_t> key{0};
    std::atomic<Request*> request{nullptr};
  };
  explicit Table(unsigned size_bits) : bits(size_bits), entries(std::size_t{1} << size_bits) {}
  std::size_t first_of(std::uintptr_t key) const noexcept {
    return (static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u) >> (64 - bits);
  }
  void enter(Request& request) noexcept {
    const std::uintptr_t key = number_of(request.handle);
    std::size_t at = first_of(key);
    while (entries[at].key.load(std::memory_order_relaxed) != 0) at = (at + 1) % entries.size();
    entries[at].request.store(&request, std::memory_order_relaxed);
    entries[at].key.store(key, std::memory_order_release);
  }
  const unsigned bits;
  std::vector<Entry> entries;
};

std::atomic<Table*> table{nullptr};

/// All there are, and those that no thread keeps for itself.
struct Requests {
  std::mutex mutex;
  std::vector<std::unique_ptr<Request>> all;
  std::vector<std::unique_ptr<Table>> tables;  ///< the last is in use; others may still be read
  Request* free = nullptr;
  std::vector<Request*> abandoned;  ///< whose operations are under way
};

Requests& requests() {
  static auto& one = *new Requests;
  return one;
}

/// Those that a thread keeps, so that lending takes no lock.
struct Kept {
  static constexpr int most = 256;
  Request* first = nullptr;
  int count = 0;
  ~Kept() {
    const std::lock_guard lock(requests().mutex);
    while (first != nullptr) {
      Request* const request = std::exchange(first, first->next);
      request->next = std::exchange(requests().free, request);
    }
  }
};
thread_local Kept kept;

int query_nothing(void*, MPI_Status* status) {
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
  return MPI_SUCCESS;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

/// Precondition: the mutex is held.
void enter(Request& request) {
  Requests& all = requests();
  Table* const old = table.load(std::memory_order_relaxed);
  if (old != nullptr && 2 * all.all.size() < old->entries.size()) return old->enter(request);
  constexpr unsigned first_bits = 10;
  all.tables.push_back(std::make_unique<Table>(old == nullptr ? first_bits : old->bits + 1));
  for (const auto& other : all.all) {
    if (other.get() != &request) all.tables.back()->enter(*other);
  }
  all.tables.back()->enter(request);
  table.store(all.tables.back().get(), std::memory_order_release);
}

/// One more, of a handle that the library has not given before. Precondition: the mutex is held.
Request* add() {
  Requests& all = requests();
  all.all.push_back(std::make_unique<Request>());
  Request& made = *all.all.back();
  if (native.Grequest_start(query_nothing, free_nothing, cancel_nothing, nullptr, &made.handle) != MPI_SUCCESS) {
    all.all.pop_back();
    return nullptr;
  }
  enter(made);
  return &made;
}

/// A request that is lent to nothing yet; null if there is none to be had.
Request* take() noexcept {
  if (kept.first != nullptr) {
    --kept.count;
    return std::exchange(kept.first, kept.first->next);
  }
  try {
    const std::lock_guard lock(requests().mutex);
    if (requests().free != nullptr) return std::exchange(requests().free, requests().free->next);
    return add();
  } catch (const std::exception&) {
    return nullptr;
  }
}

Request* take_for(Task* task) noexcept {
  std::unique_ptr<Task> owner(task);
  Request* const request = take();
  if (request == nullptr) return nullptr;
  request->endpoint = share(*task->endpoint);
  request->schedule = std::move(owner);
  request->task = task;
  return request;
}

}  // namespace

Request* acquire(const std::shared_ptr<Endpoint>& endpoint) noexcept {
  Request* const request = take();
  if (request == nullptr) return nullptr;
  request->endpoint = endpoint;
  request->operation.emplace();
  request->task = &*request->operation;
  request->task->outlives_call = true;
  return request;
}

MPI_Request of_sent() noexcept {
  static Request* const one = [] {
    Request* const request = take();
    if (request == nullptr) return request;
    static auto& sent = *new Task;
    sent.done.store(true);
    request->task = &sent;
    return request;
  }();
  return one == nullptr ? MPI_REQUEST_NULL : one->handle;
}

void release(Request& request) noexcept {
  if (request.endpoint == nullptr) return;  // of_sent's
  request.task = nullptr;
  request.operation.reset();
  request.schedule.reset();
  request.endpoint.reset();
  request.is_persistent = false;
  request.is_active = true;
  if (kept.count < Kept::most) {
    ++kept.count;
    request.next = std::exchange(kept.first, &request);
    return;
  }
  const std::lock_guard lock(requests().mutex);
  request.next = std::exchange(requests().free, &request);
}

int make(Task* task, MPI_Request* handle) noexcept {
  Request* const request = take_for(task);
  if (request == nullptr) return MPI_ERR_NO_MEM;
  *handle = request->handle;
  return MPI_SUCCESS;
}

int make_persistent(Task* task, MPI_Request* handle) noexcept {
  Request* const request = take_for(task);
  if (request == nullptr) return MPI_ERR_NO_MEM;
  request->is_persistent = true;
  request->is_active = false;
  *handle = request->handle;
  return MPI_SUCCESS;
}

void abandon(Request& request) noexcept {
  if (!request.is_active) return release(request);
  std::vector<Request*> over;
  try {
    const std::lock_guard lock(requests().mutex);
    auto& all = requests().abandoned;
    over.reserve(all.size() + 1);
    all.push_back(&request);
    const auto first_over = std::partition(all.begin(), all.end(), [](const Request* one) { return !one->is_done(); });
    over.assign(first_over, all.end());
    all.erase(first_over, all.end());
  } catch (const std::exception&) {  // kept for good: others may still write to it
  }
  for (Request* one : over) release(*one);
}

Request* find(MPI_Request handle) noexcept {
  const Table* const known = table.load(std::memory_order_acquire);
  if (known == nullptr) return nullptr;
  const std::uintptr_t key = number_of(handle);
  for (std::size_t at = known->first_of(key);; at = (at + 1) % known->entries.size()) {
    const std::uintptr_t here = known->entries[at].key.load(std::memory_order_acquire);
    if (here == key) return known->entries[at].request.load(std::memory_order_relaxed);
    if (here == 0) return nullptr;
  }
}

bool are_none() noexcept { return table.load(std::memory_order_relaxed) == nullptr; }

std::size_t handle_count() noexcept {
  const std::lock_guard lock(requests().mutex);
  return requests().all.size();
}

void end() noexcept {
  const std::lock_guard lock(requests().mutex);
  table.store(nullptr, std::memory_order_release);
  for (const auto& request : requests().all) {
    native.Grequest_complete(request->handle);
    native.Request_free(&request->handle);
  }
}

}  // namespace gapless::mpi::endpoints::requests

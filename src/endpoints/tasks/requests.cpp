#include "endpoints/tasks/requests.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::requests {

std::atomic<Table*> table{nullptr};

void Table::enter(Request& request) noexcept {
  const std::uintptr_t key = number_of(request.handle);
  std::size_t at = first_of(key);
  while (entries[at].key.load(std::memory_order_relaxed) != 0) at = (at + 1) % entries.size();
  entries[at].request.store(&request, std::memory_order_relaxed);
  entries[at].key.store(key, std::memory_order_release);
}

namespace {

/// All there are, and those that no thread keeps for itself.
struct Requests {
  std::mutex mutex;
  std::vector<std::unique_ptr<Request>> all;
  std::vector<std::unique_ptr<Table>> tables;  ///< the last is in use; others may still be read
  Request* free = nullptr;
  std::vector<Request*> abandoned;  ///< whose operations are under way, or have ended lately
  std::size_t next_to_look_at = 0;  ///< among those
};
constinit std::atomic<std::size_t> abandoned_count{0};

Requests& requests() {
  static auto& one = *new Requests;
  return one;
}

/// Those that a thread keeps, so that lending takes no lock.
struct Kept {
  Request* first = nullptr;
  int room = 256;
  bool is_given_back_at_end = false;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Kept kept{};

struct GiveBackAtEnd {
  ~GiveBackAtEnd() {
    const std::lock_guard lock(requests().mutex);
    while (kept.first != nullptr) {
      Request* const request = std::exchange(kept.first, kept.first->next);
      request->next = std::exchange(requests().free, request);
    }
    kept.room = 0;  // what ends after this keeps none
  }
};

[[gnu::noinline]] void give_back_at_end() {
  static thread_local const GiveBackAtEnd at_end;
  kept.is_given_back_at_end = true;
}

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
    ++kept.room;
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
  request->endpoint = task->endpoint;
  {
    const std::lock_guard lock(task->endpoint->lock);
    task->endpoint->keep();
  }
  request->schedule = std::move(owner);
  request->task = task;
  return request;
}

}  // namespace

Request* acquire(Endpoint& endpoint) noexcept {
  Request* const request = take();
  if (request == nullptr) return nullptr;
  request->endpoint = &endpoint;
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

Endpoint* release_alone(Request& request) noexcept {
  if (request.endpoint == nullptr) return nullptr;  // of_sent's
  Endpoint* const endpoint = std::exchange(request.endpoint, nullptr);
  request.task = nullptr;
  request.operation.reset();
  request.schedule.reset();
  request.is_persistent = false;
  request.is_active = true;
  if (kept.room > 0) {
    if (!kept.is_given_back_at_end) give_back_at_end();
    --kept.room;
    request.next = std::exchange(kept.first, &request);
    return endpoint;
  }
  const std::lock_guard lock(requests().mutex);
  request.next = std::exchange(requests().free, &request);
  return endpoint;
}

void release(Request& request) noexcept {
  if (Endpoint* const endpoint = release_alone(request)) endpoint->let_go(1);
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
  try {
    const std::lock_guard lock(requests().mutex);
    requests().abandoned.push_back(&request);
    abandoned_count.store(requests().abandoned.size(), std::memory_order_relaxed);
  } catch (const std::exception&) {  // kept for good: others may still write to it
  }
  constexpr std::size_t few = 4;  // so that many under way cost each call no more
  release_abandoned(few);
}

namespace {

/// Takes out those of the next few that are over, as many as there is room for. `looks`: how many may be looked at.
std::size_t take_out_abandoned(std::size_t& looks, std::span<Request*> over) noexcept {
  Requests& all = requests();
  const std::lock_guard lock(all.mutex);
  std::vector<Request*>& list = all.abandoned;
  looks = std::min(looks, list.size());
  std::size_t found = 0;
  for (; looks > 0 && found < over.size() && !list.empty(); --looks) {
    if (all.next_to_look_at >= list.size()) all.next_to_look_at = 0;
    Request*& one = list[all.next_to_look_at];
    if (!one->is_done()) {
      ++all.next_to_look_at;
      continue;
    }
    over[found++] = std::exchange(one, list.back());
    list.pop_back();
  }
  abandoned_count.store(list.size(), std::memory_order_relaxed);
  return found;
}

}  // namespace

void release_abandoned(std::size_t looks) noexcept {
  while (looks > 0 && abandoned_count.load(std::memory_order_relaxed) != 0) {
    std::array<Request*, 32> over;
    const std::size_t found = take_out_abandoned(looks, over);
    for (Request* const one : std::span(over).first(found)) release(*one);
  }
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

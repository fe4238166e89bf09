#include "mpi/calls/staged/one_sided.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace one_sided {
namespace {

struct Operations {
  std::mutex mutex;  ///< guards what follows
  std::unique_ptr<Operation> first;
  std::unique_ptr<Operation>* last = &first;
};

// Never destroyed: windows may be freed while the process ends.
Operations& operations() noexcept {
  static Operations& instance = *new Operations;
  return instance;
}

std::atomic<std::size_t> under_way{0};

/// Takes the first operation of the window, and of the target unless that is any, off the list.
constexpr int any_target = -1;
std::unique_ptr<Operation> take(MPI_Win window, int target) noexcept {
  Operations& all = operations();
  const std::lock_guard lock(all.mutex);
  for (std::unique_ptr<Operation>* place = &all.first; *place != nullptr; place = &(*place)->next) {
    if ((*place)->window != window || (target != any_target && (*place)->target != target)) continue;
    std::unique_ptr<Operation> found = std::move(*place);
    if (all.last == &found->next) all.last = place;
    *place = std::move(found->next);
    return found;
  }
  return nullptr;
}

/// The library has completed those operations. MPI_SUCCESS, or an error that has been raised.
[[gnu::noinline]] int finish(MPI_Win window, int target) noexcept {
  int code = MPI_SUCCESS;
  while (std::unique_ptr<Operation> operation = take(window, target)) {
    under_way.fetch_sub(1, std::memory_order_relaxed);
    const int ours = operation->memory.finish();
    if (code == MPI_SUCCESS) code = ours;
  }
  return code == MPI_SUCCESS ? code : raise_on_window(window, code);
}

int finish_after(int code, MPI_Win window, int target = any_target) noexcept {
  if (code != MPI_SUCCESS || under_way.load(std::memory_order_relaxed) == 0) return code;
  return finish(window, target);
}

// Synchronisations: while nothing of ours is under way, a call and a load.

int fence(int assertion, MPI_Win window) {
  requests::start_deferred();
  return finish_after(native.Win_fence(assertion, window), window);
}

template <auto function>
int synchronize(MPI_Win window) {
  requests::start_deferred();
  return finish_after((native.*function)(window), window);
}

template <auto function>
int synchronize_with(int target, MPI_Win window) {
  requests::start_deferred();
  return finish_after((native.*function)(target, window), window, target);
}

// What a program leaves under way ends with the window.
int free_window(MPI_Win* window) {
  requests::start_deferred();
  const MPI_Win handle = window != nullptr ? *window : MPI_Win{};
  const int code = native.Win_free(window);
  if (code != MPI_SUCCESS || under_way.load(std::memory_order_relaxed) == 0) return code;
  while (take(handle, any_target) != nullptr) under_way.fetch_sub(1, std::memory_order_relaxed);
  return code;
}

}  // namespace

void begin(std::unique_ptr<Operation> operation, MPI_Win window, int target) noexcept {
  operation->window = window;
  operation->target = target;
  Operations& all = operations();
  const std::lock_guard lock(all.mutex);
  under_way.fetch_add(1, std::memory_order_relaxed);
  *all.last = std::move(operation);
  all.last = &(*all.last)->next;
}

std::size_t how_many() noexcept { return under_way.load(std::memory_order_relaxed); }

}  // namespace one_sided

namespace entry {

const decltype(Native::Win_fence) Win_fence = one_sided::fence;
const decltype(Native::Win_complete) Win_complete = one_sided::synchronize<&Native::Win_complete>;
const decltype(Native::Win_flush) Win_flush = one_sided::synchronize_with<&Native::Win_flush>;
const decltype(Native::Win_flush_all) Win_flush_all = one_sided::synchronize<&Native::Win_flush_all>;
const decltype(Native::Win_flush_local) Win_flush_local = one_sided::synchronize_with<&Native::Win_flush_local>;
const decltype(Native::Win_flush_local_all) Win_flush_local_all = one_sided::synchronize<&Native::Win_flush_local_all>;
const decltype(Native::Win_unlock) Win_unlock = one_sided::synchronize_with<&Native::Win_unlock>;
const decltype(Native::Win_unlock_all) Win_unlock_all = one_sided::synchronize<&Native::Win_unlock_all>;
const decltype(Native::Win_free) Win_free = one_sided::free_window;

}  // namespace entry
}  // namespace gapless::mpi

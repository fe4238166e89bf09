#include "mpi/calls/one_sided/one_sided.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "base/hash.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace one_sided {
namespace {

/// Operations under way, in the order in which they have begun.
template <Operation::Links Operation::*links>
struct List {
  Operation* first = nullptr;
  Operation** last = &first;

  void append(Operation& operation) noexcept {
    (operation.*links).place = last;
    *last = &operation;
    last = &(operation.*links).next;
  }
  void remove(Operation& operation) noexcept {
    Operation::Links& mine = operation.*links;
    *mine.place = mine.next;
    (mine.next != nullptr ? (mine.next->*links).place : last) = mine.place;
    mine = {};
  }
};

/// A synchronisation looks at one list: of its window, or of its window and target. Windows that share a list are few.
struct Operations {
  static constexpr unsigned list_bits = 8;

  std::mutex mutex;  ///< guards what follows
  std::array<List<&Operation::by_window>, std::size_t{1} << list_bits> of_windows;
  std::array<List<&Operation::by_target>, std::size_t{1} << list_bits> of_targets;
  std::uint64_t begun = 0;

  /// Held while operations are finished, so that a thread waits while another one finishes its operation.
  std::mutex finishing;

  auto& of_window(MPI_Win window) noexcept { return of_windows[slot_of(number_of(window), list_bits)]; }
  auto& of_target(MPI_Win window, int target) noexcept {
    return of_targets[slot_of(mix(number_of(window), static_cast<std::uint64_t>(target)), list_bits)];
  }
  void append(Operation& operation) noexcept {
    of_window(operation.window).append(operation);
    of_target(operation.window, operation.target).append(operation);
  }
  void remove(Operation& operation) noexcept {
    of_window(operation.window).remove(operation);
    of_target(operation.window, operation.target).remove(operation);
  }
};

// Never destroyed: windows may be freed while the process ends.
Operations& operations() noexcept {
  static Operations& instance = *new Operations;
  return instance;
}

std::atomic<std::size_t> under_way{0};
constinit std::uint64_t looked_at = 0;  // for tests; guarded as the lists are

/// How many operations have begun so far. A synchronisation does not complete operations that other threads begin
/// meanwhile.
std::uint64_t begun_so_far() noexcept {
  if (under_way.load(std::memory_order_acquire) == 0) return 0;
  const std::lock_guard lock(operations().mutex);
  return operations().begun;
}

void add(Operation& operation, MPI_Win window, int target) noexcept {
  operation.window = window;
  operation.target = target;
  Operations& all = operations();
  const std::lock_guard lock(all.mutex);
  under_way.fetch_add(1, std::memory_order_relaxed);
  operation.number = all.begun++;
  all.append(operation);
}

/// Neither a rank nor any library's constant: MPICH's MPI_PROC_NULL is -1.
constexpr int any_target = std::numeric_limits<int>::min();

/// Takes the operations on the window, and on the target unless that is any_target, among the first `begun` off the
/// list, and returns the first of them; each names the next one. Null if there is none.
Operation* take_of(MPI_Win window, int target, std::uint64_t begun) noexcept {
  Operations& all = operations();
  Operation* taken = nullptr;
  Operation** end = &taken;
  const auto take = [&]<Operation::Links Operation::*links>(const List<links>& list) {
    for (Operation *each = list.first, *next = nullptr; each != nullptr && each->number < begun; each = next) {
      next = (each->*links).next;
      ++looked_at;
      if (each->window != window || (target != any_target && each->target != target)) continue;
      all.remove(*each);
      *end = each;
      end = &each->by_window.next;
    }
  };
  const std::lock_guard lock(all.mutex);
  if (target == any_target) {
    take(all.of_window(window));
  } else {
    take(all.of_target(window, target));
  }
  return taken;
}

/// Calls end(operation) for each of take_of(), which may delete the operation.
template <class End>
void end_all_of(MPI_Win window, int target, std::uint64_t begun, End end) {
  for (Operation *each = take_of(window, target, begun), *next = nullptr; each != nullptr; each = next) {
    next = each->by_window.next;
    end(each);
  }
}

/// Counts an operation that is over. Until then it counts as under way, so that no call overtakes the thread that
/// finishes the operation.
void count_one_less() noexcept { under_way.fetch_sub(1, std::memory_order_release); }

void let_go(Operation* operation) noexcept {
  if (!operation->has_request) delete operation;
  count_one_less();
}

/// Finishes the operations, which the library has completed. MPI_SUCCESS, or an error that has been raised.
[[gnu::noinline]] int finish(MPI_Win window, int target, std::uint64_t begun) noexcept {
  int code = MPI_SUCCESS;
  {
    const std::lock_guard meanwhile(operations().finishing);
    end_all_of(window, target, begun, [&code](Operation* operation) {
      const int ours = operation->memory.finish();
      if (code == MPI_SUCCESS) code = ours;
      let_go(operation);
    });
  }
  return code == MPI_SUCCESS ? code : raise_on_window(window, code);
}

/// Runs the library's synchronisation, and finishes the operations that the synchronisation completes. While no
/// operation is under way here, a call and two loads.
template <class Synchronize>
int synchronized(MPI_Win window, int target, Synchronize synchronize) {
  requests::start_deferred();
  const std::uint64_t begun = begun_so_far();
  const int code = synchronize();
  return code != MPI_SUCCESS || begun == 0 ? code : finish(window, target, begun);
}

int fence(int assertion, MPI_Win window) {
  return synchronized(window, any_target, [&] { return native.Win_fence(assertion, window); });
}

template <auto function>
int synchronize(MPI_Win window) {
  return synchronized(window, any_target, [&] { return (native.*function)(window); });
}

template <auto function>
int synchronize_with(int target, MPI_Win window) {
  return synchronized(window, target, [&] { return (native.*function)(target, window); });
}

// Operations that a program leaves under way end with the window. Another thread may be given the handle as soon as it
// is free, and operations that begin then are another window's.
int free_window(MPI_Win* window) {
  requests::start_deferred();
  const MPI_Win handle = window != nullptr ? *window : MPI_Win{};
  const std::uint64_t begun = begun_so_far();
  const int code = native.Win_free(window);
  if (code != MPI_SUCCESS || begun == 0) return code;
  const std::lock_guard meanwhile(operations().finishing);
  end_all_of(handle, any_target, begun, let_go);
  return code;
}

}  // namespace

void begin(std::unique_ptr<Operation> operation, MPI_Win window, int target) noexcept {
  add(*operation.release(), window, target);
}

Requested::~Requested() {
  if (is_over_) return;
  const std::lock_guard meanwhile(operations().finishing);
  if (take_off_list()) count_one_less();
}

void Requested::begin(MPI_Win window, int target) noexcept { add(operation_, window, target); }

bool Requested::take_off_list() noexcept {
  Operations& all = operations();
  const std::lock_guard lock(all.mutex);
  const bool is_listed = operation_.by_window.place != nullptr;
  if (is_listed) all.remove(operation_);
  return is_listed;
}

int Requested::finish(ReceivedStatus&) noexcept {
  const std::lock_guard meanwhile(operations().finishing);
  is_over_ = true;
  if (!take_off_list()) return MPI_SUCCESS;
  const int code = operation_.memory.finish();
  count_one_less();
  return code;
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

std::uint64_t gapless_operations_looked_at() {
  const std::lock_guard lock(gapless::mpi::one_sided::operations().mutex);
  return gapless::mpi::one_sided::looked_at;
}

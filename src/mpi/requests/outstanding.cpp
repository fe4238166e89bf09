// A hash table of intrusive lists, guarded by a lock that only programs with MPI_THREAD_MULTIPLE take.
#include "mpi/requests/outstanding.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/receives/looked_at.hpp"
#include "transfer/headers/lost_slots.hpp"

namespace gapless::mpi::requests {

std::atomic<std::size_t> internal::outstanding{0};

namespace {

constexpr std::size_t bucket_bits = 10;

/// Requests that the program has freed, the next one to look at first.
struct Freed {
  Pending* first = nullptr;
  Pending* last = nullptr;
  std::size_t number = 0;

  void append(Pending* pending) noexcept {
    pending->next = nullptr;
    (first == nullptr ? first : last->next) = pending;
    last = pending;
    ++number;
  }
  /// Takes the first wanted request off the list; null if there is none.
  template <class IsWanted>
  Pending* take(IsWanted is_wanted) noexcept {
    Pending* before = nullptr;
    for (Pending* pending = first; pending != nullptr; before = std::exchange(pending, pending->next)) {
      if (!is_wanted(*pending)) continue;
      (before == nullptr ? first : before->next) = pending->next;
      if (last == pending) last = before;
      --number;
      return pending;
    }
    return nullptr;
  }
};

// Never destroyed: requests may be completed while the process ends.
struct Table {
  std::mutex mutex;  ///< guards all below
  std::array<Pending*, std::size_t{1} << bucket_bits> buckets{};
  Freed freed_receives;  ///< and all else that may write into the program's memory
  Freed freed_sends;
  Pending* in_hand = nullptr;  ///< freed requests that some call looks at
  std::deque<Pending> places;
  Pending* unused = nullptr;
};

Table& table() noexcept {
  static Table& instance = *new Table;
  return instance;
}

class Lock {
 public:
  Lock() noexcept : locks_(runtime::is_multithreaded()) {
    if (locks_) table().mutex.lock();
  }
  ~Lock() {
    if (locks_) table().mutex.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool locks_;
};

Pending*& bucket_of(MPI_Request handle) noexcept { return table().buckets[slot_of(number_of(handle), bucket_bits)]; }

/// The unclaimed message of that handle; null if there is none. An error handler that has left a call by longjmp has
/// left its messages claimed, and their handles may be other requests' by now. A persistent message keeps its handle,
/// so it can be claimed again. Precondition: the caller has the lock.
Pending* in_bucket(MPI_Request handle) noexcept {
  for (Pending* pending = bucket_of(handle); pending != nullptr; pending = pending->next) {
    if (pending->handle == handle && (!pending->is_claimed || pending->is_persistent)) return pending;
  }
  return nullptr;
}

/// A name of this thread. A message that the thread itself has claimed is one that an error handler has left so.
const void* this_thread() noexcept {
  [[gnu::tls_model("initial-exec")]] static thread_local constinit char own = 0;
  return &own;
}

/// Has another thread's call claimed the message of that handle? Precondition: the caller has the lock.
bool is_held_elsewhere(MPI_Request handle) noexcept {
  for (Pending* pending = bucket_of(handle); pending != nullptr; pending = pending->next) {
    if (pending->handle != handle) continue;
    const void* const thread = pending->in_use()->claiming_thread;
    if (thread != nullptr && thread != this_thread()) return true;
  }
  return false;
}

void push(Pending*& list, Pending* pending) noexcept {
  pending->next = list;
  list = pending;
}

void unlink(Pending*& list, Pending* pending) noexcept {
  Pending** link = &list;
  while (*link != pending) link = &(*link)->next;
  *link = pending->next;
}

// The lists of freed requests change under the lock. The library is asked without it, because the library may call
// functions of the program that call MPI.

constexpr std::size_t all_of_them = std::numeric_limits<std::size_t>::max();
constexpr auto is_any = [](const Pending&) { return true; };

/// Precondition: the caller has the lock.
void add_to_freed(Pending* pending) noexcept {
  const bool may_write = pending->receives() || pending->is_work() || pending->partitions() != nullptr;
  (may_write ? table().freed_receives : table().freed_sends).append(pending);
}

/// Ends a freed request, which is in no list. MPICH tells the status of a persistent request once: a caller
/// `has_status` where it has asked already.
void end_freed(Pending* pending, ReceivedStatus& status, bool has_status) noexcept {
  native.Wait(&pending->handle, has_status ? MPI_STATUS_IGNORE : status.get());
  static_cast<void>(pending->finish(status));
  if (pending->is_persistent || pending->frees_request) native.Request_free(&pending->handle);
  internal::outstanding.fetch_sub(1, std::memory_order_relaxed);
  release(pending);
}

/// Completes the freed requests that are wanted, by waiting.
template <class IsWanted>
void wait_for_freed(IsWanted is_wanted, bool cancels_receives) noexcept {
  for (;;) {
    Pending* pending = nullptr;
    {
      const Lock lock;
      pending = table().freed_receives.take(is_wanted);
      if (pending == nullptr) pending = table().freed_sends.take(is_wanted);
    }
    if (pending == nullptr) return;
    if (cancels_receives) pending->cancel_receive();
    ReceivedStatus status(MPI_STATUS_IGNORE);
    end_freed(pending, status, false);
  }
}

/// Looks at the requests of a list, at most so many, and completes those that are complete. The next call goes on with
/// the others.
void look_at_freed(Freed& list, std::size_t most) noexcept {
  for (std::size_t looks = 0;; ++looks) {
    Pending* pending = nullptr;
    {
      const Lock lock;
      most = std::min(most, looks + list.number);
      if (looks < most) pending = list.take(is_any);
      if (pending == nullptr) return;
      push(table().in_hand, pending);
    }
    int is_complete = 0;
    ReceivedStatus status(MPI_STATUS_IGNORE);
    if (!pending->is_under_way()) native.Request_get_status(pending->handle, &is_complete, status.get());
    {
      const Lock lock;
      unlink(table().in_hand, pending);
      if (is_complete == 0) list.append(pending);
    }
    if (is_complete != 0) end_freed(pending, status, true);
  }
}

/// Puts back the freed requests at which a call was looking that an error handler has left by longjmp.
void put_back_left() noexcept {
  const Lock lock;
  while (Pending* const left = table().in_hand) {
    table().in_hand = left->next;
    add_to_freed(left);
  }
}

/// A message that an error handler has left claimed, as it has left a call by longjmp; null if there is none. Among
/// several threads another one may be completing the message.
Pending* find_left() noexcept {
  if (runtime::is_multithreaded()) return nullptr;
  for (Pending* pending : table().buckets) {
    for (; pending != nullptr; pending = pending->next) {
      if (pending->is_claimed && !pending->is_persistent) return pending;
    }
  }
  return nullptr;
}

bool is_of(const Pending& pending, MPI_Comm communicator) noexcept {
  const ErrorObject& object = pending.error_object;
  return object.kind == ErrorObject::Kind::communicator && object.communicator == communicator;
}

}  // namespace

void count_outstanding(std::ptrdiff_t more) noexcept {
  // Called where one thread alone calls MPI.
  const std::size_t all = internal::outstanding.load(std::memory_order_relaxed);
  internal::outstanding.store(all + static_cast<std::size_t>(more), std::memory_order_relaxed);
}

Pending* acquire() noexcept {
  const Lock lock;
  Table& all = table();
  if (Pending* pending = all.unused) {
    all.unused = pending->next;
    return pending;
  }
  try {
    return &all.places.emplace_back();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void release(Pending* pending) noexcept {
  pending->clear();
  pending->is_claimed = pending->needs_no_unpacking = pending->is_told = pending->is_persistent = false;
  pending->frees_request = pending->is_settled = pending->goes_as_native = pending->is_started = false;
  pending->as_native = pending->of_program = nullptr;
  pending->claiming_thread = nullptr;
  // No operation is under way here, so the program may free memory that has been located.
  if (are_none()) forget_locations();
  const Lock lock;
  push(table().unused, pending);
}

void add(Pending* pending, MPI_Request handle) noexcept {
  pending->handle = handle;
  const Lock lock;
  push(bucket_of(handle), pending);
  internal::outstanding.fetch_add(1, std::memory_order_relaxed);
}

void have_as_native(Pending* pending, MPI_Request handle, std::uint64_t kind) noexcept {
  Pending* as_native = find(handle);
  if (as_native == nullptr) {
    as_native = acquire();
    if (as_native == nullptr) {
      native.Request_free(&handle);
      return;
    }
    as_native->is_persistent = true;
    as_native->function = pending->function;
    as_native->error_object = pending->error_object;
    add(as_native, handle);
  }
  as_native->of_program = pending;
  pending->as_native = as_native;
  pending->kind = kind;
}

void remove(Pending* pending) noexcept {
  const Lock lock;
  unlink(bucket_of(pending->handle), pending);
  internal::outstanding.fetch_sub(1, std::memory_order_relaxed);
}

bool are_native(int count, const MPI_Request* requests) noexcept {
  if (requests == nullptr) return false;
  const Lock lock;
  return table().freed_receives.number + table().freed_sends.number == 0 &&
         std::none_of(requests, requests + std::max(count, 0), in_bucket);
}

Pending* find(MPI_Request handle) noexcept {
  if (looked_at::are_any()) looked_at::promote(handle);
  const Lock lock;
  return in_bucket(handle);
}

Pending* claim(MPI_Request handle) noexcept {
  if (looked_at::are_any()) looked_at::promote(handle);
  const Lock lock;
  Pending* const pending = in_bucket(handle);
  if (pending == nullptr) return nullptr;
  Pending* const in_use = pending->in_use();
  in_use->is_claimed = true;
  // The handle of a request that is not persistent may be another request's before the claim ends.
  if (in_use->is_persistent && runtime::is_multithreaded()) in_use->claiming_thread = this_thread();
  return in_use;
}

Pending* claim_to_look(MPI_Request handle, bool& is_busy) noexcept {
  if (!runtime::is_multithreaded()) return claim(handle);
  const Lock lock;
  if (is_held_elsewhere(handle)) {
    is_busy = true;
    return nullptr;
  }
  Pending* const pending = in_bucket(handle);
  if (pending == nullptr) return nullptr;
  Pending* const in_use = pending->in_use();
  in_use->is_claimed = true;
  in_use->claiming_thread = this_thread();
  return in_use;
}

void unclaim(Pending* pending) noexcept {
  const Lock lock;
  pending->is_claimed = false;
  pending->claiming_thread = nullptr;
}

void end(Pending* pending) noexcept {
  remove(pending);
  if (pending->frees_request) native.Request_free(&pending->handle);
  release(pending);
  if (transfer::headers::may_be_lost()) [[unlikely]]
    headers::look_for_lost_slots();
}

void adopt(Pending* pending) noexcept {
  const Lock lock;
  Pending* const own = pending->programs_own();
  for (Pending* each : {own, std::exchange(own->as_native, nullptr)}) {
    if (each == nullptr) continue;
    unlink(bucket_of(each->handle), each);
    add_to_freed(each);
    each->of_program = nullptr;
  }
  own->goes_as_native = false;
}

void add_freed(Pending* pending, MPI_Request handle) noexcept {
  pending->handle = handle;
  const Lock lock;
  add_to_freed(pending);
  internal::outstanding.fetch_add(1, std::memory_order_relaxed);
}

void complete_freed() noexcept {
  {
    const Lock lock;
    if (table().freed_receives.number + table().freed_sends.number == 0) return;
  }
  // Each costs a call of the library. That a freed receive has arrived the program may know from a later message.
  constexpr std::size_t sends_at_once = 4;
  look_at_freed(table().freed_receives, all_of_them);
  look_at_freed(table().freed_sends, sends_at_once);
}

void end_all() noexcept {
  put_back_left();
  // No request that is complete, or not active, is cancelled.
  look_at_freed(table().freed_receives, all_of_them);
  look_at_freed(table().freed_sends, all_of_them);
  wait_for_freed(is_any, true);
  while (Pending* const left = find_left()) end(left);
  looked_at::forget_left();
}

void complete_freed_of(MPI_Comm communicator) noexcept {
  wait_for_freed([communicator](const Pending& pending) { return is_of(pending, communicator); }, false);
}

void forget_communicator(MPI_Comm communicator) noexcept {
  if (looked_at::are_any()) looked_at::promote_all();
  const Lock lock;
  std::optional<ErrorObject> without;  // only a communicator with a request is known to be one
  const auto forget_in = [&](Pending* list) {
    for (Pending* pending = list; pending != nullptr; pending = pending->next) {
      if (!is_of(*pending, communicator)) continue;
      if (!without) without = error_object_without(communicator);
      pending->error_object = *without;
    }
  };
  for (Pending* list : table().buckets) forget_in(list);
  forget_in(table().freed_receives.first);
  forget_in(table().freed_sends.first);
  forget_in(table().in_hand);
}

}  // namespace gapless::mpi::requests

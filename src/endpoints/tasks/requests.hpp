// The requests of endpoints. Their handles are requests of the library, so that its functions know them, but the
// library never completes them: each is a generalised request (MPI 5.0, 13.2) that is begun once and lent to one
// operation after the other. So an operation under a request costs no call of the library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/hash.hpp"
#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints::requests {

/// What a handle stands for while it is lent. The thread that started it, and then the one that completes it, has it;
/// aligned, as its neighbours may be other threads'.
struct alignas(128) Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  Task* task = nullptr;  ///< null while it is not lent
  std::optional<Operation> operation{};
  std::unique_ptr<Task> schedule{};
  Endpoint* endpoint = nullptr;  ///< which it keeps; null: none
  bool is_persistent = false;
  bool is_active = true;  ///< a persistent one is between its start and its completion
  Request* next = nullptr;

  bool is_done() const noexcept { return task->is_done(); }
};

/// A request for one message, whose operation is new; null if there is no memory. Whoever starts the operation has the
/// request keep the endpoint.
Request* acquire(Endpoint& endpoint) noexcept;
/// The one request that all sends share which were complete at once. The library never completes it.
MPI_Request of_sent() noexcept;
/// The operation is over: the handle may be lent to another, and the endpoint may end.
void release(Request& request) noexcept;
/// Like release(), but the endpoint stays kept. Returns the endpoint, null if there is none.
Endpoint* release_alone(Request& request) noexcept;

/// Makes the request of a task, which belongs to it from then on. An error code, or success.
int make(Task* task, MPI_Request* request) noexcept;
/// Makes the persistent request of a task; it is not active yet. An error code, or success.
int make_persistent(Task* task, MPI_Request* request) noexcept;
/// The program wants no more of it; what is under way still ends.
void abandon(Request& request) noexcept;
/// Releases those abandoned requests that are over, of so many that are looked at. Takes nanoseconds where none are
/// abandoned. Precondition: the thread holds no lock.
void release_abandoned(std::size_t looks) noexcept;
inline constexpr std::size_t all_abandoned = std::numeric_limits<std::size_t>::max();

/// From handles to requests, by open addressing. Entries are never taken out, so readers need no lock.
struct Table {
  struct Entry {
    std::atomic<std::uintptr_t> key{0};
    std::atomic<Request*> request{nullptr};
  };
  explicit Table(unsigned size_bits) : bits(size_bits), entries(std::size_t{1} << size_bits) {}
  std::size_t first_of(std::uintptr_t key) const noexcept { return slot_of(key, bits); }
  void enter(Request& request) noexcept;
  const unsigned bits;
  std::vector<Entry> entries;
};
extern std::atomic<Table*> table;  ///< null before the first request

/// What the handle stands for; null for handles of others. A few nanoseconds, no lock.
inline Request* find(MPI_Request handle) noexcept {
  const Table* const known = table.load(std::memory_order_acquire);
  if (known == nullptr) return nullptr;
  const std::uintptr_t key = number_of(handle);
  for (std::size_t at = known->first_of(key);; at = (at + 1) % known->entries.size()) {
    const std::uintptr_t here = known->entries[at].key.load(std::memory_order_acquire);
    if (here == key) return known->entries[at].request.load(std::memory_order_relaxed);
    if (here == 0) return nullptr;
  }
}
inline bool are_none() noexcept { return table.load(std::memory_order_relaxed) == nullptr; }

/// Gives the library's requests back to it, before MPI_Finalize.
void end() noexcept;

}  // namespace gapless::mpi::endpoints::requests

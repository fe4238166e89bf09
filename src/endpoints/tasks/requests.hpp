// The requests of endpoints. Their handles are requests of the library, so that its functions know them, but the
// library never completes them: each is a generalised request (MPI 5.0, 13.2) that is begun once and lent to one
// operation after the other. So an operation under a request costs no call of the library.
#pragma once

#include <memory>
#include <optional>

#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints::requests {

/// What a handle stands for while it is lent. The thread that started it, and then the one that completes it, has it;
/// aligned, as its neighbours may be other threads'.
struct alignas(128) Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  Task* task = nullptr;  ///< null while it is not lent
  std::optional<Operation> operation{};
  std::unique_ptr<Task> schedule{};
  std::shared_ptr<Endpoint> endpoint{};
  bool is_persistent = false;
  bool is_active = true;  ///< a persistent one is between its start and its completion
  Request* next = nullptr;

  bool is_done() const noexcept { return task->is_done(); }
};

/// A request for one message, whose operation is new; null if there is no memory.
Request* acquire(const std::shared_ptr<Endpoint>& endpoint) noexcept;
/// The request of sends that were complete at once, all the same.
MPI_Request of_sent() noexcept;
/// The operation is over: the handle may be lent to another.
void release(Request& request) noexcept;

/// Makes the request of a task, which belongs to it from then on. An error code, or success.
int make(Task* task, MPI_Request* request) noexcept;
/// The same of a persistent request, which is not active yet.
int make_persistent(Task* task, MPI_Request* request) noexcept;
/// The program wants no more of it; what is under way still ends.
void abandon(Request& request) noexcept;

/// What the handle stands for; null for handles of others. A few nanoseconds, no lock.
Request* find(MPI_Request handle) noexcept;
bool are_none() noexcept;
/// How many handles there are, lent or not.
std::size_t handle_count() noexcept;

/// Gives the library's requests back to it, before MPI_Finalize.
void end() noexcept;

}  // namespace gapless::mpi::endpoints::requests

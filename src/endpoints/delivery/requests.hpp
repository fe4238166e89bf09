// The requests of endpoints are requests of the library, so that its handles, tools and functions know them:
// generalised requests (MPI 5.0, 13.2), and where they are persistent, receives of an empty message that this process
// sends to itself once the task is done, the signal.
#pragma once

#include <memory>
#include <vector>

#include "endpoints/delivery/task.hpp"

namespace gapless::mpi::endpoints::requests {

/// Makes the request of a task, which belongs to it from then on, and is deleted with it. An error code, or success.
int make(Task* task, MPI_Request* request) noexcept;
/// The same of a persistent request, which is not active yet.
int make_persistent(Task* task, MPI_Request* request) noexcept;

/// Makes the persistent request active; the task is to begin then. An error code, or success.
int activate(Task& task) noexcept;
/// The library has completed the persistent request of a task that was active: its status, and its failure.
void finish_persistent(Task& task, MPI_Status* status) noexcept;
/// Ends a persistent request; the task that is under way still ends.
int free_persistent(Task& task, MPI_Request* request) noexcept;
void send_signal(int signal) noexcept;

/// The task of a request, as long as the program has not completed or freed it; null for requests of others.
Task* find(MPI_Request request) noexcept;
bool are_none() noexcept;

/// A task that failed, whose request this thread has just completed or looked at.
struct Failure {
  MPI_Request request;
  int code;
  std::shared_ptr<Endpoint> endpoint;
};
/// The failures since the last call, by this thread.
std::vector<Failure> take_failures() noexcept;

}  // namespace gapless::mpi::endpoints::requests

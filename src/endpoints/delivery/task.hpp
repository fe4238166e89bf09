// What a request of an endpoint stands for: one message, or a schedule of many. Its outcome, and who learns that it is
// done.
#pragma once

#include <atomic>
#include <memory>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

/// What the program's request is in the library, if there is one (requests.hpp).
enum class Notice : std::uint8_t { none, generalised, persistent };

struct Task {
  std::shared_ptr<Endpoint> endpoint;
  bool receives = false;  ///< its status tells of a message

  // The outcome, valid once `done`.
  int source = MPI_PROC_NULL;
  int tag = MPI_ANY_TAG;
  int code = MPI_SUCCESS;
  MPI_Count bytes = 0;
  bool cancelled = false;
  std::atomic<bool> done{false};

  Notice notice = Notice::none;
  MPI_Request request = MPI_REQUEST_NULL;  ///< the program's
  int signal = 0;                          ///< of a persistent one: what completes its request
  bool active = false;                     ///< of a persistent one: started, and not completed by the program yet

  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual void cancel() noexcept {}
};

void begin(Task& task) noexcept;
/// The task may be gone afterwards.
void complete(Task& task) noexcept;

void set_status(MPI_Status* status, int source, int tag, MPI_Count bytes, bool cancelled) noexcept;
void set_status(MPI_Status* status, const Task& task) noexcept;

/// How many tasks have begun and not ended in this process.
int outstanding_operations() noexcept;

}  // namespace gapless::mpi::endpoints

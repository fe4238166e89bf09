// Staged calls that return a request. Their staged memory lives until the request is complete, and is unpacked then.
#pragma once

#include <memory>

#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/work.hpp"

namespace gapless::mpi {

class StagedWork final : public requests::Work {
 public:
  StagedMemory& memory() noexcept { return memory_; }
  /// A failure is told when the call is complete, because the other processes are in the call already, or will be.
  int start() noexcept override {
    memory_.pack();
    return MPI_SUCCESS;
  }
  int finish(ReceivedStatus&) noexcept override { return memory_.finish(); }

 private:
  StagedMemory memory_;
};

/// Makes the call `call(arguments)`, which sets *request, and leaves `work` to the call that completes the request.
/// Errors go to `object`. Returns the call's result.
int place_under_request(std::unique_ptr<requests::Work> work, Life life, const char* function,
                        const ErrorObject& object, MPI_Request* request, int (*call)(const void* arguments),
                        const void* arguments) noexcept;

}  // namespace gapless::mpi

// Cancelling, as the tests of every kind of message do.
#pragma once

#include <mpi.h>

namespace gapless::test {

/// Cancels the message and completes its request. Was it cancelled?
inline int is_cancelled(MPI_Request* request) {
  MPI_Status status;
  int flag = 0;
  MPI_Cancel(request);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &flag);
  return flag;
}

}  // namespace gapless::test

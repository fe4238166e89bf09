// The arguments that all sends have, and those that all receives have. Count is int or MPI_Count.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::headers {

template <class Count>
struct SendArguments {
  const void* memory;
  Count count;
  MPI_Datatype datatype;
  int destination;
  int tag;
  MPI_Comm communicator;

  SendArguments<MPI_Count> with_large_count() const noexcept {
    return {memory, count, datatype, destination, tag, communicator};
  }
};

template <class Count>
struct ReceiveArguments {
  void* memory;
  Count count;
  MPI_Datatype datatype;
  int source;
  int tag;
  MPI_Comm communicator;
};

}  // namespace gapless::mpi::headers

// Staged file access in two steps, MPI_File_..._begin and _end. A file has one access at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::split_access {

struct Access {
  StagedMemory memory;
  MPI_File file{};
  std::unique_ptr<Access> next{};  ///< in the list of accesses under way
};

/// Enters an access that the library has begun.
void begin(std::unique_ptr<Access> access, MPI_File file) noexcept;

/// Accesses that have begun and not ended.
std::size_t how_many() noexcept;

}  // namespace gapless::mpi::split_access

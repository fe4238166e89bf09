// Staged one-sided calls: what they have staged lives until the synchronisation that completes them at their origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::one_sided {

struct Operation {
  StagedMemory memory;
  MPI_Win window{};
  int target = 0;
  std::uint64_t number = 0;           ///< in the order in which operations have begun
  std::unique_ptr<Operation> next{};  ///< in the list of those under way
};

/// The library has begun the operation, on that window and target.
void begin(std::unique_ptr<Operation> operation, MPI_Win window, int target) noexcept;

/// Operations that their windows have not completed.
std::size_t how_many() noexcept;

}  // namespace gapless::mpi::one_sided

// A job as one copy for each contiguous run, in the arrays that cudaMemcpyBatchAsync takes: for lists of long blocks,
// which are no few boxes.
#pragma once

#include <array>
#include <cstddef>

#include "pack/job.hpp"

namespace gapless::pack::cuda {

/// So many take the CPU 0.4 ms or more, and 24 KiB of each thread that copies runs.
inline constexpr Offset most_runs = 1024;

/// Issued at a time: the first are under way while the CPU prepares the others.
inline constexpr std::size_t runs_in_a_call = 32;

struct RunCopies {
  std::array<void*, most_runs> destinations;
  std::array<const void*, most_runs> sources;
  std::array<std::size_t, most_runs> bytes;
  std::size_t count = 0;
  bool unpack = false;
};

/// About as many runs as make up the job; fewer where a sum has parts of several runs. O(depth of the layout).
Offset estimated_runs(const Job& job) noexcept;

/// False where there are more than most_runs, or where unpacked runs lie neither all behind nor all before each other:
/// the copies are done in any order, so no byte may be written twice.
/// Postcondition: the copies, in any order, move exactly the job's bytes. No allocation.
bool plan_runs(const Job& job, RunCopies& runs) noexcept;

}  // namespace gapless::pack::cuda

// A job as a few copies of boxes, which the GPU's copy engines do without its multiprocessors.
//
// A box is what cudaMemcpy2DAsync and cudaMemcpy3DAsync take: rows of one length, one distance apart, in planes that
// are a whole number of rows apart. Rows are dense on the packed side. What a byte range cuts off at either end becomes
// boxes of its own.
#pragma once

#include <cstdint>

#include "pack/job.hpp"

namespace gapless::pack::gpu {

struct BoxCopy {
  std::uintptr_t memory;  ///< address of the first byte
  std::uintptr_t packed;
  std::uint64_t row;  ///< bytes
  std::uint64_t rows;
  std::uint64_t planes;
  std::uint64_t row_distance;    ///< bytes of memory from one row to the next; at least `row`
  std::uint64_t plane_distance;  ///< the same for planes; a multiple of row_distance, at least `rows` of them
};

/// Each copy takes the CPU and the copy engine two to three microseconds to start.
inline constexpr int most_copies = 8;

struct CopyPlan {
  BoxCopy copies[most_copies];
  int count;
  bool unpack;
  std::uint64_t rows;  ///< in all copies together
};

/// False where most_copies boxes are not enough, or rows overlap.
/// Postcondition: the copies, one after the other, move exactly the job's bytes. No allocation.
bool plan_copies(const Job& job, CopyPlan& plan) noexcept;

}  // namespace gapless::pack::gpu

// A batch of jobs by value in a kernel's parameters.
//
// Nothing has to be uploaded or kept until the kernel has run, and a captured batch replays by itself.
#pragma once

#include "pack/gpu/batch/fused.hpp"
#include "pack/gpu/kernel/block.hpp"
#include "pack/gpu/kernel/completion.hpp"

namespace gapless::pack::gpu {

inline constexpr std::uint32_t work_unit = 8;  // bytes

/// Where a job's work begins, in units, and what it is.
struct BatchEntry {
  std::uint16_t position;
  FusedTag tag;
};

/// Kernel parameters. The larger they are the longer a launch takes, hence several sizes.
template <std::size_t job_capacity, std::size_t work_capacity>
struct BatchParameters {
  static constexpr std::size_t max_jobs = job_capacity;
  static constexpr std::size_t max_work_bytes = work_capacity;

  Completion completion;
  std::uint32_t job_count;
  std::uint32_t end_tiles[job_capacity];  ///< tiles of this and all earlier jobs; beyond the last job, all ones
  BatchEntry entries[job_capacity];
  alignas(work_unit) std::byte works[work_capacity];
};

using SmallBatch = BatchParameters<32, 1760>;    // the 26 regions around a cube, within 2 KiB
using MediumBatch = BatchParameters<64, 3552>;   // within 4 KiB
using LargeBatch = BatchParameters<256, 30656>;  // within the 32764 bytes that CUDA allows
static_assert(sizeof(SmallBatch) <= 2048 && sizeof(MediumBatch) <= 4096 && sizeof(LargeBatch) <= 32764);

/// The job that a tile of the batch belongs to. Must be called by all threads of a warp.
template <class Parameters>
GAPLESS_HOST_DEVICE std::uint32_t job_of_tile(const Parameters& batch, std::uint32_t tile) noexcept {
  // All at once: each step of a search would wait for the constant cache.
  if constexpr (Parameters::max_jobs == lanes_per_warp) {
    return count_lanes([&](std::uint32_t lane) { return batch.end_tiles[lane] <= tile; });
  } else {
    return first_end_after(batch.end_tiles, 0u, batch.job_count, tile);
  }
}

/// A tile of one of the batch's jobs.
struct BatchTile {
  FusedTag tag;
  std::uint32_t position;  ///< of the job's work, in bytes
  std::uint32_t tile;      ///< of the job
};

/// The tile that is number `tile` of the batch. Must be called by all threads of a warp.
template <class Parameters>
GAPLESS_HOST_DEVICE BatchTile find_tile(const Parameters& batch, std::uint32_t tile) noexcept {
  const std::uint32_t job = job_of_tile(batch, tile);
  const std::uint32_t first = job == 0 ? 0 : batch.end_tiles[job - 1];
  return {batch.entries[job].tag, batch.entries[job].position * work_unit, tile - first};
}

}  // namespace gapless::pack::gpu

// A batch of more jobs than parameters have room for, as a table in GPU memory.
//
// A block finds its tile's job in two steps, however many jobs there are. Every job has a tile at least, so from the
// job of the last tile whose number is a multiple of 32, which the table names, it is at most 31 jobs on: a lane each.
#pragma once

#include "pack/gpu/batch/batch_parameters.hpp"

namespace gapless::pack::gpu {

inline constexpr std::size_t largest_table = std::size_t{1} << 20;  // bytes
inline constexpr std::uint32_t tiles_per_group = lanes_per_warp;

/// Where a job's tiles and its work begin, and what kind of work it is.
struct BatchedJob {
  std::uint32_t first_tile;
  std::uint32_t position;  ///< in units
  FusedTag tag;
};

/// Where the parts of a table begin, in bytes. The first job of each group of tiles comes first.
struct TableParts {
  std::size_t jobs;
  std::size_t works;
  std::size_t end;

  constexpr TableParts(std::size_t tiles, std::size_t job_count, std::size_t work_units) noexcept
      : jobs((tiles + tiles_per_group - 1) / tiles_per_group * sizeof(std::uint32_t)),
        works((jobs + job_count * sizeof(BatchedJob) + 15) / 16 * 16),
        end(works + work_units * work_unit) {}

  /// Bytes that must be allocated: a kernel may fetch the whole of a work of which only the first bytes are there.
  constexpr std::size_t allocation() const noexcept { return end + sizeof(FusedWork); }
};

/// Kernel parameters.
struct BatchTable {
  Completion completion;
  std::uintptr_t groups;  ///< a number of a job each
  std::uintptr_t jobs;    ///< a BatchedJob each
  std::uintptr_t works;
  std::uint32_t job_count;
};

/// The tile that is number `tile` of the batch. Must be called by all threads of a warp.
template <class Space>
GAPLESS_HOST_DEVICE BatchTile find_tile(const BatchTable& batch, std::uint32_t tile, const Space& space) noexcept {
  const auto job = [&](std::uint32_t number) -> const BatchedJob& {
    return *space.template at<const BatchedJob>(batch.jobs + number * sizeof(BatchedJob));
  };
  const std::uintptr_t group = batch.groups + tile / tiles_per_group * sizeof(std::uint32_t);
  const std::uint32_t first = *space.template at<const std::uint32_t>(group);
  const std::uint32_t begun = count_lanes([&](std::uint32_t lane) {
    const std::uint32_t later = first + 1 + lane;
    return later < batch.job_count && job(later).first_tile <= tile;
  });
  const BatchedJob& found = job(first + begun);
  return {found.tag, found.position * work_unit, tile - found.first_tile};
}

/// The bytes of the work that a tile belongs to.
template <class Space>
GAPLESS_HOST_DEVICE const std::byte* work_of(const BatchTable& batch, const BatchTile& tile,
                                             const Space& space) noexcept {
  return reinterpret_cast<const std::byte*>(space.template at<const std::uint64_t>(batch.works + tile.position));
}

}  // namespace gapless::pack::gpu

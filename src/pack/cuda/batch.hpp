// Many jobs in one launch: what the fused kernel gets, and which jobs go into it.
//
// All jobs travel by value in the kernel's parameters, so that nothing has to be uploaded or kept until the kernel has
// run, and a captured batch replays by itself. Every block runs one tile of one job, found in the prefix sums of the
// jobs' tile counts, so the GPU's own scheduler balances jobs of all sizes. What does not fit into one launch makes
// another.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "pack/cuda/completion.hpp"
#include "pack/cuda/fused.hpp"

namespace gapless::pack::cuda {

inline constexpr std::uint32_t work_unit = 16;  // bytes

struct BatchEntry {
  std::uint32_t end_tile;  ///< tiles of this and all earlier jobs
  std::uint16_t position;  ///< of the work, in units
  std::uint16_t units;     ///< of the work
  FusedTag tag;
};

/// Kernel parameters. The larger they are the longer a launch takes, hence two sizes.
template <std::size_t job_capacity, std::size_t work_capacity>
struct BatchParameters {
  static constexpr std::size_t max_jobs = job_capacity;
  static constexpr std::size_t max_work_bytes = work_capacity;

  Completion completion;
  std::uint32_t job_count;
  BatchEntry entries[job_capacity];
  alignas(work_unit) std::byte works[work_capacity];
};

using SmallBatch = BatchParameters<32, 3664>;    // the 26 faces of a cube, within 4 KiB
using LargeBatch = BatchParameters<256, 29632>;  // within the 32764 bytes that CUDA allows
static_assert(sizeof(SmallBatch) <= 4096 && sizeof(LargeBatch) <= 32764);

/// The job that a tile of the batch belongs to.
template <class Parameters>
GAPLESS_HOST_DEVICE std::uint32_t job_of_tile(const Parameters& batch, std::uint32_t tile) noexcept {
  std::uint32_t low = 0, high = batch.job_count;
  while (low + 1 < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (batch.entries[middle - 1].end_tile > tile) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

/// A tile of one of the batch's jobs.
struct BatchTile {
  FusedTag tag;
  std::uint32_t position;    ///< of the job's work, in bytes
  std::uint32_t work_bytes;  ///< up to the next job's
  std::uint32_t tile;        ///< of the job
};

/// The tile that is number `tile` of the batch.
template <class Parameters>
GAPLESS_HOST_DEVICE BatchTile find_tile(const Parameters& batch, std::uint32_t tile) noexcept {
  const std::uint32_t job = job_of_tile(batch, tile);
  const BatchEntry& entry = batch.entries[job];
  const std::uint32_t first = job == 0 ? 0 : batch.entries[job - 1].end_tile;
  return {entry.tag, entry.position * work_unit, entry.units * work_unit, tile - first};
}

/// Jobs gathered for one launch, with the descriptors that must live until it is made.
class Batch {
 public:
  bool empty() const noexcept { return parameters_.job_count == 0; }
  bool is_small() const noexcept {
    return parameters_.job_count <= SmallBatch::max_jobs && work_bytes_ <= SmallBatch::max_work_bytes;
  }
  std::uint32_t tiles() const noexcept { return empty() ? 0 : parameters_.entries[parameters_.job_count - 1].end_tile; }
  const LargeBatch& parameters() const noexcept { return parameters_; }
  /// Precondition: is_small().
  SmallBatch small_parameters() const noexcept;
  std::span<const std::shared_ptr<Descriptor>> descriptors() const noexcept { return descriptors_; }

  /// False, and nothing is added, if it does not fit.
  bool add(const FusedWork& work, const std::shared_ptr<Descriptor>& descriptor);
  void clear() noexcept;

 private:
  LargeBatch parameters_{};
  std::size_t work_bytes_ = 0;
  std::vector<std::shared_ptr<Descriptor>> descriptors_;
};

/// Makes launches. `is_last`: nothing follows in this call.
class LaunchSink {
 public:
  virtual ~LaunchSink() = default;
  virtual device::Status launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool is_last) = 0;
  virtual device::Status launch(const Batch& batch, bool is_last) = 0;
};

/// Hands all jobs to the sink in as few launches as pays: jobs too large to mind a launch of their own get one. The
/// sink's first failure ends it. Throws std::bad_alloc.
device::Status issue(Planner& planner, std::span<const Job> jobs, int device, LaunchSink& sink);

}  // namespace gapless::pack::cuda

// Many jobs in one launch: what the fused kernel gets, and which jobs go into it.
//
// All jobs travel by value in the kernel's parameters, so that nothing has to be uploaded or kept until the kernel has
// run, and a captured batch replays by itself. Every block runs one tile of one job, found in the prefix sums of the
// jobs' tile counts, so the GPU's own scheduler balances jobs of all sizes. What does not fit into one launch makes
// another.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "pack/cuda/completion.hpp"
#include "pack/cuda/fused.hpp"

namespace gapless::pack::cuda {

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
#if defined(__CUDA_ARCH__)
  // All at once: each step of a search would wait for the constant cache.
  if constexpr (Parameters::max_jobs == 32)
    return __popc(__ballot_sync(~0u, batch.end_tiles[threadIdx.x % 32] <= tile));
#endif
  return first_end_after(batch.end_tiles, 0u, batch.job_count, tile);
}

/// A tile of one of the batch's jobs.
struct BatchTile {
  FusedTag tag;
  std::uint32_t position;  ///< of the job's work, in bytes
  std::uint32_t tile;      ///< of the job
};

/// The tile that is number `tile` of the batch.
template <class Parameters>
GAPLESS_HOST_DEVICE BatchTile find_tile(const Parameters& batch, std::uint32_t tile) noexcept {
  const std::uint32_t job = job_of_tile(batch, tile);
  const std::uint32_t first = job == 0 ? 0 : batch.end_tiles[job - 1];
  return {batch.entries[job].tag, batch.entries[job].position * work_unit, tile - first};
}

/// Jobs gathered for one launch, with the descriptors that must live until it is made.
class Batch {
 public:
  Batch() noexcept {
    parameters_.job_count = 0;
    std::fill(std::begin(parameters_.end_tiles), std::end(parameters_.end_tiles), ~0u);
  }

  bool empty() const noexcept { return parameters_.job_count == 0; }
  std::uint32_t tiles() const noexcept { return empty() ? 0 : parameters_.end_tiles[parameters_.job_count - 1]; }
  std::span<const std::shared_ptr<Descriptor>> descriptors() const noexcept { return descriptors_; }

  /// What action(parameters) returns, for parameters of the smallest size that holds the batch.
  template <class Action>
  auto visit_parameters(const Completion& completion, const Action& action) const noexcept {
    if (fits<SmallBatch>()) return action(parameters<SmallBatch>(completion));
    if (fits<MediumBatch>()) return action(parameters<MediumBatch>(completion));
    return action(parameters<LargeBatch>(completion));
  }

  /// False, and nothing is added, if it does not fit.
  bool add(const FusedWork& work, const std::shared_ptr<Descriptor>& descriptor);
  void clear() noexcept;

 private:
  template <class Parameters>
  bool fits() const noexcept {
    return parameters_.job_count <= Parameters::max_jobs && work_bytes_ <= Parameters::max_work_bytes;
  }

  template <class Parameters>
  Parameters parameters(const Completion& completion) const noexcept {
    Parameters result;
    result.completion = completion;
    result.job_count = parameters_.job_count;
    std::copy_n(parameters_.end_tiles, Parameters::max_jobs, result.end_tiles);
    std::copy_n(parameters_.entries, parameters_.job_count, result.entries);
    std::memcpy(result.works, parameters_.works, work_bytes_);
    return result;
  }

  LargeBatch parameters_;
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

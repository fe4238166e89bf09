// Jobs gathered for one launch.
//
// Every block of the kernel runs one tile of one job, so the GPU's own scheduler balances jobs of all sizes. Few jobs
// travel in the kernel's parameters, many in a table in GPU memory; where there is no memory for it, in the parameters
// of several launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pack/gpu/batch/batch_parameters.hpp"
#include "pack/gpu/batch/batch_table.hpp"

namespace gapless::pack::gpu {

/// What is gathered, with the descriptors that must live until the launch is made.
class Batch {
 public:
  bool empty() const noexcept { return jobs_.empty(); }
  std::uint32_t job_count() const noexcept { return static_cast<std::uint32_t>(jobs_.size()); }
  std::uint32_t tiles() const noexcept { return tiles_; }
  std::span<const std::shared_ptr<Descriptor>> descriptors() const noexcept { return descriptors_; }
  /// Never that of a batch with other jobs, and not 0.
  std::uint64_t identity() const noexcept { return identity_; }

  /// Do all jobs travel in parameters?
  bool fits_parameters() const noexcept {
    return jobs_.size() <= LargeBatch::max_jobs && work_units_ * work_unit <= LargeBatch::max_work_bytes;
  }
  TableParts table_parts() const noexcept { return {tiles_, jobs_.size(), work_units_}; }
  /// Precondition: there is room for table_parts().end bytes, aligned to 16.
  void write_table(std::byte* to) const noexcept;
  /// For a table at that address.
  BatchTable table(const void* address, const Completion& completion) const noexcept;

  /// False, and nothing is added, if it does not fit into a table. An empty batch has room for any job.
  bool add(const FusedWork& work, const std::shared_ptr<Descriptor>& descriptor);
  void clear() noexcept;

 private:
  friend class BatchPart;

  bool has_lately_added(const std::shared_ptr<Descriptor>& descriptor) const noexcept;
  std::uint32_t first_tile(std::uint32_t job) const noexcept {
    return job < job_count() ? jobs_[job].first_tile : tiles_;
  }
  std::uint32_t position(std::uint32_t job) const noexcept {
    return job < job_count() ? jobs_[job].position : static_cast<std::uint32_t>(work_units_);
  }

  std::vector<BatchedJob> jobs_;
  std::vector<std::uint64_t> works_;  ///< there may be room for more
  std::size_t work_units_ = 0;
  std::uint32_t tiles_ = 0;
  std::uint64_t identity_ = 0;
  std::vector<std::shared_ptr<Descriptor>> descriptors_;
};

/// Jobs of a batch that travel in the same parameters.
class BatchPart {
 public:
  /// As many from job `first` on as there is room for. Precondition: first < batch.job_count().
  BatchPart(const Batch& batch, std::uint32_t first) noexcept;

  const Batch& batch() const noexcept { return batch_; }
  std::uint32_t end() const noexcept { return end_; }
  std::uint32_t tiles() const noexcept { return batch_.first_tile(end_) - batch_.first_tile(first_); }

  /// What action(parameters, used) returns, for parameters of the smallest size that holds the part. Equal parts have
  /// the same first `used` bytes, and the others do not matter.
  template <class Action>
  auto visit_parameters(const Completion& completion, const Action& action) const noexcept {
    if (fits<SmallBatch>()) return visit<SmallBatch>(completion, action);
    if (fits<MediumBatch>()) return visit<MediumBatch>(completion, action);
    return visit<LargeBatch>(completion, action);
  }

 private:
  std::size_t work_bytes(std::uint32_t end) const noexcept {
    return std::size_t{batch_.position(end) - batch_.position(first_)} * work_unit;
  }

  template <class Parameters>
  bool fits() const noexcept {
    return end_ - first_ <= Parameters::max_jobs && work_bytes(end_) <= Parameters::max_work_bytes;
  }

  template <class Parameters, class Action>
  auto visit(const Completion& completion, const Action& action) const noexcept {
    return action(parameters<Parameters>(completion), offsetof(Parameters, works) + work_bytes(end_));
  }

  template <class Parameters>
  Parameters parameters(const Completion& completion) const noexcept {
    Parameters result;
    std::memset(static_cast<void*>(&result), 0, offsetof(Parameters, works));
    result.completion = completion;
    result.job_count = end_ - first_;
    const std::uint32_t first_tile = batch_.first_tile(first_), position = batch_.position(first_);
    const BatchedJob* const jobs = batch_.jobs_.data() + first_;
    for (std::uint32_t i = 0; i < result.job_count; ++i) {
      if (i != 0) result.end_tiles[i - 1] = jobs[i].first_tile - first_tile;
      result.entries[i] = {static_cast<std::uint16_t>(jobs[i].position - position), jobs[i].tag};
    }
    std::fill(result.end_tiles + result.job_count - 1, std::end(result.end_tiles), ~0u);
    result.end_tiles[result.job_count - 1] = tiles();
    std::memcpy(result.works, batch_.works_.data() + position, work_bytes(end_));
    return result;
  }

  const Batch& batch_;
  std::uint32_t first_;
  std::uint32_t end_;
};

}  // namespace gapless::pack::gpu

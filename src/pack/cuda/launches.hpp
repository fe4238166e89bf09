// The launches of one call in one queue.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/launch/tile_launch.hpp"
#include "pack/cuda/memory/table_memory.hpp"
#include "pack/gpu/batch/issue.hpp"
#include "pack/gpu/batch/pair_batch.hpp"
#include "pack/gpu/kernel/completion.hpp"

namespace gapless::pack::gpu {

/// What all launches in a context share.
struct LaunchMemory {
  std::shared_ptr<CudaDescriptorMemory> descriptor_memory = std::make_shared<CudaDescriptorMemory>();
  DescriptorCache descriptors;
  CudaTableMemory table_memory;
  TablePool tables{table_memory};

  explicit LaunchMemory(std::size_t descriptor_capacity) : descriptors(descriptor_memory, descriptor_capacity) {}

  /// Lets what is launched in `queue` from now on use the descriptors; holds them for graphs.
  device::Status use(std::span<const std::shared_ptr<Descriptor>> used, cudaStream_t queue);
};

/// The last launch completes what it is told to, and is the one that is waited for if any is.
class Launches final : public LaunchSink, public PairSink {
 public:
  /// `queue` is one of `device`, which is current.
  Launches(LaunchMemory& memory, int device, const Queue& queue, const Completion& completion = {}) noexcept
      : memory_(memory), device_(device), queue_(queue), completion_(completion) {}

  device::Status launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool is_last) override;
  device::Status launch(const BatchPart& part, bool is_last) override;
  std::optional<device::Status> launch_from_table(const Batch& batch, bool is_last) override;
  device::Status launch(const PlannedPair& planned, bool is_last) override;
  device::Status launch(const PairBatch& batch, bool is_last) override;

  /// Has anything been launched that may still run?
  bool is_under_way() const noexcept { return under_way_; }
  /// Will the last launch complete what it was told to?
  bool completes() const noexcept { return completes_; }

 private:
  /// Where to launch one.
  Queue queue(bool is_last) const noexcept { return is_last ? queue_ : Queue(queue_.stream); }
  /// What one completes.
  Completion completion(bool is_last) const noexcept { return is_last ? completion_ : Completion{}; }
  /// `completes`: what there is to complete.
  device::Status launched(cudaError_t error, bool completes) noexcept;

  LaunchMemory& memory_;
  int device_;
  Queue queue_;
  Completion completion_;
  bool under_way_ = false;
  bool completes_ = false;
};

}  // namespace gapless::pack::gpu

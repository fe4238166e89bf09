// What the engine keeps in a CUDA context, and in each thread's lane there.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>

#include "pack/cuda/launch/graph_launch.hpp"
#include "pack/cuda/launches.hpp"
#include "pack/cuda/memory/staging.hpp"
#include "pack/cuda/resident/resident.hpp"
#include "pack/gpu/kernel/completion.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::pack::gpu {

/// Of one context. Its end calls no CUDA function.
class ContextState {
 public:
  /// The context's resident kernel, made when first asked for. Precondition: the context is current. Throws
  /// std::bad_alloc.
  Resident& resident(int device);

  LaunchMemory memory{std::size_t{256} << 20};
  Planner planner{memory.descriptors};
  Staging staging;

 private:
  std::once_flag resident_made_;
  std::shared_ptr<Resident> resident_;
};

/// Of one lane: a number in page-locked memory to wait for, and graphs of kernels that are waited for. Its end calls no
/// CUDA function.
class LaneState {
 public:
  /// Makes what is missing, in the current context, by way of the lane's stream.
  cudaError_t prepare(cudaStream_t stream) noexcept;

  /// What the next kernel is to complete. Precondition: the last one has.
  const Completion& next_completion(Reach reach) noexcept;
  /// Returns when the last next_completion() is complete or `queue`, where its kernel was launched, has failed.
  cudaError_t wait(cudaStream_t queue) const noexcept;

  std::unique_ptr<GraphLaunches> graphs;                ///< for the program's default stream
  std::unique_ptr<GraphLaunches> high_priority_graphs;  ///< for the lane's stream

 private:
  Completion completion_;  ///< of the last kernel that was to complete it
};

}  // namespace gapless::pack::gpu

// What the engine keeps in a CUDA context, and in each thread's lane there.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "pack/cuda/launch/graph_launch.hpp"
#include "pack/cuda/launches.hpp"
#include "pack/cuda/memory/staging.hpp"
#include "pack/cuda/resident/resident.hpp"
#include "pack/gpu/kernel/completion.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "pack/gpu/route/route.hpp"
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

class LaneState;

/// What a ticket stands for: jobs that were submitted and have not been found done.
struct Submission {
  LaneState* owner = nullptr;
  Completion completion;         ///< for the last kernel
  CUcontext context = nullptr;   ///< where they were issued: the default stream is each context's own
  cudaStream_t queue = nullptr;  ///< in it
  bool completes = false;        ///< does the last kernel complete it?
  int polls = 0;

  // What the router learns of jobs that are waited for.
  Route route;
  Before before = Before::unknown;
  bool tells = false;
  std::chrono::steady_clock::time_point start;

  /// For one more kernel. Precondition: the last one is done.
  const Completion& next_completion(Reach reach) noexcept;
  /// Has the last kernel completed it, or its queue ended? Asks the driver now and then only.
  bool has_ended() noexcept;
  /// Returns when it has. The status of the queue.
  cudaError_t wait() const noexcept;
};

/// Of one lane: submissions, and graphs of kernels that are waited for. Its end calls no CUDA function.
class LaneState {
 public:
  /// Makes what is missing, in the current context, by way of the lane's stream.
  cudaError_t prepare(cudaStream_t stream) noexcept;

  /// One that is not in use: the one given back last, so that a call that comes again has the same parameters. nullptr
  /// with the reason in `error`.
  Submission* acquire(cudaStream_t stream, cudaError_t& error) noexcept;
  void release(Submission& submission) noexcept;

  std::unique_ptr<GraphLaunches> graphs;                ///< for the program's default stream
  std::unique_ptr<GraphLaunches> high_priority_graphs;  ///< for the lane's stream

 private:
  /// Adds unused ones, whose numbers share two allocations. Throws std::bad_alloc.
  cudaError_t add(cudaStream_t stream);

  std::deque<Submission> submissions_;
  std::vector<Submission*> unused_;
};

}  // namespace gapless::pack::gpu

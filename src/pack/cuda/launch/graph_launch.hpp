// Kernels that somebody waits for, launched as CUDA graphs of one kernel.
//
// The driver launches a graph that it knows in less time than a kernel, by a third of what a small message takes
// (docs/performance.md, "GPU latency"). A launch that repeats one of the last few launches their graph again, which is
// what applications do in every step; any other gives its kernel to the graph that was given one longest ago.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gapless::pack::gpu {

/// A parameter of a kernel.
struct KernelParameter {
  const void* value;
  std::size_t used;  ///< bytes from the first to the last that the kernel may look at
};

inline constexpr std::size_t most_parameters = 4;

/// Pointers to the parameters, as CUDA takes them. Precondition: at most most_parameters.
std::array<void*, most_parameters> pointers_to(std::span<const KernelParameter> parameters) noexcept;

struct KernelLaunch {
  CUfunction function;
  dim3 blocks;
  dim3 threads;
  std::span<const KernelParameter> parameters;  ///< at most most_parameters
};

/// Of one thread, one context and one priority. Its graphs are never destroyed, as streams are not: at process exit the
/// driver may be gone first.
class GraphLaunches {
 public:
  explicit GraphLaunches(int priority) noexcept : priority_(priority) {}
  GraphLaunches(const GraphLaunches&) = delete;
  GraphLaunches& operator=(const GraphLaunches&) = delete;

  /// Launches the kernel in `stream`, of the context that is current. If it fails, nothing was launched, and the kernel
  /// may be launched otherwise. What was launched before may be under way.
  cudaError_t launch(const KernelLaunch& wanted, cudaStream_t stream) noexcept;

  /// Graphs that had to be made, which takes longer than many launches.
  std::uint64_t made() const noexcept { return made_; }
  /// Graphs that were given another kernel or other parameters.
  std::uint64_t changed() const noexcept { return changed_; }

 private:
  struct CachedGraph {
    CUgraph graph = nullptr;  ///< stays, because its nodes are those of the executable
    CUgraphNode node = nullptr;
    CUgraphExec executable = nullptr;
    CUfunction function = nullptr;  ///< null: there is none to be found
    dim3 blocks;
    dim3 threads;
    std::vector<std::byte> parameters;  ///< all in a row

    bool is_for(const KernelLaunch& wanted) const noexcept;
    cudaError_t change_to(const KernelLaunch& wanted) noexcept;
    cudaError_t make_for(const KernelLaunch& wanted, int priority) noexcept;
    void clear() noexcept;
    void note(const KernelLaunch& launched) noexcept;
  };

  cudaError_t prepare(CachedGraph& cached, const KernelLaunch& wanted) noexcept;

  std::array<CachedGraph, 8> cached_;
  std::size_t next_ = 0;  ///< the one that was given a kernel longest ago
  int priority_;
  std::uint64_t made_ = 0;
  std::uint64_t changed_ = 0;
};

}  // namespace gapless::pack::gpu

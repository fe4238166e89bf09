// Launching a kernel of a block a tile, by the shortest way: as a graph if somebody waits for it, else through the
// driver, with nothing to be looked up. The runtime takes a fifth of a microsecond more.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "pack/cuda/launch/graph_launch.hpp"

namespace gapless::pack::gpu {

/// Where kernels are launched.
struct Queue {
  // Every stream is a queue in which nobody waits for single kernels.
  Queue(cudaStream_t its_stream, GraphLaunches* for_kernels_waited_for = nullptr) noexcept
      : stream(its_stream), graphs(for_kernels_waited_for) {}

  cudaStream_t stream;
  GraphLaunches* graphs;  ///< null: kernels are launched as kernels
};

/// A block has a row of threads for each of its tiles, of which the last block may have too many. The kernel must call
/// wait_for_kernel_before(): its blocks may be scheduled while the kernel before it finishes, which saves half a
/// microsecond behind another of these.
cudaError_t launch_tiles(const void* kernel, std::uint64_t tiles, int tiles_per_block, const Queue& queue,
                         std::span<const KernelParameter> parameters) noexcept;

/// How often the calling thread has had to load a kernel or to make a graph first, which can take a hundred times what
/// a launch takes.
std::uint64_t launches_prepared() noexcept;

}  // namespace gapless::pack::gpu

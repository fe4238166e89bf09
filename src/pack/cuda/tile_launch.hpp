// Launching a kernel of a block a tile, by the shortest way: through the driver, with nothing to be looked up. The
// runtime takes a fifth of a microsecond more.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gapless::pack::cuda {

/// `parameters`: a pointer to each of the kernel's parameters. A block has a row of threads for each of its tiles, of
/// which the last block may have too many. The kernel must call wait_for_kernel_before(): its blocks may be scheduled
/// while the kernel before it finishes, which saves half a microsecond behind another of these.
cudaError_t launch_tiles(const void* kernel, std::uint64_t tiles, int tiles_per_block, cudaStream_t stream,
                         void** parameters) noexcept;

/// Kernels that the calling thread has had to load first, which can take a hundred times what a launch takes.
std::uint64_t loaded_kernels() noexcept;

}  // namespace gapless::pack::cuda

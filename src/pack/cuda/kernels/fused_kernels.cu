// The kernel that runs a batch of jobs of all kinds.
#include <cuda_runtime.h>

#include "pack/cuda/kernels/kernels.hpp"
#include "pack/cuda/kernels/launching.cuh"

namespace gapless::pack::gpu {
namespace {

/// Compiled once for batches of all sizes: it is by far the larger part of them, and seldom run.
__device__ __noinline__ void run_large(FusedTag tag, const std::byte* work, std::uint32_t tile) {
  run_large_tile(tag, work, tile, DeviceBlock{});
}

__device__ __forceinline__ void run(const BatchTile& found, const std::byte* work) {
  if (found.tag.kind == FusedKind::small_nest) {
    run_small_tile(*reinterpret_cast<const SmallNest*>(work), found.tile, DeviceBlock{});
  } else {
    run_large(found.tag, work, found.tile);
  }
}

template <class Parameters>
__global__ void __launch_bounds__(threads_per_block) batch_kernel(const __grid_constant__ Parameters batch) {
  let_next_kernel_start();
  preload(batch.completion);
  const BatchTile found = find_tile(batch, blockIdx.x);
  const std::byte* const work = batch.works + found.position;
  wait_for_kernel_before();
  run(found, work);
  complete(batch.completion);
}

__global__ void __launch_bounds__(threads_per_block) table_kernel(const __grid_constant__ BatchTable batch) {
  let_next_kernel_start();
  preload(batch.completion);
  wait_for_kernel_before();
  constexpr DirectSpace space;
  const BatchTile found = find_tile(batch, blockIdx.x, space);
  run(found, work_of(batch, found, space));
  complete(batch.completion);
}

}  // namespace

cudaError_t launch(const BatchPart& part, const Queue& queue, const Completion& completion) noexcept {
  return part.visit_parameters(completion, [&]<class Parameters>(const Parameters& parameters, std::size_t used) {
    const KernelParameter all[] = {{&parameters, used}};
    return launch_tiles(reinterpret_cast<const void*>(batch_kernel<Parameters>), part.tiles(), 1, queue, all);
  });
}

cudaError_t launch(const BatchTable& batch, std::uint32_t tiles, const Queue& queue) noexcept {
  const KernelParameter all[] = {{&batch, sizeof batch}};
  return launch_tiles(reinterpret_cast<const void*>(table_kernel), tiles, 1, queue, all);
}

}  // namespace gapless::pack::gpu

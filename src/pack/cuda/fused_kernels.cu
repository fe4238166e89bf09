// The kernel that runs a batch of jobs of all kinds.
#include <cuda_runtime.h>

#include "pack/cuda/kernels.hpp"
#include "pack/cuda/launching.cuh"

namespace gapless::pack::cuda {
namespace {

/// Compiled once for batches of all sizes: it is by far the larger part of them, and seldom run.
__device__ __noinline__ void run_large(FusedTag tag, const std::byte* work, std::uint32_t tile) {
  run_large_tile(tag, work, tile, DeviceBlock{});
}

template <class Parameters>
__global__ void __launch_bounds__(threads_per_block) batch_kernel(const __grid_constant__ Parameters batch) {
  let_next_kernel_start();
  foresee(batch.completion);
  const BatchTile found = find_tile(batch, blockIdx.x);
  const std::byte* const work = batch.works + found.position;
  wait_for_kernel_before();
  if (found.tag.kind == FusedKind::small_nest) {
    run_small_tile(*reinterpret_cast<const SmallNest*>(work), found.tile, DeviceBlock{});
  } else {
    run_large(found.tag, work, found.tile);
  }
  complete(batch.completion);
}

}  // namespace

cudaError_t launch(const Batch& batch, cudaStream_t stream, const Completion& completion) noexcept {
  return batch.visit_parameters(completion, [&]<class Parameters>(const Parameters& parameters) {
    void* pointer[] = {const_cast<Parameters*>(&parameters)};
    return launch_tiles(reinterpret_cast<const void*>(batch_kernel<Parameters>), batch.tiles(), 1, stream, pointer);
  });
}

}  // namespace gapless::pack::cuda

// The fused kernel: every block runs one tile of one job of a batch.
#include <cuda_runtime.h>

#include "pack/cuda/kernels.hpp"

namespace gapless::pack::cuda {
namespace {

// Compiled once for all kernels here: it is by far the larger part of them.
__device__ __noinline__ void run_work(FusedTag tag, const std::byte* work, std::uint32_t tile) {
  run_fused_tile(tag, work, tile, DeviceBlock{});
}

template <class Parameters>
__global__ void __launch_bounds__(threads_per_block) batch_kernel(const __grid_constant__ Parameters batch) {
  visit_batch_tile(batch, blockIdx.x,
                   [](FusedTag tag, const std::byte* work, std::uint32_t tile) { run_work(tag, work, tile); });
  complete(batch.completion);
}

template <class Parameters>
cudaError_t launch_with(Parameters& parameters, std::uint32_t tiles, cudaStream_t stream,
                        const Completion& completion) noexcept {
  parameters.completion = completion;
  batch_kernel<<<tiles, threads_per_block, 0, stream>>>(parameters);
  return cudaPeekAtLastError();
}

}  // namespace

cudaError_t launch(const Batch& batch, cudaStream_t stream, const Completion& completion) noexcept {
  if (batch.is_small()) {
    SmallBatch small = batch.small_parameters();
    return launch_with(small, batch.tiles(), stream, completion);
  }
  LargeBatch large = batch.parameters();
  return launch_with(large, batch.tiles(), stream, completion);
}

}  // namespace gapless::pack::cuda

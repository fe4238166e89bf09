// The kernels of pair jobs: thin shells around run_pair_tile.
#include <cuda_runtime.h>

#include "pack/cuda/kernels/kernels.hpp"
#include "pack/cuda/kernels/launching.cuh"

namespace gapless::pack::gpu {
namespace {

template <class Word, class Places>
__global__ void __launch_bounds__(threads_per_block)
    pair_kernel(const __grid_constant__ PairWork<Places> work, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  preload(completion);
  wait_for_kernel_before();
  run_pair_tile<Word>(work, blockIdx.x, DeviceBlock{});
  complete(completion);
}

__global__ void __launch_bounds__(threads_per_block)
    ordered_pair_kernel(const __grid_constant__ OrderedPairWork work, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  preload(completion);
  wait_for_kernel_before();
  run_pair_tile(work, DeviceBlock{});
  complete(completion);
}

__global__ void __launch_bounds__(threads_per_block)
    pair_batch_kernel(const __grid_constant__ PairBatch batch, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  preload(completion);
  wait_for_kernel_before();
  run_pair_batch_tile(batch, blockIdx.x, DeviceBlock{});
  complete(completion);
}

struct Launcher {
  const Queue& queue;
  const Completion& completion;

  cudaError_t operator()(std::monostate) const noexcept { return cudaSuccess; }

  cudaError_t operator()(const ContiguousWork& work) const noexcept { return launch(Launch(work), queue, completion); }

  template <class Places>
  cudaError_t operator()(const PairWork<Places>& work) const noexcept {
    cudaError_t error = cudaErrorInvalidValue;
    visit_word(work.word_shift,
               [&](auto word) { error = launch_tiles(pair_kernel<decltype(word), Places>, work, queue, completion); });
    return error;
  }

  cudaError_t operator()(const OrderedPairWork& work) const noexcept {
    return launch_tiles(ordered_pair_kernel, work, queue, completion);
  }
};

}  // namespace

cudaError_t launch(const PairLaunch& work, const Queue& queue, const Completion& completion) noexcept {
  return std::visit(Launcher{queue, completion}, work);
}

cudaError_t launch(const PairBatch& batch, const Queue& queue, const Completion& completion) noexcept {
  return launch_tiles(pair_batch_kernel, batch, queue, completion);
}

}  // namespace gapless::pack::gpu

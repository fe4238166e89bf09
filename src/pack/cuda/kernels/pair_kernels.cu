// The kernels of pair jobs: thin shells around run_pair_tile.
#include <cuda_runtime.h>

#include "pack/cuda/kernels/kernels.hpp"

namespace gapless::pack::gpu {
namespace {

template <class Word, class Places>
__global__ void __launch_bounds__(threads_per_block) pair_kernel(const __grid_constant__ PairWork<Places> work) {
  run_pair_tile<Word>(work, blockIdx.x, DeviceBlock{});
}

__global__ void __launch_bounds__(threads_per_block) ordered_pair_kernel(const __grid_constant__ OrderedPairWork work) {
  run_pair_tile(work, DeviceBlock{});
}

struct Launcher {
  cudaStream_t stream;

  cudaError_t operator()(std::monostate) const noexcept { return cudaSuccess; }

  cudaError_t operator()(const ContiguousWork& work) const noexcept { return launch(Launch(work), stream); }

  template <class Places>
  cudaError_t operator()(const PairWork<Places>& work) const noexcept {
    if (work.tiles() >= std::uint64_t{1} << 31) return cudaErrorInvalidConfiguration;
    visit_word(work.word_shift, [&](auto word) {
      pair_kernel<decltype(word)><<<static_cast<unsigned>(work.tiles()), threads_per_block, 0, stream>>>(work);
    });
    return cudaPeekAtLastError();
  }

  cudaError_t operator()(const OrderedPairWork& work) const noexcept {
    ordered_pair_kernel<<<1, threads_per_block, 0, stream>>>(work);
    return cudaPeekAtLastError();
  }
};

}  // namespace

cudaError_t launch(const PairLaunch& work, cudaStream_t stream) noexcept { return std::visit(Launcher{stream}, work); }

}  // namespace gapless::pack::gpu

// The kernels: thin shells around the regimes' run_tile, one instance per word width.
#include <cuda_runtime.h>

#include "pack/cuda/kernels.hpp"

namespace gapless::pack::cuda {
namespace {

template <class Word, int known_levels, class Index>
__global__ void __launch_bounds__(threads_per_block)
    nest_kernel(const __grid_constant__ NestWork<Index> work, const Completion completion) {
  NothingShared shared;
  run_tile<Word, known_levels>(work, blockIdx.x, DeviceBlock{}, shared);
  complete(completion);
}

template <class Word, class Work>
__global__ void __launch_bounds__(threads_per_block)
    work_kernel(const __grid_constant__ Work work, const Completion completion) {
  __shared__ typename Work::Shared shared;
  run_tile<Word>(work, blockIdx.x, DeviceBlock{}, shared);
  complete(completion);
}

struct Launcher {
  cudaStream_t stream;
  const Completion& completion;

  cudaError_t operator()(std::monostate) const noexcept { return cudaSuccess; }

  cudaError_t operator()(const ContiguousWork& work) const noexcept {
    auto* memory = reinterpret_cast<void*>(work.memory);
    auto* packed = reinterpret_cast<void*>(work.packed);
    return cudaMemcpyAsync(work.unpack ? memory : packed, work.unpack ? packed : memory, work.bytes, cudaMemcpyDefault,
                           stream);
  }

  cudaError_t operator()(const NestWork<std::uint32_t>& work) const noexcept {
    visit_word(work.word_shift(), [&](auto word) {
      visit_levels(work.nest, [&](auto known) {
        nest_kernel<decltype(word), known()><<<grid(work), threads_per_block, 0, stream>>>(work, completion);
      });
    });
    return cudaPeekAtLastError();
  }

  cudaError_t operator()(const OrderedWork& work) const noexcept {
    work_kernel<std::uint8_t><<<grid(work), threads_per_block, 0, stream>>>(work, completion);
    return cudaPeekAtLastError();
  }

  template <class Work>
  cudaError_t operator()(const Work& work) const noexcept {
    visit_word(work.word_shift(), [&](auto word) {
      work_kernel<decltype(word)><<<grid(work), threads_per_block, 0, stream>>>(work, completion);
    });
    return cudaPeekAtLastError();
  }

 private:
  template <class Work>
  static unsigned grid(const Work& work) {
    return static_cast<unsigned>(work.tiles());
  }
};

}  // namespace

cudaError_t launch(const Launch& work, cudaStream_t stream, const Completion& completion) noexcept {
  return std::visit(Launcher{stream, completion}, work);
}

}  // namespace gapless::pack::cuda

// The kernels: thin shells around the bodies of index_logic.hpp, one instance per word width and locator.
#include <cuda_runtime.h>

#include "pack/cuda/kernels.hpp"

namespace gapless::pack::cuda {
namespace {

template <class Locator>
__device__ void copy_edges(const WordCopy<Locator>& work) {
  if (blockIdx.x == 0 && threadIdx.x < work.range.head + work.range.tail) {
    copy_edge(work.range, work.locator, work.word_shift, threadIdx.x, DirectSpace{});
  }
}

template <class Word, class Index, class Locator>
__global__ void __launch_bounds__(threads_per_block) copy_words(const __grid_constant__ WordCopy<Locator> work) {
  copy_edges(work);
  copy_tile<Word, Index>(work.range, work.locator, blockIdx.x, static_cast<int>(threadIdx.x), DirectSpace{});
}

template <class Word, class Index, int known_levels>
__global__ void __launch_bounds__(threads_per_block) copy_nest(const __grid_constant__ WordCopy<Nest<Index>> work) {
  copy_edges(work);
  copy_tile<Word, Index>(work.range, KnownNest<Index, known_levels>{work.locator}, blockIdx.x,
                         static_cast<int>(threadIdx.x), DirectSpace{});
}

template <class Word>
__global__ void __launch_bounds__(threads_per_block) copy_runs(const __grid_constant__ WordCopy<Segments> work) {
  __shared__ StagedRuns runs;
  __shared__ RunWindow window;
  copy_edges(work);
  const std::uint64_t tile = blockIdx.x;
  if (tile * words_per_tile >= work.range.word_count) return;
  if (threadIdx.x == 0) window = window_of_tile(work.range, work.locator, tile);
  __syncthreads();
  if (window.staged) work.locator.stage(window, static_cast<int>(threadIdx.x), threads_per_block, runs);
  __syncthreads();
  copy_runs_tile<Word>(work.range, work.locator, window, runs, tile, static_cast<int>(threadIdx.x), DirectSpace{});
}

__global__ void __launch_bounds__(threads_per_block) copy_in_order(const __grid_constant__ OrderedCopy work) {
  for (std::uint64_t done = 0; done < work.bytes;) {
    done += copy_run(work.range, work.tree, done, work.bytes, threadIdx.x, threads_per_block, DirectSpace{});
    __syncthreads();
  }
}

template <class Word, class Locator>
void launch_words(const WordCopy<Locator>& work, cudaStream_t stream) {
  const auto tiles = static_cast<unsigned>(work.tiles());
  if constexpr (std::is_same_v<Locator, Segments>) {
    copy_runs<Word><<<tiles, threads_per_block, 0, stream>>>(work);
  } else if constexpr (std::is_same_v<Locator, Nest<std::uint32_t>>) {
    visit_levels(work.locator, [&](auto known) {
      if constexpr (known() == 0) {
        copy_words<Word, std::uint32_t><<<tiles, threads_per_block, 0, stream>>>(work);
      } else {
        copy_nest<Word, std::uint32_t, known()><<<tiles, threads_per_block, 0, stream>>>(work);
      }
    });
  } else {
    copy_words<Word, std::uint64_t><<<tiles, threads_per_block, 0, stream>>>(work);
  }
}

struct Launcher {
  cudaStream_t stream;

  cudaError_t operator()(std::monostate) const noexcept { return cudaSuccess; }

  cudaError_t operator()(const ContiguousCopy& work) const noexcept {
    auto* memory = reinterpret_cast<void*>(work.memory);
    auto* packed = reinterpret_cast<void*>(work.packed);
    return cudaMemcpyAsync(work.unpack ? memory : packed, work.unpack ? packed : memory, work.bytes, cudaMemcpyDefault,
                           stream);
  }

  template <class Locator>
  cudaError_t operator()(const WordCopy<Locator>& work) const noexcept {
    visit_word(work.word_shift, [&](auto word) { launch_words<decltype(word)>(work, stream); });
    return cudaPeekAtLastError();
  }

  cudaError_t operator()(const OrderedCopy& work) const noexcept {
    copy_in_order<<<1, threads_per_block, 0, stream>>>(work);
    return cudaPeekAtLastError();
  }
};

}  // namespace

cudaError_t launch(const Launch& work, cudaStream_t stream) noexcept { return std::visit(Launcher{stream}, work); }

}  // namespace gapless::pack::cuda

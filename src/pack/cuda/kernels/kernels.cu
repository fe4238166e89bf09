// The kernels of all regimes but the nest: thin shells around run_tile.
#include "pack/cuda/kernels/kernels.hpp"
#include "pack/cuda/kernels/launching.cuh"
#include "pack/cuda/kernels/nest_kernels.hpp"

namespace gapless::pack::gpu {
namespace {

// A multiprocessor of the GPUs of data centres has room for 2048 threads, of others for 1024 at least.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ % 100 == 0 && __CUDA_ARCH__ < 1200
constexpr int most_blocks = 2048 / threads_per_block;
#else
constexpr int most_blocks = 1024 / threads_per_block;
#endif

/// Blocks that a multiprocessor must have room for: left alone, the compiler takes registers for what is rare.
template <class Work>
constexpr int wanted_blocks = 1;
template <>
constexpr int wanted_blocks<TransposeWork> = most_blocks;
template <>
constexpr int wanted_blocks<InterleavedWork> = most_blocks;
template <class Entry>
constexpr int wanted_blocks<SegmentsWork<Entry>> = most_blocks;

template <class Word, class Work>
__global__ void __launch_bounds__(threads_per_block, wanted_blocks<Work>)
    work_kernel(const __grid_constant__ Work work, const __grid_constant__ Completion completion) {
  __shared__ typename Work::Shared shared;
  let_next_kernel_start();
  prepare_tile(work, blockIdx.x, DeviceBlock{}, shared);
  preload(completion);
  wait_for_kernel_before();
  run_tile<Word>(work, blockIdx.x, DeviceBlock{}, shared);
  complete(completion);
}

/// For work on rows, of which the form is known. threadIdx.y is the tile within the block.
template <class Word, class Form, int words_per_thread, class Work>
__global__ void __launch_bounds__(most_row_tiles_per_block* threads_per_block)
    row_kernel(const __grid_constant__ Work work, const __grid_constant__ Completion completion) {
  let_next_kernel_start();
  preload(completion);
  wait_for_kernel_before();
  // The last block's tiles that are not there have no rows.
  run_known_tile<Word, Form, words_per_thread>(work, blockIdx.x * blockDim.y + threadIdx.y, DeviceBlock{});
  complete(completion);
}

struct Launcher {
  const Queue& queue;
  const Completion& completion;

  cudaError_t operator()(std::monostate) const noexcept { return cudaSuccess; }

  cudaError_t operator()(const ContiguousWork& work) const noexcept {
    auto* memory = reinterpret_cast<void*>(work.memory);
    auto* packed = reinterpret_cast<void*>(work.packed);
    return cudaMemcpyAsync(work.unpack ? memory : packed, work.unpack ? packed : memory, work.bytes, cudaMemcpyDefault,
                           queue.stream);
  }

  cudaError_t operator()(const NestWork<std::uint32_t>& work) const noexcept {
    return work.word_shift() == 2 ? launch_nest_of_4(work, queue, completion) : launch_nest(work, queue, completion);
  }
  cudaError_t operator()(const NestWork<std::uint64_t>& work) const noexcept {
    return launch_nest(work, queue, completion);
  }

  cudaError_t operator()(const ShiftedWork& work) const noexcept { return launch_rows<std::uint64_t>(work); }
  cudaError_t operator()(const SectorsWork& work) const noexcept {
    if (work.word_shift() == 2) return launch_rows<std::uint32_t>(work);
    return work.word_shift() == 3 ? launch_rows<std::uint64_t>(work) : launch_rows<Word16>(work);
  }

  cudaError_t operator()(const OrderedWork& work) const noexcept {
    return launch_tiles(work_kernel<std::uint8_t, OrderedWork>, work, queue, completion);
  }

  template <class Work>
  cudaError_t operator()(const Work& work) const noexcept {
    cudaError_t error = cudaErrorInvalidValue;
    visit_word(work.word_shift(),
               [&](auto word) { error = launch_tiles(work_kernel<decltype(word), Work>, work, queue, completion); });
    return error;
  }

 private:
  template <class Word, class Work>
  cudaError_t launch_rows(const Work& work) const noexcept {
    cudaError_t error = cudaErrorInvalidValue;
    visit_row_form(work.rows.places, [&](auto form) {
      visit_row_words<Word>(work, [&](auto words) {
        error = launch_tiles(row_kernel<Word, decltype(form), decltype(words)::value, Work>, work, queue, completion,
                             work.tiles_per_block);
      });
    });
    return error;
  }
};

}  // namespace

cudaError_t launch(const Launch& work, const Queue& queue, const Completion& completion) noexcept {
  return std::visit(Launcher{queue, completion}, work);
}

}  // namespace gapless::pack::gpu

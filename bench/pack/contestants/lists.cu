// Blocks at listed offsets.
//
// Uniform lists: consecutive threads take consecutive words of the packed data, the block is the word's number divided
// by the words in a block, and lanes of one block read the same entry of the list.
//
// Ragged lists, in units of 4 bytes:
// lanes   a power of two of lanes shares a run
// search  a block of threads takes a tile of the packed data, stages its runs in shared memory and searches there
// expand  the same, but the runs first write their displacement beside every word of the tile
// Fetching ahead asks for the sectors that unpacking will store to while the packed data is still on its way.
#include <algorithm>
#include <bit>

#include "contestants/hand.hpp"
#include "contestants/words.cuh"

namespace gapless::bench {
namespace {

template <class Word, int in_flight, bool packs>
__global__ void __launch_bounds__(block_threads)
    uniform(const std::uint32_t* offsets, Divider words_a_block, std::uint32_t words, char* memory, Word* packed) {
  const std::uint32_t first = blockIdx.x * (block_threads * in_flight) + threadIdx.x;
  Word value[in_flight];
  Word* at[in_flight];
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * block_threads;
    const std::uint32_t block = words_a_block.quotient(word);
    if (word < words) {
      at[i] = reinterpret_cast<Word*>(memory) + std::uint64_t{offsets[block]} * words_a_block.divisor +
              (word - block * words_a_block.divisor);
    }
  }
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * block_threads;
    if (word < words) value[i] = packs ? *at[i] : packed[word];
  }
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * block_threads;
    if (word < words) (packs ? packed[word] : *at[i]) = value[i];
  }
}

template <int in_flight>
Contestant uniform_variant(const UniformList& list, const std::shared_ptr<Memory>& offsets) {
  const auto length = static_cast<std::uint64_t>(list.length);
  const std::uint64_t blocks = list.offsets.size();
  const auto issue = [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    with_word(length, [&](auto word) {
      using Word = decltype(word);
      const auto words = static_cast<std::uint32_t>(blocks * length / sizeof(Word));
      const auto kernel = direction == GAPLESS_PACK ? uniform<Word, in_flight, true> : uniform<Word, in_flight, false>;
      kernel<<<blocks_for(words, block_threads * in_flight), block_threads, 0, stream>>>(
          reinterpret_cast<const std::uint32_t*>(offsets->data()),
          Divider(static_cast<std::uint32_t>(length / sizeof(Word))), words, spot.memory,
          reinterpret_cast<Word*>(spot.packed));
    });
    launched();
  };
  return {"flat, " + std::to_string(in_flight) + " in flight", issue};
}

struct Runs {
  const std::uint32_t* offsets;
  const std::uint32_t* starts;  ///< one more
  const std::uint32_t* first;   ///< the run each tile begins in
  std::uint32_t count, words;
};

template <bool packs>
__global__ void __launch_bounds__(block_threads)
    runs_by_lanes(const __grid_constant__ Runs runs, int lane_shift, std::uint32_t* memory, std::uint32_t* packed) {
  const std::uint32_t lanes = 1U << lane_shift, lane = threadIdx.x & (lanes - 1);
  const std::uint32_t run = (blockIdx.x * block_threads + threadIdx.x) >> lane_shift;
  if (run >= runs.count) return;
  const std::uint32_t start = runs.starts[run], length = runs.starts[run + 1] - start;
  std::uint32_t *const sparse = memory + runs.offsets[run], *const dense = packed + start;
  for (std::uint32_t word = lane; word < length; word += lanes)
    (packs ? dense : sparse)[word] = (packs ? sparse : dense)[word];
}

constexpr int tile_words = 2048;

template <bool packs, bool fetching_ahead = false>
__device__ void move_tile(std::uint32_t begin, std::uint32_t end, const std::uint32_t* at_word, std::uint32_t* memory,
                          std::uint32_t* packed) {
  constexpr int in_flight = tile_words / block_threads;
  std::uint32_t value[in_flight];
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = begin + i * block_threads + threadIdx.x;
    if (fetching_ahead && word < end) fetch_ahead(memory + word + at_word[i]);
    if (word < end) value[i] = packs ? memory[word + at_word[i]] : packed[word];
  }
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = begin + i * block_threads + threadIdx.x;
    if (word < end) (packs ? packed[word] : memory[word + at_word[i]]) = value[i];
  }
}

template <bool packs>
__global__ void __launch_bounds__(block_threads)
    runs_by_search(const __grid_constant__ Runs runs, std::uint32_t* memory, std::uint32_t* packed) {
  __shared__ std::uint32_t starts[tile_words + 1], displacements[tile_words + 1];
  const std::uint32_t begin = blockIdx.x * tile_words, end = min(begin + tile_words, runs.words);
  const std::uint32_t first = runs.first[blockIdx.x], count = runs.first[blockIdx.x + 1] + 1 - first;
  for (std::uint32_t i = threadIdx.x; i < count; i += block_threads) {
    starts[i] = runs.starts[first + i];
    displacements[i] = runs.offsets[first + i] - starts[i];
  }
  __syncthreads();
  std::uint32_t at_word[tile_words / block_threads];
#pragma unroll
  for (int i = 0; i < tile_words / block_threads; ++i) {
    const std::uint32_t word = begin + i * block_threads + threadIdx.x;
    std::uint32_t low = 0, high = count;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (starts[middle] <= word ? low : high) = middle;
    }
    at_word[i] = displacements[low];
  }
  move_tile<packs>(begin, end, at_word, memory, packed);
}

template <bool packs, bool fetching_ahead>
__global__ void __launch_bounds__(block_threads)
    runs_by_expansion(const __grid_constant__ Runs runs, int lane_shift, std::uint32_t* memory, std::uint32_t* packed) {
  __shared__ std::uint32_t displacements[tile_words];
  const std::uint32_t begin = blockIdx.x * tile_words, end = min(begin + tile_words, runs.words);
  const std::uint32_t first = runs.first[blockIdx.x], count = runs.first[blockIdx.x + 1] + 1 - first;
  const std::uint32_t lanes = 1U << lane_shift, lane = threadIdx.x & (lanes - 1);
  for (std::uint32_t i = threadIdx.x >> lane_shift; i < count; i += block_threads >> lane_shift) {
    const std::uint32_t start = runs.starts[first + i], stop = min(runs.starts[first + i + 1], end);
    const std::uint32_t displacement = runs.offsets[first + i] - start;
    for (std::uint32_t word = max(start, begin) + lane; word < stop; word += lanes) {
      displacements[word - begin] = displacement;
    }
  }
  __syncthreads();
  std::uint32_t at_word[tile_words / block_threads];
#pragma unroll
  for (int i = 0; i < tile_words / block_threads; ++i) at_word[i] = displacements[i * block_threads + threadIdx.x];
  move_tile<packs, fetching_ahead>(begin, end, at_word, memory, packed);
}

/// The list on the GPU, and how to launch on it.
struct RaggedOnGpu {
  std::shared_ptr<Memory> offsets, starts, first;
  std::uint32_t count, words;

  explicit RaggedOnGpu(const RaggedList& list)
      : offsets(on_gpu(list.offsets)),
        starts(on_gpu(list.starts)),
        first(on_gpu(first_of_tiles(list.starts))),
        count(static_cast<std::uint32_t>(list.offsets.size())),
        words(list.starts.back()) {}

  /// The run that holds the first word of each tile, and the last run for the one behind the last tile.
  static std::vector<std::uint32_t> first_of_tiles(const std::vector<std::uint32_t>& starts) {
    std::vector<std::uint32_t> first;
    for (std::uint32_t word = 0; word < starts.back(); word += tile_words) {
      const auto after = std::upper_bound(starts.begin(), starts.end(), word);
      first.push_back(static_cast<std::uint32_t>(after - starts.begin() - 1));
    }
    first.push_back(static_cast<std::uint32_t>(starts.size() - 2));
    return first;
  }
  Runs runs() const {
    const auto list = [](const std::shared_ptr<Memory>& m) {
      return reinterpret_cast<const std::uint32_t*>(m->data());
    };
    return {list(offsets), list(starts), list(first), count, words};
  }
  unsigned tiles() const { return blocks_for(words, tile_words); }
};

std::uint32_t* words_at(char* address) { return reinterpret_cast<std::uint32_t*>(address); }

Contestant lanes_variant(const RaggedOnGpu& list, int lane_shift) {
  return {std::to_string(1 << lane_shift) + " lanes a run",
          [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const auto kernel = direction == GAPLESS_PACK ? runs_by_lanes<true> : runs_by_lanes<false>;
            const unsigned blocks = blocks_for(std::uint64_t{list.count} << lane_shift, block_threads);
            kernel<<<blocks, block_threads, 0, stream>>>(list.runs(), lane_shift, words_at(spot.memory),
                                                         words_at(spot.packed));
            launched();
          }};
}

Contestant search_variant(const RaggedOnGpu& list) {
  return {"search in tiles", [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const auto kernel = direction == GAPLESS_PACK ? runs_by_search<true> : runs_by_search<false>;
            kernel<<<list.tiles(), block_threads, 0, stream>>>(list.runs(), words_at(spot.memory),
                                                               words_at(spot.packed));
            launched();
          }};
}

template <bool fetching_ahead>
Contestant expansion_variant(const RaggedOnGpu& list, int lane_shift) {
  const char* const ahead = fetching_ahead ? ", fetching ahead" : "";
  return {"expansion in tiles, " + std::to_string(1 << lane_shift) + " lanes a run" + ahead,
          [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const auto kernel = direction == GAPLESS_PACK ? runs_by_expansion<true, fetching_ahead>
                                                          : runs_by_expansion<false, fetching_ahead>;
            kernel<<<list.tiles(), block_threads, 0, stream>>>(list.runs(), lane_shift, words_at(spot.memory),
                                                               words_at(spot.packed));
            launched();
          }};
}

}  // namespace

std::vector<Contestant> uniform_list_kernels(const UniformList& list) {
  const auto offsets = on_gpu(list.offsets);
  return {uniform_variant<1>(list, offsets), uniform_variant<4>(list, offsets), uniform_variant<8>(list, offsets)};
}

std::vector<Contestant> ragged_list_kernels(const RaggedList& list) {
  const RaggedOnGpu on_gpu(list);
  const auto mean = std::max(1U, on_gpu.words / on_gpu.count);
  const int lane_shift = std::min(5, static_cast<int>(std::bit_width(mean)) - 1);
  const int fewer = std::max(lane_shift - 1, 1);
  return {lanes_variant(on_gpu, lane_shift),
          lanes_variant(on_gpu, std::min(lane_shift + 1, 5)),
          search_variant(on_gpu),
          expansion_variant<false>(on_gpu, 0),
          expansion_variant<false>(on_gpu, fewer),
          expansion_variant<true>(on_gpu, 0),
          expansion_variant<true>(on_gpu, fewer)};
}

}  // namespace gapless::bench

// Contiguous bytes, and rows of equal length in up to three dimensions.
//
// flat   consecutive threads take consecutive words of the packed data; each finds its row by division. Full lanes
//        whatever the row's length, and only multiplications to pay for it.
// plain  a block of threads takes as many rows as fit, one word a thread at a time: no division a word, but idle lanes
// lanes  a power of two of lanes shares a row, several rows at a time, beginning on a boundary in memory, so that
//        unpacking stores whole sectors but at the ends of a row
// pieces blocks of threads take pieces of long rows
//
// Fetching ahead asks for the sectors that will be stored to in part while the packed data is still on its way.
#include <algorithm>
#include <bit>

#include "contestants/hand.hpp"
#include "contestants/words.cuh"

namespace gapless::bench {
namespace {

struct Rows {
  Divider words;  ///< in a row
  Divider count0, count1;
  std::int64_t stride[3];
  std::uint32_t total;  ///< rows

  explicit Rows(const Box& box, std::int64_t word)
      : words(static_cast<std::uint32_t>(box.row / word)),
        count0(static_cast<std::uint32_t>(box.count[0])),
        count1(static_cast<std::uint32_t>(box.count[1])),
        stride{box.stride[0], box.stride[1], box.stride[2]},
        total(static_cast<std::uint32_t>(box.count[0] * box.count[1] * box.count[2])) {}

  template <int dimensions>
  __device__ std::int64_t offset(std::uint32_t row) const {
    if constexpr (dimensions == 1) return row * stride[0];
    const std::uint32_t outer = count0.quotient(row);
    const std::int64_t inner = (row - outer * count0.divisor) * stride[0];
    if constexpr (dimensions == 2) return inner + outer * stride[1];
    const std::uint32_t outermost = count1.quotient(outer);
    return inner + (outer - outermost * count1.divisor) * stride[1] + outermost * stride[2];
  }
};

constexpr int most_threads = 512;

enum class Hint { none, streaming, fetching_ahead };

template <class Word, int in_flight, int dimensions, bool packs, Hint hint>
__global__ void __launch_bounds__(most_threads) flat(const __grid_constant__ Rows rows, char* memory, Word* packed) {
  constexpr bool streaming = hint == Hint::streaming;
  const std::uint32_t words = rows.total * rows.words.divisor;
  const std::uint32_t first = blockIdx.x * (blockDim.x * in_flight) + threadIdx.x;
  Word value[in_flight];
  Word* at[in_flight];
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * blockDim.x;
    const std::uint32_t row = rows.words.quotient(word);
    at[i] = reinterpret_cast<Word*>(memory + rows.template offset<dimensions>(row)) + (word - row * rows.words.divisor);
    if (hint == Hint::fetching_ahead && word < words) fetch_ahead(at[i]);
    if (word < words) value[i] = load<streaming>(packs ? at[i] : packed + word);
  }
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * blockDim.x;
    if (word < words) store<streaming>(packs ? packed + word : at[i], value[i]);
  }
}

/// `1 << lane_shift` lanes a row, `in_flight` rows each.
template <class Word, int in_flight, int dimensions, bool packs>
__global__ void __launch_bounds__(most_threads)
    rows_by_lanes(const __grid_constant__ Rows rows, int lane_shift, char* memory, Word* packed) {
  const std::uint32_t lanes = 1U << lane_shift, groups = blockDim.x >> lane_shift;
  const std::uint32_t first = blockIdx.x * (groups * in_flight) + (threadIdx.x >> lane_shift);
  Word* at[in_flight];
  std::int32_t column[in_flight];
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    at[i] = reinterpret_cast<Word*>(memory + rows.template offset<dimensions>(first + i * groups));
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at[i]) / sizeof(Word));
    column[i] = static_cast<std::int32_t>(threadIdx.x & (lanes - 1)) - static_cast<std::int32_t>(place & (lanes - 1));
  }
  const auto words = static_cast<std::int32_t>(rows.words.divisor);
  for (std::int32_t done = 0; done < words + static_cast<std::int32_t>(lanes - 1); done += lanes) {
    Word value[in_flight];
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      const std::uint32_t row = first + i * groups;
      const std::int32_t word = column[i] + done;
      if (row < rows.total && word >= 0 && word < words) {
        value[i] = packs ? at[i][word] : packed[row * rows.words.divisor + word];
      }
    }
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      const std::uint32_t row = first + i * groups;
      const std::int32_t word = column[i] + done;
      if (row < rows.total && word >= 0 && word < words) {
        (packs ? packed[row * rows.words.divisor + word] : at[i][word]) = value[i];
      }
    }
  }
}

/// threadIdx.y is the row, threadIdx.x walks along it.
template <class Word, int dimensions, bool packs>
__global__ void __launch_bounds__(most_threads) plain(const __grid_constant__ Rows rows, char* memory, Word* packed) {
  const std::uint32_t row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows.total) return;
  Word* const sparse = reinterpret_cast<Word*>(memory + rows.template offset<dimensions>(row));
  Word* const dense = packed + row * rows.words.divisor;
  for (std::uint32_t word = threadIdx.x; word < rows.words.divisor; word += blockDim.x) {
    (packs ? dense : sparse)[word] = (packs ? sparse : dense)[word];
  }
}

/// blockIdx.y is the row, blockIdx.x the piece of it.
template <class Word, int in_flight, int dimensions, bool packs, bool streaming>
__global__ void __launch_bounds__(block_threads) pieces(const __grid_constant__ Rows rows, char* memory, Word* packed) {
  Word* const sparse = reinterpret_cast<Word*>(memory + rows.template offset<dimensions>(blockIdx.y));
  Word* const dense = packed + std::uint64_t{blockIdx.y} * rows.words.divisor;
  const std::uint32_t first = blockIdx.x * (block_threads * in_flight) + threadIdx.x;
  Word value[in_flight];
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * block_threads;
    if (word < rows.words.divisor) value[i] = load<streaming>((packs ? sparse : dense) + word);
  }
#pragma unroll
  for (int i = 0; i < in_flight; ++i) {
    const std::uint32_t word = first + i * block_threads;
    if (word < rows.words.divisor) store<streaming>((packs ? dense : sparse) + word, value[i]);
  }
}

template <class Visit>
void with_dimensions(const Box& box, const Visit& visit) {
  if (box.count[2] > 1) return visit(std::integral_constant<int, 3>());
  if (box.count[1] > 1) return visit(std::integral_constant<int, 2>());
  visit(std::integral_constant<int, 1>());
}

std::uint64_t alignment_of(const Box& box) {
  return static_cast<std::uint64_t>(box.base | box.row | box.stride[0] | box.stride[1] | box.stride[2]);
}

/// How a kernel is launched.
struct Tuning {
  std::uint64_t widest = 16;  ///< bytes of a word at most
  unsigned threads = 256;     ///< in a block
  unsigned resident = 0;      ///< blocks a multiprocessor, 0 for as many as fit: sparse rows lie in as many pages of
                              ///< memory, and fewer of them open at a time can be faster

  std::size_t shared() const {
    constexpr std::size_t a_multiprocessor = std::size_t{220} << 10;
    return resident == 0 ? 0 : a_multiprocessor / resident - 1024;
  }
  std::string name() const {
    std::string text;
    if (widest < 16) text += ", words of at most " + std::to_string(widest) + " B";
    if (threads != 256) text += ", " + std::to_string(threads) + " threads a block";
    if (resident > 0) text += ", " + std::to_string(resident) + " blocks a multiprocessor";
    return text;
  }
};

template <int in_flight, Hint hint>
Contestant flat_variant(const Box& box, const Tuning& tuning = {}) {
  const auto issue = [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const auto launch = [&](auto word) {
      using Word = decltype(word);
      const Rows rows(box, sizeof(Word));
      const unsigned blocks = blocks_for(std::uint64_t{rows.total} * rows.words.divisor, tuning.threads * in_flight);
      auto* packed = reinterpret_cast<Word*>(spot.packed);
      with_dimensions(box, [&](auto dimensions) {
        const auto kernel = direction == GAPLESS_PACK ? flat<Word, in_flight, dimensions(), true, hint>
                                                      : flat<Word, in_flight, dimensions(), false, hint>;
        allow_shared(kernel, tuning.shared());
        kernel<<<blocks, tuning.threads, tuning.shared(), stream>>>(rows, spot.memory + box.base, packed);
      });
    };
    with_word(alignment_of(box), launch, tuning.widest);
    launched();
  };
  constexpr const char* hints[] = {"", ", streaming", ", fetching ahead"};
  return {"flat, " + std::to_string(in_flight) + " in flight" + hints[static_cast<int>(hint)] + tuning.name(), issue};
}

template <int in_flight>
Contestant rows_variant(const Box& box) {
  const auto issue = [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const auto launch = [&](auto word) {
      using Word = decltype(word);
      const Rows rows(box, sizeof(Word));
      const int lane_shift = std::bit_width(std::min(rows.words.divisor, 32U) - 1U);
      const unsigned blocks = blocks_for(rows.total, (block_threads >> lane_shift) * in_flight);
      auto* packed = reinterpret_cast<Word*>(spot.packed);
      with_dimensions(box, [&](auto dimensions) {
        const auto kernel = direction == GAPLESS_PACK ? rows_by_lanes<Word, in_flight, dimensions(), true>
                                                      : rows_by_lanes<Word, in_flight, dimensions(), false>;
        kernel<<<blocks, block_threads, 0, stream>>>(rows, lane_shift, spot.memory + box.base, packed);
      });
    };
    with_word(alignment_of(box), launch);
    launched();
  };
  return {"aligned lanes on rows, " + std::to_string(in_flight) + " in flight", issue};
}

Contestant plain_variant(const Box& box, const Tuning& tuning) {
  const auto issue = [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const auto launch = [&](auto word) {
      using Word = decltype(word);
      const Rows rows(box, sizeof(Word));
      const unsigned lanes = std::min(std::bit_ceil(rows.words.divisor), tuning.threads);
      const dim3 threads(lanes, tuning.threads / lanes);
      auto* packed = reinterpret_cast<Word*>(spot.packed);
      with_dimensions(box, [&](auto dimensions) {
        const auto kernel =
            direction == GAPLESS_PACK ? plain<Word, dimensions(), true> : plain<Word, dimensions(), false>;
        kernel<<<blocks_for(rows.total, threads.y), threads, 0, stream>>>(rows, spot.memory + box.base, packed);
      });
    };
    with_word(alignment_of(box), launch, tuning.widest);
    launched();
  };
  return {"a thread a word of a row" + tuning.name(), issue};
}

template <int in_flight, bool streaming>
Contestant pieces_variant(const Box& box) {
  const auto issue = [box](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const Rows rows(box, sizeof(uint4));
    const dim3 blocks(blocks_for(rows.words.divisor, block_threads * in_flight), rows.total);
    auto* packed = reinterpret_cast<uint4*>(spot.packed);
    with_dimensions(box, [&](auto dimensions) {
      const auto kernel = direction == GAPLESS_PACK ? pieces<uint4, in_flight, dimensions(), true, streaming>
                                                    : pieces<uint4, in_flight, dimensions(), false, streaming>;
      kernel<<<blocks, block_threads, 0, stream>>>(rows, spot.memory + box.base, packed);
    });
    launched();
  };
  return {"pieces of rows, " + std::to_string(in_flight) + " in flight" + (streaming ? ", streaming" : ""), issue};
}

}  // namespace

std::vector<Contestant> box_kernels(const Box& box) {
  std::vector<Contestant> variants{
      flat_variant<1, Hint::none>(box),
      flat_variant<1, Hint::none>(box, {.widest = 4}),
      flat_variant<1, Hint::none>(box, {.widest = 8, .threads = 512}),
      flat_variant<2, Hint::none>(box),
      flat_variant<2, Hint::none>(box, {.widest = 8}),
      flat_variant<4, Hint::none>(box),
      flat_variant<4, Hint::none>(box, {.resident = 1}),
      flat_variant<4, Hint::streaming>(box),
      flat_variant<4, Hint::fetching_ahead>(box, {.resident = 4}),
      plain_variant(box, {.widest = 8, .threads = 512}),
      rows_variant<1>(box),
      rows_variant<2>(box),
  };
  const std::int64_t rows = box.count[0] * box.count[1] * box.count[2];
  if (alignment_of(box) % 16 == 0 && box.row >= 1024 && rows < 65536) {
    variants.push_back(pieces_variant<2, false>(box));
    variants.push_back(pieces_variant<4, true>(box));
  }
  return variants;
}

std::vector<Contestant> copies(std::int64_t bytes) {
  const Box one_row{0, bytes, {1, 1, 1}, {0, 0, 0}};
  std::vector<Contestant> variants;
  if (bytes % 16 == 0) {
    variants = {pieces_variant<2, false>(one_row), pieces_variant<4, false>(one_row), pieces_variant<4, true>(one_row),
                pieces_variant<8, false>(one_row)};
  }
  variants.push_back({"cudaMemcpyAsync", [bytes](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
                        const bool packs = direction == GAPLESS_PACK;
                        check(cudaMemcpyAsync(packs ? spot.packed : spot.memory, packs ? spot.memory : spot.packed,
                                              static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream),
                              "copying");
                      }});
  return variants;
}

}  // namespace gapless::bench

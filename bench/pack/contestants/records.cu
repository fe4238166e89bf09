// The first 17 of every 24 bytes, as in struct {double; int[2]; char}. Nearly every line is needed, so a tile of
// records passes through shared memory, read and written in whole words there where that is allowed: padding must stay
// as it is.
#include "contestants/hand.hpp"
#include "contestants/words.cuh"

namespace gapless::bench {
namespace {

constexpr int used = 17, extent = 24, tile_records = 512;
constexpr int tile_memory = tile_records * extent, tile_packed = tile_records * used;

__device__ void stage(const char* source, char* shared, int bytes, int limit) {
  const int whole = min(bytes, limit) / 16;
  for (int i = static_cast<int>(threadIdx.x); i < whole; i += block_threads) {
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(source)[i];
  }
  for (int i = whole * 16 + static_cast<int>(threadIdx.x); i < min(bytes, limit); i += block_threads) {
    shared[i] = source[i];
  }
}

__device__ std::uint32_t unaligned_word(const char* shared, int at) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(shared) + at / 4;
  return __funnelshift_r(words[0], words[1], 8 * (at % 4));
}

/// Four packed bytes, which may belong to two records.
__device__ std::uint32_t packed_word(const char* records, int at) {
  const int record = at / used, field = at % used, here = used - field;
  const std::uint32_t first = unaligned_word(records, record * extent + field);
  if (here >= 4) return first;
  const std::uint32_t next = unaligned_word(records, (record + 1) * extent);
  return (first & ((1U << (8 * here)) - 1)) | next << (8 * here);
}

__global__ void __launch_bounds__(block_threads) pack_tiles(const char* memory, char* packed, std::int64_t records) {
  __shared__ __align__(16) char shared[tile_memory + extent + 8];
  const std::int64_t first = std::int64_t{blockIdx.x} * tile_records;
  const int here = static_cast<int>(min(std::int64_t{tile_records}, records - first));
  stage(memory + first * extent, shared, tile_memory, here * extent - (extent - used));
  __syncthreads();
  char* const target = packed + first * used;
  for (int i = static_cast<int>(threadIdx.x); i < here * used / 4; i += block_threads) {
    reinterpret_cast<std::uint32_t*>(target)[i] = packed_word(shared, 4 * i);
  }
  for (int i = here * used / 4 * 4 + static_cast<int>(threadIdx.x); i < here * used; i += block_threads) {
    target[i] = shared[i / used * extent + i % used];
  }
}

/// A thread a double word of a record: two whole ones and a single byte. Every sector is stored to in part, so fetching
/// ahead asks for all of them.
template <bool fetching_ahead>
__global__ void __launch_bounds__(block_threads) unpack_tiles(char* memory, const char* packed, std::int64_t records) {
  __shared__ __align__(16) char shared[tile_packed + 16];
  const std::int64_t first = std::int64_t{blockIdx.x} * tile_records;
  const int here = static_cast<int>(min(std::int64_t{tile_records}, records - first));
  char* const target = memory + first * extent;
  if (fetching_ahead) {
    for (int i = static_cast<int>(threadIdx.x) * 32; i < here * extent - 8; i += block_threads * 32)
      fetch_ahead(target + i);
  }
  stage(packed + first * used, shared, tile_packed, here * used);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 3 * here; i += block_threads) {
    const int at = i / 3 * used + i % 3 * 8;
    if (i % 3 == 2) {
      target[i * 8] = shared[at];
    } else {
      const std::uint64_t low = unaligned_word(shared, at), high = unaligned_word(shared, at + 4);
      reinterpret_cast<std::uint64_t*>(target)[i] = high << 32 | low;
    }
  }
}

/// A thread a field, as in Jenkins et al., 2014: what one writes first.
template <bool packs>
__global__ void __launch_bounds__(block_threads) by_field(char* memory, char* packed, std::int64_t records) {
  const std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (i >= 4 * records) return;
  const std::int64_t record = i / 4;
  const int field = static_cast<int>(i % 4), at = field == 0 ? 0 : 4 + 4 * field,
            length = field == 0   ? 8
                     : field == 3 ? 1
                                  : 4;
  char *const sparse = memory + record * extent + at, *const dense = packed + record * used + at;
  for (int byte = 0; byte < length; ++byte) (packs ? dense : sparse)[byte] = (packs ? sparse : dense)[byte];
}

template <bool fetching_ahead>
Contestant tiles_variant(std::int64_t count) {
  const auto issue = [count](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    const unsigned blocks = blocks_for(static_cast<std::uint64_t>(count), tile_records);
    if (direction == GAPLESS_PACK) {
      pack_tiles<<<blocks, block_threads, 0, stream>>>(spot.memory, spot.packed, count);
    } else {
      unpack_tiles<fetching_ahead><<<blocks, block_threads, 0, stream>>>(spot.memory, spot.packed, count);
    }
    launched();
  };
  return {std::string("tiles in shared memory") + (fetching_ahead ? ", fetching ahead" : ""), issue};
}

Contestant field_variant(std::int64_t count) {
  return {"a thread a field", [count](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const unsigned blocks = blocks_for(4 * static_cast<std::uint64_t>(count), block_threads);
            const auto kernel = direction == GAPLESS_PACK ? by_field<true> : by_field<false>;
            kernel<<<blocks, block_threads, 0, stream>>>(spot.memory, spot.packed, count);
            launched();
          }};
}

}  // namespace

std::vector<Contestant> record_kernels(const Records& records) {
  return {tiles_variant<false>(records.count), tiles_variant<true>(records.count), field_variant(records.count)};
}

}  // namespace gapless::bench

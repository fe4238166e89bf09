#include <cuda_runtime.h>

#include <algorithm>

#include "arena.hpp"
#include "contestants/hand.hpp"

namespace gapless::bench {
namespace {

constexpr std::size_t guard = 4096;
constexpr int threads = 256;
/// Beyond these, small pieces of work are not much further from the cache, only slower to set up.
constexpr std::size_t most_spots = 128;

__host__ __device__ std::uint32_t random_word(std::uint64_t index, std::uint32_t seed) {
  auto x = static_cast<std::uint32_t>(index) * 2654435761U ^ static_cast<std::uint32_t>(index >> 32) ^ seed;
  x ^= x >> 15;
  x *= 2246822519U;
  x ^= x >> 13;
  return x;
}

__global__ void fill(std::uint32_t* words, std::uint64_t count, std::uint32_t seed) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = random_word(i, seed);
  }
}

__global__ void find_difference(const std::uint32_t* a, const std::uint32_t* b, std::uint64_t count,
                                unsigned long long* first) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if (a[i] != b[i]) atomicMin(first, static_cast<unsigned long long>(i));
  }
}

/// One thread a byte, straight from the oracle's list: slow and plain.
__global__ void oracle_copy(const std::int64_t* offsets, const std::int64_t* starts, std::int64_t length,
                            std::int64_t blocks, std::int64_t bytes, const char* memory, const char* packed,
                            char* packed_result, char* memory_result) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t k = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < bytes; k += step) {
    std::int64_t block = 0, within = 0;
    if (starts == nullptr) {
      block = k / length;
      within = k % length;
    } else {
      std::int64_t after = blocks;
      while (after - block > 1) {
        const std::int64_t middle = (block + after) / 2;
        (starts[middle] <= k ? block : after) = middle;
      }
      within = k - starts[block];
    }
    const std::int64_t at = offsets[block] + within;
    if (packed_result != nullptr) {
      packed_result[k] = memory[at];
    } else {
      memory_result[at] = packed[k];
    }
  }
}

constexpr unsigned grid = 132 * 16;

std::size_t rounded(std::int64_t bytes) { return (static_cast<std::size_t>(bytes) + guard - 1) / guard * guard; }

void fill_words(char* data, std::size_t bytes, std::uint32_t seed) {
  fill<<<grid, threads>>>(reinterpret_cast<std::uint32_t*>(data), bytes / 4, seed);
  check(cudaDeviceSynchronize(), "filling memory");
}

/// The oracle's list on the GPU.
class Oracle {
 public:
  explicit Oracle(const Blocks& blocks)
      : offsets_(upload(blocks.offsets)),
        starts_(upload(starts_of(blocks))),
        length_(blocks.length),
        count_(static_cast<std::int64_t>(blocks.offsets.size())),
        bytes_(blocks.packed_bytes()),
        listed_(!blocks.lengths.empty()) {}

  void pack(const char* memory, char* packed) const { run(memory, nullptr, packed, nullptr); }
  void unpack(char* memory, const char* packed) const { run(nullptr, packed, nullptr, memory); }

 private:
  static std::vector<std::int64_t> starts_of(const Blocks& blocks) {
    std::vector<std::int64_t> starts;
    std::int64_t at = 0;
    for (const std::int64_t length : blocks.lengths) {
      starts.push_back(at);
      at += length;
    }
    return starts;
  }
  static Memory upload(const std::vector<std::int64_t>& values) {
    Memory memory(std::max<std::size_t>(values.size(), 1) * sizeof(std::int64_t));
    check(cudaMemcpy(memory.data(), values.data(), values.size() * sizeof(std::int64_t), cudaMemcpyHostToDevice),
          "copying the oracle's list");
    return memory;
  }
  void run(const char* memory, const char* packed, char* packed_result, char* memory_result) const {
    const auto* starts = listed_ ? reinterpret_cast<const std::int64_t*>(starts_.data()) : nullptr;
    oracle_copy<<<grid, threads>>>(reinterpret_cast<const std::int64_t*>(offsets_.data()), starts, length_, count_,
                                   bytes_, memory, packed, packed_result, memory_result);
    check(cudaDeviceSynchronize(), "running the oracle");
  }

  Memory offsets_, starts_;
  std::int64_t length_, count_, bytes_;
  bool listed_;
};

/// Empty if both are equal, else where they first differ.
std::string difference(const char* got, const char* wanted, std::size_t bytes, const char* does) {
  static const Memory place(sizeof(unsigned long long));
  auto* first = reinterpret_cast<unsigned long long*>(place.data());
  check(cudaMemset(first, 0xff, sizeof *first), "resetting a place");
  find_difference<<<grid, threads>>>(reinterpret_cast<const std::uint32_t*>(got),
                                     reinterpret_cast<const std::uint32_t*>(wanted), bytes / 4, first);
  unsigned long long found = 0;
  check(cudaMemcpy(&found, first, sizeof found, cudaMemcpyDeviceToHost), "reading a place");
  if (found == ~0ULL) return "";
  return std::string(does) + " wrong bytes from " + std::to_string(4 * found) + " of " + std::to_string(bytes);
}

constexpr std::uint32_t memory_seed = 1, poison_seed = 77;

}  // namespace

Arena::Arena(std::size_t span, std::size_t packed)
    : memory_(span + 2 * guard), image_(span + 2 * guard), packed_(packed + 2 * guard) {
  int device = 0, cache = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "asking for the cache size");
  cache_bytes_ = static_cast<std::size_t>(cache);
  fill_words(memory_.data(), memory_.bytes(), memory_seed);
}

bool Arena::holds(const Workload& work) const {
  return static_cast<std::size_t>(work.blocks.span()) + 2 * guard <= memory_.bytes() &&
         static_cast<std::size_t>(work.packed_bytes()) + 2 * guard <= packed_.bytes();
}

std::vector<Spot> Arena::spots(const Workload& work) const {
  const std::size_t span = rounded(work.blocks.span()), packed = rounded(work.packed_bytes());
  const std::size_t wanted = 1 + 4 * cache_bytes_ / static_cast<std::size_t>(work.traffic());
  const std::size_t count = std::min({wanted, packed_.bytes() / packed, most_spots});
  // Where there is no room for so many, they overlap: what is packed and unpacked never changes a byte. They are whole
  // pages apart, so that sparse layouts still touch other lines.
  const std::size_t room = count > 1 ? (memory_.bytes() - span) / (count - 1) / guard * guard : 0;
  std::vector<Spot> spots;
  for (std::size_t i = 0; i < count; ++i) {
    spots.push_back({memory_.data() + i * std::min(span, room), packed_.data() + i * packed});
  }
  return spots;
}

std::vector<Spot> Arena::spots_with(const Workload& work, const Memory& packed) const {
  std::vector<Spot> spots = this->spots(work);
  const std::size_t each = rounded(work.packed_bytes());
  spots.resize(std::min(spots.size(), std::max<std::size_t>(1, packed.bytes() / each)));
  for (std::size_t i = 0; i < spots.size(); ++i) spots[i].packed = packed.data() + i * each;
  return spots;
}

std::vector<std::string> Arena::faults(const Workload& work, const std::vector<const Contestant*>& contestants,
                                       const std::vector<Spot>& spots) const {
  const Stream stream;
  const Oracle oracle(work.blocks);
  const std::size_t bytes = rounded(work.packed_bytes());
  const std::size_t span = std::min(rounded(work.blocks.span()) + guard, memory_.bytes());
  char* const memory = memory_.data();
  char* const packed = spots[0].packed;
  const Memory expected(bytes);
  fill_words(expected.data(), bytes, poison_seed);
  oracle.pack(memory, expected.data());
  fill_words(image_.data(), span, poison_seed);
  oracle.unpack(image_.data(), expected.data());
  std::vector<std::string> faults;
  for (const Contestant* contestant : contestants) {
    fill_words(packed, bytes, poison_seed);
    contestant->issue({memory, packed}, GAPLESS_PACK, stream);
    stream.wait();
    std::string fault = difference(packed, expected.data(), bytes, "packs");
    fill_words(memory, span, poison_seed);
    check(cudaMemcpy(packed, expected.data(), bytes, cudaMemcpyDefault), "copying packed data");
    contestant->issue({memory, packed}, GAPLESS_UNPACK, stream);
    stream.wait();
    if (fault.empty()) fault = difference(memory, image_.data(), span, "unpacks");
    faults.push_back(std::move(fault));
    fill_words(memory, span, memory_seed);
  }
  // Unpacking must have something to unpack at every spot.
  for (const Spot& spot : spots) oracle.pack(spot.memory, spot.packed);
  return faults;
}

void Arena::verify(const Workload& work, const std::vector<const Contestant*>& contestants,
                   const std::vector<Spot>& spots) const {
  const std::vector<std::string> found = faults(work, contestants, spots);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].empty()) fail(contestants[i]->name + " " + found[i] + " of " + work.name);
  }
}

double Arena::copy_seconds(std::int64_t bytes, const Effort& effort) const {
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(bytes / 16 * 16, 16));
  const std::size_t place = rounded(static_cast<std::int64_t>(each));
  const std::size_t count = std::min({1 + 2 * cache_bytes_ / each, image_.bytes() / place, most_spots});
  std::vector<Spot> spots;
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
    spots.push_back({memory_.data() + i * place, image_.data() + i * place});
  }
  const std::vector<Contestant> ways = copies(static_cast<std::int64_t>(each));
  const std::size_t best = fastest(ways, spots, GAPLESS_PACK);
  return gpu_seconds({&ways[best]}, spots, GAPLESS_PACK, effort).front();
}

}  // namespace gapless::bench

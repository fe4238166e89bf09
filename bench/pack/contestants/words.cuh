// Shared by the hand-written kernels: words of 1 to 16 bytes, loads and stores with and without the streaming hint, and
// division by a number known only at run time.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu.hpp"

namespace gapless::bench {

constexpr int block_threads = 256;

template <bool streaming, class Word>
__device__ Word load(const Word* address) {
  if constexpr (streaming) return __ldcs(address);
  return *address;
}

template <bool streaming, class Word>
__device__ void store(Word* address, Word value) {
  if constexpr (streaming) {
    __stcs(address, value);
  } else {
    *address = value;
  }
}

/// Starts to fetch what a store will complete: stores of parts of a sector wait for the rest of it.
__device__ inline void fetch_ahead(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

/// Quotients of numbers below 2^31 by multiplication (Granlund and Montgomery, 1994).
struct Divider {
  std::uint32_t divisor, factor, shift;

  explicit Divider(std::uint32_t d = 1) : divisor(d), shift(31) {
    while ((std::uint64_t{1} << (shift - 31)) < d) ++shift;
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + d - 1) / d);
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * factor) >> shift);
  }
};

/// Calls visit with a value of the widest word of at most `widest` bytes that divides all the given numbers.
template <class Visit>
void with_word(std::uint64_t numbers, const Visit& visit, std::uint64_t widest = 16) {
  const std::uint64_t bits = numbers | widest;
  const std::uint64_t bytes = bits & (~bits + 1);
  if (bytes == 16) return visit(uint4());
  if (bytes == 8) return visit(std::uint64_t());
  if (bytes == 4) return visit(std::uint32_t());
  if (bytes == 2) return visit(std::uint16_t());
  visit(std::uint8_t());
}

inline unsigned blocks_for(std::uint64_t items, std::uint64_t items_a_block) {
  return static_cast<unsigned>((items + items_a_block - 1) / items_a_block);
}

/// Beyond 48 KiB a kernel has to be told.
template <class Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  if (bytes <= 48 << 10) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
}

inline void launched() { check(cudaPeekAtLastError(), "launching a hand-written kernel"); }

/// A list on the GPU that lives as long as the contestants that use it.
template <class T>
std::shared_ptr<Memory> on_gpu(const std::vector<T>& values) {
  auto memory = std::make_shared<Memory>(values.size() * sizeof(T));
  check(cudaMemcpy(memory->data(), values.data(), memory->bytes(), cudaMemcpyHostToDevice), "copying a list");
  return memory;
}

}  // namespace gapless::bench

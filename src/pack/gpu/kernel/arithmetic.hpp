// Exact division by a number fixed at launch, without a divide instruction, the same on host and GPU.
//
// A kernel turns each flat index into the digits of a nest of modes; with hardware division that costs more than the
// memory access it finds. Multiplying by a precomputed reciprocal is exact for every index below 2^(bits - 1).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#define GAPLESS_HOST_DEVICE __host__ __device__ __forceinline__
#define GAPLESS_HOST_DEVICE_CALLED __host__ __device__ __noinline__
#define GAPLESS_UNROLL _Pragma("unroll")
#define GAPLESS_RUNS_ANYWHERE _Pragma("nv_exec_check_disable")
#else
#define GAPLESS_RUNS_ANYWHERE
#define GAPLESS_UNROLL
#define GAPLESS_HOST_DEVICE inline
#define GAPLESS_HOST_DEVICE_CALLED
#endif

namespace gapless::pack::gpu {

GAPLESS_HOST_DEVICE std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{a} * b) >> 32);
}

GAPLESS_HOST_DEVICE std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

GAPLESS_HOST_DEVICE std::uint32_t bit_width(std::uint32_t n) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(32 - __clz(static_cast<int>(n)));
#else
  return static_cast<std::uint32_t>(std::bit_width(n));
#endif
}

/// Postcondition of make_divider(d): quotient(n) == n / d for every n < 2^(bits - 1); precondition: 0 < d <= 2^(bits -
/// 1).
template <class Index>
struct Divider {
  Index divisor;
  Index magic;
  std::uint32_t shift;

  GAPLESS_HOST_DEVICE Index quotient(Index n) const noexcept { return (multiply_high(n, magic) + n) >> shift; }
};

/// Rounded-up reciprocal (Granlund and Montgomery 1994): magic = floor(2^bits (2^shift - d) / d) + 1.
template <class Index>
Divider<Index> make_divider(Index divisor) noexcept {
  constexpr int bits = static_cast<int>(sizeof(Index) * 8);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(static_cast<Index>(divisor - 1)));
  const Index above = (Index{1} << shift) - divisor;
  using Wide = std::conditional_t<sizeof(Index) == 4, std::uint64_t, unsigned __int128>;
  const auto magic = static_cast<Index>((static_cast<Wide>(above) << bits) / divisor) + 1;
  return {divisor, static_cast<Index>(magic), shift};
}

}  // namespace gapless::pack::gpu

// Bytes at any address, moved in aligned words: what the regimes for odd lengths and odd addresses share.
#pragma once

#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {

/// The `count` bytes at `address`, lowest first; what is above them is undefined. 0 < count <= 8. Only aligned words
/// that hold at least one of the bytes are read.
template <class Space>
GAPLESS_HOST_DEVICE std::uint64_t load_bytes(const Space& space, std::uintptr_t address, unsigned count) noexcept {
  const std::uintptr_t aligned = address & ~std::uintptr_t{7};
  const auto skip = static_cast<unsigned>(address & 7);
  const std::uint64_t low = space.word_around(aligned) >> (8 * skip);
  return skip + count <= 8 ? low : low | space.word_around(aligned + 8) << (64 - 8 * skip);
}

/// Writes bytes [begin, end) of `value` to address + begin and on, and no other. Precondition: `address` is 8-aligned,
/// 0 <= begin < end <= 8.
template <class Space>
GAPLESS_HOST_DEVICE void store_bytes(const Space& space, std::uintptr_t address, std::uint64_t value, unsigned begin,
                                     unsigned end) noexcept {
  if (begin == 0 && end == 8) {
    *space.template at<std::uint64_t>(address) = value;
    return;
  }
  while (begin < end) {
    const std::uint64_t rest = value >> (8 * begin);
    if (begin % 4 == 0 && end - begin >= 4) {
      *space.template at<std::uint32_t>(address + begin) = static_cast<std::uint32_t>(rest);
      begin += 4;
    } else if (begin % 2 == 0 && end - begin >= 2) {
      *space.template at<std::uint16_t>(address + begin) = static_cast<std::uint16_t>(rest);
      begin += 2;
    } else {
      *space.template at<std::uint8_t>(address + begin) = static_cast<std::uint8_t>(rest);
      begin += 1;
    }
  }
}

/// A store of what will not be read again soon, so that caches keep other things.
template <class Word, class Space>
GAPLESS_HOST_DEVICE void store_streaming(const Space& space, std::uintptr_t address, const Word& value) noexcept {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Word) == 16) {
    __stcs(space.template at<ulonglong2>(address), ulonglong2{value.low, value.high});
  } else if constexpr (sizeof(Word) == 8) {
    __stcs(space.template at<unsigned long long>(address), value);
  } else {
    __stcs(space.template at<Word>(address), value);
  }
#else
  *space.template at<Word>(address) = value;
#endif
}

/// What caches keep track of, and stores fill or leave in part.
inline constexpr int sector_bytes = 32;

/// Brings the sector of an address into the L2 cache. A sector that is only partly written must be filled from memory
/// anyway; ordered early, the fill overlaps with other work instead of stalling the write.
GAPLESS_HOST_DEVICE void prefetch_sector([[maybe_unused]] std::uintptr_t address) noexcept {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

}  // namespace gapless::pack::gpu

// Hashes of handles, addresses and small numbers, for tables of a power of two of places, and of bytes, for processes
// to compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gapless {

/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, 6.4): multiples of it lie far
/// apart, whether the numbers differ in their low bits (MPICH's handles) or in the middle (addresses).
inline constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

/// The place of a number in a table of 2^bits places; 0 < bits < 64.
constexpr std::size_t slot_of(std::uint64_t number, unsigned bits) noexcept {
  return static_cast<std::size_t>((number * golden) >> (64 - bits));
}

/// Adds a value to a key.
constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value) noexcept {
  key = (key ^ value) * golden;
  return key ^ (key >> 32);
}

/// FNV-1a: the same number in every process. `before`: the hash of the bytes that come before these.
constexpr std::uint64_t hash_of(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325u) noexcept {
  for (const char byte : bytes) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return before;
}

}  // namespace gapless

// Buffers with guard bytes around whatever a datatype touches, and the plain way to pack and unpack them.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "support/random.hpp"

namespace gapless::test {

/// Memory for the bytes at `offsets` from base(), which may be negative, with guards on both sides and a
/// base `misalignment` (less than 64) bytes past a cache line's start.
class Memory {
 public:
  Memory(std::span<const MPI_Aint> offsets, Random& random, int misalignment = 0) {
    constexpr MPI_Aint guard = 64;
    constexpr MPI_Aint line = 64;
    MPI_Aint low = 0;
    MPI_Aint high = 0;
    for (MPI_Aint offset : offsets) {
      low = std::min(low, offset);
      high = std::max(high, offset + 1);
    }
    bytes_.resize(static_cast<std::size_t>(high - low + 2 * guard + 2 * line));
    base_ = guard - low;
    base_ += line - static_cast<MPI_Aint>(reinterpret_cast<std::size_t>(base()) % line) + misalignment;
    // Counted from the base, so that ranks that draw the same numbers hold the same bytes wherever their memory is.
    for (MPI_Aint offset = low - guard; offset < high + guard; ++offset)
      bytes_[static_cast<std::size_t>(base_ + offset)] = static_cast<std::byte>(random.bits());
  }

  std::byte* base() { return bytes_.data() + base_; }
  /// Where base() is in bytes().
  MPI_Aint origin() const { return base_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  std::vector<std::byte> packed(std::span<const MPI_Aint> offsets) const {
    std::vector<std::byte> result;
    result.reserve(offsets.size());
    for (MPI_Aint offset : offsets) result.push_back(bytes_[static_cast<std::size_t>(base_ + offset)]);
    return result;
  }

  /// What all bytes must be once the first packed.size() bytes have been unpacked, and nothing else touched.
  std::vector<std::byte> after_unpacking(std::span<const std::byte> packed, std::span<const MPI_Aint> offsets) const {
    std::vector<std::byte> result = bytes_;
    for (std::size_t k = 0; k < packed.size(); ++k) result[static_cast<std::size_t>(base_ + offsets[k])] = packed[k];
    return result;
  }

 private:
  std::vector<std::byte> bytes_;
  MPI_Aint base_ = 0;
};

}  // namespace gapless::test

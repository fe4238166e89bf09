// Regime contiguous: bytes in a row on both sides.
#pragma once

#include <cstdint>

namespace gapless::pack::gpu {

/// Left to the copy engine.
struct ContiguousWork {
  std::uintptr_t memory;
  std::uintptr_t packed;
  std::uint64_t bytes;
  bool unpack;
};

}  // namespace gapless::pack::gpu

// How often this process, its libraries included, has asked for heap memory, and requests that are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace gapless::test {

std::uint64_t allocations();

/// While one lives, the process gets no aligned heap memory of so many bytes or more, as pools of packed buffers ask
/// for.
class NoAlignedMemory {
 public:
  explicit NoAlignedMemory(std::size_t from_bytes);
  ~NoAlignedMemory();
  NoAlignedMemory(const NoAlignedMemory&) = delete;
  NoAlignedMemory& operator=(const NoAlignedMemory&) = delete;
};

/// Refuses the calling thread's next request for heap memory of any kind.
void refuse_next_allocation();

}  // namespace gapless::test

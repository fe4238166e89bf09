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

/// While one lives, one request of the calling thread by C++'s `new` is refused, or all of them, after so many that are
/// not. MPI libraries are written in C.
class NoNew {
 public:
  /// The simulated GPU is never refused anything.
  enum class Refused : unsigned char { one, all };
  explicit NoNew(unsigned after, Refused refused = Refused::one);
  ~NoNew();
  NoNew(const NoNew&) = delete;
  NoNew& operator=(const NoNew&) = delete;
  /// Has any been refused?
  static bool is_refused();
};

}  // namespace gapless::test

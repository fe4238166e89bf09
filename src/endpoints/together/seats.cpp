#include "endpoints/together/seats.hpp"

#include <new>

namespace gapless::mpi::endpoints {

std::byte* Seats::room(std::size_t which, std::size_t bytes) noexcept {
  if (gathered_bytes[which] >= bytes) return gathered[which].get();
  gathered[which].reset(new (std::nothrow) std::byte[bytes]);
  gathered_bytes[which] = gathered[which] == nullptr ? 0 : bytes;
  return gathered[which].get();
}

}  // namespace gapless::mpi::endpoints

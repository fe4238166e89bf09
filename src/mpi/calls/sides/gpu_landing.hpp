// Where a header lands that comes for a receive into GPU memory.
//
// Under a library that reads GPU memory itself, a message may land in GPU memory, where the CPU cannot see whether a
// header has come, so as many bytes as a header has are copied out. The copy takes longer than a header saves a short
// message. So a noncontiguous receive from a process that may send headers has its packed bytes in host memory, as long
// as headers do come. A header leaves all but the first packed bytes untouched, so long ones are not page-locked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/headers/speaking.hpp"
#include "transfer/blocking.hpp"
#include "transfer/headers/header.hpp"

namespace gapless::mpi::gpu_landing {

namespace internal {
/// Messages in a row that came themselves where a header was expected, for instance from a peer that cannot export its
/// memory.
inline constinit std::atomic<std::uint32_t> disappointments{0};
inline constexpr std::uint32_t most_disappointments = 16;
}  // namespace internal

/// Longer packed bytes lie in pageable memory where a header is expected. A window of page-locked ones would be more
/// than is kept, and each would take the driver a millisecond.
inline constexpr std::size_t longest_page_locked = std::size_t{2} << 20;

/// Is a message from that process expected as a header? Any thread.
inline bool expects_header(MPI_Comm communicator, int source) noexcept {
  if (internal::disappointments.load(std::memory_order_relaxed) >= internal::most_disappointments) return false;
  return headers::is_neighbour(communicator, source);
}

/// To be called for each message that was expected as a header, and for each header of a receive into GPU memory.
inline void note(bool is_header) noexcept {
  const std::uint32_t before = internal::disappointments.load(std::memory_order_relaxed);
  const std::uint32_t after = is_header ? 0 : before + 1;
  if (after != before) internal::disappointments.store(after, std::memory_order_relaxed);
}

using HeaderBytes = std::array<std::byte, transfer::headers::Header::size>;

/// Copies as many bytes as a header has out of GPU memory. False after a failure.
inline bool copy_out(const void* landing, int device, HeaderBytes& into) noexcept {
  return transfer::copy_on_gpu(into.data(), landing, into.size(), device) == transfer::Result::ok;
}

/// Wipes out the nonce of a header in GPU memory, so that the header is not taken twice.
inline void wipe(void* landing, int device) noexcept {
  constexpr transfer::headers::Nonce nothing{};
  static_cast<void>(transfer::copy_on_gpu(landing, nothing.data(), nothing.size(), device));
}

}  // namespace gapless::mpi::gpu_landing

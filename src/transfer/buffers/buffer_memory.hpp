// Where the memory of pool buffers comes from and goes to.
//
// Page-locked memory takes the driver half a millisecond a MiB, and no other program can have it, so a process has a
// bounded amount in all, used or kept. Host memory of long buffers is reserved, and costs what is touched of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace gapless::transfer::buffer_memory {

/// Longer buffers are kept by the process, not by threads.
inline constexpr std::size_t longest_of_thread = std::size_t{16} << 20;
/// Behind every buffer, so that one byte more than a power of two does not double it. Two cache lines: adjacent-line
/// prefetch never mixes two buffers.
inline constexpr std::size_t spare_bytes = 128;

/// Memory of one kind, of a GPU where it is not the host's.
struct MemoryPlace {
  device::MemoryKind kind = device::MemoryKind::host;
  int device = -1;
  std::uint64_t context = 0;  ///< that the memory belongs to, see device::Runtime; 0 for the host's

  bool operator==(const MemoryPlace&) const = default;
};

/// Where memory of that kind is allocated now: in the context that the calling thread uses.
MemoryPlace place_now(device::MemoryKind kind, int device) noexcept;
/// Is the place's context there?
bool is_there(const MemoryPlace& place) noexcept;

/// `capacity` bytes and some to spare; nullptr if there are none to be had. Page-locked memory may be refused because
/// the process has enough, unless it is indispensable: frees the long buffers that it keeps first.
std::byte* allocate(const MemoryPlace& place, std::size_t capacity, bool is_indispensable) noexcept;
void release(const MemoryPlace& place, std::byte* memory, std::size_t capacity) noexcept;

/// Memory whose context is gone need not be released, and a release does not reach the GPU then: counts that the
/// process has so many buffers less, of so many bytes.
void forget(const MemoryPlace& place, std::size_t buffers, std::size_t bytes) noexcept;

/// How many buffers there are, used or kept.
std::size_t existing_buffers() noexcept;

/// Page-locked bytes of pool buffers, used or kept. For tests.
std::size_t page_locked_bytes() noexcept;

}  // namespace gapless::transfer::buffer_memory

// Where the memory of pool buffers comes from and goes to.
//
// Page-locked memory takes the driver half a millisecond a MiB, and no other program can have it, so the page-locked
// memory of a process, used or kept, is bounded. Host memory of long buffers is reserved, and costs the touched pages
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace gapless::transfer::buffer_memory {

/// The longest buffer that threads keep. The process keeps longer ones.
inline constexpr std::size_t longest_of_thread = std::size_t{16} << 20;
/// Spare bytes behind every buffer, so that one byte more than a power of two does not double the buffer. Two cache
/// lines: adjacent-line prefetch never mixes two buffers.
inline constexpr std::size_t spare_bytes = 128;

/// Where memory is allocated: its kind, and the GPU and context that the memory belongs to.
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

/// Allocates `capacity` bytes and the spare bytes; null if there is no memory. Page-locked memory beyond the bound is
/// refused, unless it is indispensable. Before a refusal the kept page-locked buffers of the process and of the calling
/// thread are freed.
std::byte* allocate(const MemoryPlace& place, std::size_t capacity, bool is_indispensable) noexcept;
void release(const MemoryPlace& place, std::byte* memory, std::size_t capacity) noexcept;

/// Lets the kernel take back the pages of a long host buffer while nobody uses the buffer. False if the kernel refuses.
bool offer_pages(std::byte* memory, std::size_t capacity) noexcept;

/// Counts so many buffers less, of so many bytes, whose context is gone. Such memory need not be released: a release
/// would not reach the GPU.
void forget(const MemoryPlace& place, std::size_t buffers, std::size_t bytes) noexcept;

/// How many buffers there are, used or kept.
std::size_t existing_buffers() noexcept;

/// Page-locked bytes of pool buffers, used or kept. For tests.
std::size_t page_locked_bytes() noexcept;

}  // namespace gapless::transfer::buffer_memory

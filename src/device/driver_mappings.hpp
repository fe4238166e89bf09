// Counts the mappings that the GPU driver's library makes in this process.
//
// GPU memory needs addresses, and the driver gets addresses from the system as everybody does, with mmap: libcuda has
// no system call instruction of its own, it calls the C library. So as long as this count stands still, no address that
// was the program's has become the GPU's.
#pragma once

#include <atomic>
#include <cstdint>

namespace gapless::device::driver_mappings {

namespace internal {
/// 0 while nobody watches, 1 once somebody does, one more for each mapping.
extern std::atomic<std::uint64_t> count;
}  // namespace internal

/// Begins to count. `library` is the driver's handle from dlopen, which must stay open. Call once.
void watch(void* library) noexcept;

/// 0 while mappings go uncounted, else a number that grows with each.
inline std::uint64_t count() noexcept { return internal::count.load(std::memory_order_acquire); }

/// Has a mapping been counted? Before that, nothing shows that they come by here.
inline bool have_been_seen() noexcept { return count() > 1; }

/// Does every mapping still come by here? False once another tool has taken the places of the functions that count.
bool are_still_seen() noexcept;

}  // namespace gapless::device::driver_mappings

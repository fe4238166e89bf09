// Counts what the GPU driver's library has the operating system do to this process' addresses.
//
// GPU memory needs addresses, and the driver gets addresses from the system as everybody does, with mmap: libcuda has
// no system call instruction of its own, it calls the C library. So as long as the count of mappings stands still, no
// address that was the program's has become the GPU's. It gives them back with munmap, and speaks with ioctl to the
// part of it in the system, which alone can put other memory behind an address. So as long as the count of changes
// stands still, no address that was one GPU's has become anything else.
#pragma once

#include <atomic>
#include <cstdint>

namespace gapless::device::driver_mappings {

namespace internal {
/// 0 while nobody watches, 1 once somebody does, one more for each mapping.
extern std::atomic<std::uint64_t> count;
/// Calls of munmap and ioctl.
extern std::atomic<std::uint64_t> releases;
}  // namespace internal

/// Begins to count. `library` is the driver's handle from dlopen, which must stay open. Call once.
void watch(void* library) noexcept;

/// 0 while mappings go uncounted, else a number that grows with each.
inline std::uint64_t count() noexcept { return internal::count.load(std::memory_order_acquire); }

/// 0 while changes go uncounted or none has been seen, else a number that grows with each.
std::uint64_t changes() noexcept;

/// Is it certain that the driver has released nothing and called its part in the system for nothing since watch()?
bool have_no_releases_been_made() noexcept;

/// Has a mapping been counted? Before that, nothing shows that they come by here.
inline bool have_been_seen() noexcept { return count() > 1; }

/// Does everything still come by here? False once another tool has taken the places of the functions that count.
bool are_still_seen() noexcept;

}  // namespace gapless::device::driver_mappings

// Pages that the GPU driver was asked about and that are host memory still.
//
// Asking the driver takes longest over memory that is none of its own, and large arrays are asked about again and
// again. An answer may be remembered as long as it cannot have become wrong. A page turns from memory that the CPU
// reads into memory that only a GPU does in one way: its mapping goes, and the driver makes another one there. So a
// page is remembered if the CPU could read it, for as long as the driver has made no new mapping, which driver_mappings
// counts. What the program maps and unmaps without the driver turns no page into GPU memory and need not be known.
//
// Reading matters, because the driver keeps addresses in reserve that it hands out later without mapping anything: MPI
// may be given one of those with a count of 0, or the end of an array of the GPU's. The CPU can read none of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/driver_mappings.hpp"

namespace gapless::device::host_pages {

inline constexpr std::size_t most_remembered = 4096;

namespace internal {
bool contains(const void* pointer) noexcept;
}

/// Is the pointer in a page that is known to be host memory? False says nothing. A few nanoseconds; where nothing can
/// be remembered, as in a process that uses no GPU, one load.
inline bool contains(const void* pointer) noexcept {
  return driver_mappings::have_been_seen() && internal::contains(pointer);
}

/// Remembers the page of a pointer that the driver has just said is no memory of its own. `mappings_before` is what
/// driver_mappings::count() was before it was asked. Makes a system call.
void remember(const void* pointer, std::uint64_t mappings_before) noexcept;

/// Can the CPU read the byte? A system call, which leaves errno as it was.
bool is_readable(const void* pointer) noexcept;

}  // namespace gapless::device::host_pages

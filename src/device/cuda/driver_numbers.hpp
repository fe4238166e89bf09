// The driver's numbers of contexts and of allocations. None is ever given twice in a process, unlike a handle or an
// address, so a number tells whether something is still what it was.
#pragma once

#include <cstdint>

namespace gapless::device::cuda {

/// Of the calling thread's context; 0 where it has none, or its GPU has been reset and not been used since. Drivers
/// before CUDA 12 number no contexts: each GPU has one number then, which outlives a reset.
std::uint64_t current_context_number() noexcept;

/// Of the allocation that the address lies in, whatever context is current; 0 where there is none.
std::uint64_t allocation_number(const void* address) noexcept;

}  // namespace gapless::device::cuda

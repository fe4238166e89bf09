// Allocations of GPU memory that the driver was asked about and that are GPU memory still.
//
// To ask the driver takes longer than anything else the CPU does for a small message in GPU memory, and programs give
// the same few arrays to MPI again and again. Only allocations of cuMemAlloc are remembered, which are of one piece.
// One of them ceases to be that GPU's memory in one way: the driver gives up the addresses or what lies behind them,
// and for either it needs the operating system. So answers hold until the driver has next called for that, which
// driver_mappings counts. What the driver frees and hands out again within memory that it has from the system needs no
// call, and is the same GPU's memory still.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gapless::device::gpu_allocations {

inline constexpr unsigned most_remembered = 8;  // by each thread

/// The GPU whose memory the pointer names, if that is known; -1 says nothing. A few nanoseconds.
int device_of(const void* pointer) noexcept;

/// Remembers an allocation of cuMemAlloc. `changes_before` is what driver_mappings::changes() was before the driver was
/// asked about it.
void remember(std::uintptr_t begin, std::size_t bytes, int device, std::uint64_t changes_before) noexcept;

}  // namespace gapless::device::gpu_allocations

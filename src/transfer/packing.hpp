// Packing within one process, between any two kinds of memory: MPI_Pack and MPI_Unpack.
#pragma once

#include <cstddef>
#include <span>

#include "pack/job.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// Packs the whole buffer to `packed`, in memory of any kind. Complete on return.
Result pack(const Buffer& buffer, void* packed, device::Location packed_location) noexcept;
/// Unpacks `buffer.size()` bytes from `packed`.
Result unpack(const Buffer& buffer, const void* packed, device::Location packed_location) noexcept;

/// Moves packed bytes [begin, end) of the buffer, where `packed` is the address of byte `begin`. Complete on return.
/// Records no statistics: the caller may make one movement of several ranges.
Result move_range(pack::Direction direction, const Buffer& buffer, layout::Offset begin, layout::Offset end,
                  void* packed, device::Location packed_location) noexcept;

/// Packs the first bytes of a buffer that the CPU reaches. No statistics count them. Precondition: the buffer has so
/// many bytes.
Result gather(const Buffer& buffer, std::span<std::byte> first_bytes) noexcept;
/// Unpacks the first bytes of a buffer likewise.
Result scatter(const Buffer& buffer, std::span<const std::byte> first_bytes) noexcept;

}  // namespace gapless::transfer

// Packing within one process, between any two kinds of memory: MPI_Pack and MPI_Unpack.
#pragma once

#include <cstddef>
#include <span>

#include "pack/job.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// Packs the whole buffer to `packed`, wherever that is. Complete on return.
Result pack(const Buffer& buffer, void* packed, device::Location packed_location) noexcept;
/// Unpacks `buffer.size()` bytes from `packed`.
Result unpack(const Buffer& buffer, const void* packed, device::Location packed_location) noexcept;

/// Moves packed bytes [begin, end) of the buffer, where `packed` is the place of byte `begin`. Complete on return. The
/// statistics are the caller's, who makes one movement of several.
Result move_range(pack::Direction direction, const Buffer& buffer, layout::Offset begin, layout::Offset end,
                  void* packed, device::Location packed_location) noexcept;

/// Packs the first bytes of a buffer that the CPU reaches, which no statistics count. Precondition: it has so many.
Result gather(const Buffer& buffer, std::span<std::byte> first_bytes) noexcept;
/// Unpacks as many.
Result scatter(const Buffer& buffer, std::span<const std::byte> first_bytes) noexcept;

}  // namespace gapless::transfer

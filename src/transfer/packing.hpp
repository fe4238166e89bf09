// Packing within one process, between any two kinds of memory: MPI_Pack and MPI_Unpack.
#pragma once

#include <cstddef>
#include <span>

#include "transfer/message.hpp"

namespace gapless::transfer {

/// Packs the whole buffer to `packed`, wherever that is. Complete on return.
Result pack(const Buffer& buffer, void* packed, device::Location packed_location) noexcept;
/// Unpacks `buffer.size()` bytes from `packed`.
Result unpack(const Buffer& buffer, const void* packed, device::Location packed_location) noexcept;

/// Packs the first bytes of a buffer that the CPU reaches, which no statistics count. Precondition: it has so many.
Result gather(const Buffer& buffer, std::span<std::byte> first_bytes) noexcept;

}  // namespace gapless::transfer

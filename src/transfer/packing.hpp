// Packing within one process, between any two kinds of memory: MPI_Pack and MPI_Unpack.
#pragma once

#include "transfer/message.hpp"

namespace gapless::transfer {

/// Packs the whole buffer to `packed`, wherever that is. Complete on return.
Result pack(const Buffer& buffer, void* packed, device::Location packed_location) noexcept;
/// Unpacks `buffer.size()` bytes from `packed`.
Result unpack(const Buffer& buffer, const void* packed, device::Location packed_location) noexcept;

}  // namespace gapless::transfer

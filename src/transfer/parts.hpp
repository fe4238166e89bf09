// Packing of many buffers at once within one process, by one launch where one GPU holds all buffers.
#pragma once

#include <cstddef>
#include <span>

#include "pack/job.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// A buffer, and the address of its packed bytes; a null buffer: nothing to move.
struct PackedPart {
  const Buffer* buffer = nullptr;
  std::byte* packed = nullptr;
};

/// The GPU that holds all parts; -1 if no GPU does.
int gpu_of_all(std::span<const PackedPart> parts) noexcept;

/// Packs or unpacks every part. All packed bytes are in memory like `packed`. Complete on return.
Result move_parts(pack::Direction direction, std::span<const PackedPart> parts, device::Location packed) noexcept;

/// Copies between two buffers of the same packed size that the CPU can address, in packed order, with no packed bytes
/// in between.
Result copy_on_host(const Buffer& from, const Buffer& to) noexcept;

}  // namespace gapless::transfer

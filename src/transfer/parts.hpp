// Packing of many buffers at once within one process: one launch where one GPU holds them all.
#pragma once

#include <cstddef>
#include <span>

#include "pack/job.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// One buffer, and where its packed bytes are; null: nothing.
struct PackedPart {
  const Buffer* buffer = nullptr;
  std::byte* packed = nullptr;
};

/// The GPU whose memory all of them are; -1 if they are not.
int gpu_of_all(std::span<const PackedPart> parts) noexcept;

/// Packs or unpacks every part. All packed bytes are in the one place. Complete on return.
Result move_parts(pack::Direction direction, std::span<const PackedPart> parts, device::Location packed) noexcept;

/// Copies between two buffers of the same packed size that the CPU can address, in packed order, with no packed bytes
/// in between.
Result copy_on_host(const Buffer& from, const Buffer& to) noexcept;

}  // namespace gapless::transfer

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

/// Packs or unpacks every part. All packed bytes are in the one place. Complete on return.
Result move_parts(pack::Direction direction, std::span<const PackedPart> parts, device::Location packed) noexcept;

}  // namespace gapless::transfer

// Buffers of long messages, which the process keeps, so that long messages cost no allocation.
//
// The lock costs little beside the bytes of a long message. The kept buffers are bounded for each kind of memory. The
// kernel may take the pages of kept host memory, so kept buffers cost the program nothing.
#pragma once

#include <cstddef>

#include "transfer/buffers/buffer_memory.hpp"

namespace gapless::transfer::long_buffers {

struct Buffer {
  std::byte* memory = nullptr;
  std::size_t capacity = 0;
};

/// Takes a kept buffer, or allocates one. The result's memory is null if there is none.
Buffer take(const buffer_memory::MemoryPlace& place, std::size_t bytes, bool is_indispensable) noexcept;
/// Gives a buffer back: it is kept, or released.
void give(const buffer_memory::MemoryPlace& place, const Buffer& buffer) noexcept;

/// Releases all kept buffers, of one kind or of any.
void drop(device::MemoryKind kind) noexcept;
void drop_all() noexcept;

}  // namespace gapless::transfer::long_buffers

// Buffers of long messages, which the process keeps, so that such a message costs no allocation either.
//
// A lock is taken, which the bytes of a long message make up for. What is kept is bounded for each kind of memory; the
// pages of kept host memory are the kernel's for the taking, so that they cost the program nothing.
#pragma once

#include <cstddef>

#include "transfer/buffers/buffer_memory.hpp"

namespace gapless::transfer::long_buffers {

struct Buffer {
  std::byte* memory = nullptr;
  std::size_t capacity = 0;
};

/// A buffer that was kept, or is allocated; its memory is null if there is none to be had.
Buffer take(const buffer_memory::MemoryPlace& place, std::size_t bytes, bool is_indispensable) noexcept;
/// Gives a buffer back: it is kept, or released.
void give(const buffer_memory::MemoryPlace& place, const Buffer& buffer) noexcept;

/// Releases all that are kept, of one kind or of any.
void drop(device::MemoryKind kind) noexcept;
void drop_all() noexcept;

}  // namespace gapless::transfer::long_buffers

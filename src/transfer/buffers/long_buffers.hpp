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
/// Is a kept buffer there for a message of so many bytes that can do without, or is a new one worth its memory? The
/// first touch of new memory takes about as long as packing saves of two messages. So messages are counted that needed
/// new memory and did without, and every third of them gets it: a program that sends one such message does not lose by
/// it, nor need twice the memory.
bool is_worth_taking(const buffer_memory::MemoryPlace& place, std::size_t bytes) noexcept;
/// Gives a buffer back: it is kept, or released.
void give(const buffer_memory::MemoryPlace& place, const Buffer& buffer) noexcept;

/// Releases all kept buffers, of one kind or of any.
void drop(device::MemoryKind kind) noexcept;
void drop_all() noexcept;

}  // namespace gapless::transfer::long_buffers

// A message in its sender's memory, as a GPU of this process reads it.
#pragma once

#include <cstddef>

#include "device/opened_memory.hpp"
#include "pack/job.hpp"
#include "pack/pair_job.hpp"
#include "transfer/message.hpp"
#include "transfer/pulls/strided.hpp"

namespace gapless::transfer::pulls {

struct Source {
  layout::LayoutPointer layout;
  layout::Mode outer{};
  layout::Offset size = 0;  ///< packed bytes of the message
  std::byte* memory = nullptr;

  /// One contiguous run from `memory + layout->base` on?
  bool is_contiguous() const noexcept { return size == layout->size && layout->is_contiguous(); }
  /// Packs bytes [begin, end).
  pack::Job packing(layout::Offset begin, layout::Offset end, void* packed) const noexcept {
    return {layout.get(), outer, begin, end, pack::Direction::pack, memory, packed};
  }
  /// Copies the whole message. Precondition: the buffer has the size of the message.
  pack::PairJob into(const Buffer& buffer) const noexcept {
    return {layout.get(), outer, memory, buffer.type->layout.get(), {buffer.count, buffer.type->extent}, buffer.memory};
  }
};

/// Maps the sender's allocation for that GPU, unless `use` has mapped it already, and finds the message there. False
/// after a failure, and where the sender names memory outside the allocation.
bool open(const StridedMessage& message, const device::MemoryHandle& allocation, int device,
          device::OpenedMemory::Use& use, Source& source) noexcept;

/// Moves the first `bytes` bytes, packed, into memory that the CPU reaches, page-locked or not. Done on return.
Result copy_packed(const Source& source, int device, std::byte* into, std::size_t bytes) noexcept;

/// Moves the first `bytes` bytes into a buffer in GPU memory, through packed pieces: a pair job would move all bytes of
/// a layout. Done on return.
Result copy_first(const Source& source, const Buffer& into, layout::Offset bytes) noexcept;
/// Moves them through host memory, where GPU `device` reaches the source and the buffer's own GPU does not.
Result copy_by_host(const Source& source, int device, const Buffer& into, layout::Offset bytes) noexcept;

}  // namespace gapless::transfer::pulls

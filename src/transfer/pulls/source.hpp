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
  layout::Offset size = 0;  ///< packed bytes of it all
  std::byte* memory = nullptr;

  /// One contiguous run from `memory + layout->base` on?
  bool is_contiguous() const noexcept { return size == layout->size && layout->is_contiguous(); }
  /// Packs bytes [begin, end).
  pack::Job packing(layout::Offset begin, layout::Offset end, void* packed) const noexcept {
    return {layout.get(), outer, begin, end, pack::Direction::pack, memory, packed};
  }
  /// Copies all of it. Precondition: the buffer has its size.
  pack::PairJob into(const Buffer& buffer) const noexcept {
    return {layout.get(), outer, memory, buffer.type->layout.get(), {buffer.count, buffer.type->extent}, buffer.memory};
  }
};

/// Maps the sender's allocation for that GPU in `use`, unless that is done, and finds the message there. False after a
/// failure. What the sender says is believed only within bounds.
bool open(const StridedMessage& message, const device::MemoryHandle& allocation, int device,
          device::OpenedMemory::Use& use, Source& source) noexcept;

/// Moves the first `bytes` bytes, packed, into memory that every GPU of this process and the CPU reach, or the CPU
/// alone. Done on return.
Result copy_packed(const Source& source, int device, std::byte* into, std::size_t bytes) noexcept;

/// Moves the first `bytes` bytes into GPU memory, where no one kernel goes from one layout to the other. Done on
/// return.
Result copy_first(const Source& source, const Buffer& into, layout::Offset bytes) noexcept;
/// The same by way of host memory, where the buffer's GPU does not reach the source and GPU `device` does.
Result copy_by_host(const Source& source, int device, const Buffer& into, layout::Offset bytes) noexcept;

}  // namespace gapless::transfer::pulls

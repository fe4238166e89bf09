// Movements within this process that are done on return, by the engine that fits, each with its Result.
#pragma once

#include <cstddef>
#include <span>

#include "pack/gpu_engine.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

Result result_of(device::Status status) noexcept;

/// Whose memory a job uses, beside memory of the GPU that it runs on, with packed bytes in memory of kind `packed`.
pack::Reach reach_of(pack::Direction direction, device::MemoryKind packed) noexcept;

Result run_on_host(const pack::Job& job) noexcept;
Result run_on_gpu(const pack::Job& job, int device, device::MemoryKind packed) noexcept;
/// Copies between layouts, in as few launches as possible.
Result run_on_gpu(std::span<const pack::PairJob> jobs, int device) noexcept;
/// The copy of all of one buffer into another. Precondition: both have the same size.
pack::PairJob copying(const Buffer& from, const Buffer& into) noexcept;
/// Returns when the GPU has done all that the program has issued to its default stream. `was_idle`: the GPU had done
/// all before the call, or the program has said that its buffers are ready.
Result wait_for_default_stream(int device, bool& was_idle) noexcept;
inline Result wait_for_default_stream(int device) noexcept {
  bool was_idle = false;
  return wait_for_default_stream(device, was_idle);
}
/// Copies on a stream of gapless's own, after all that the program has issued to its default stream: MPI has no stream
/// argument, so the default stream is the only one that a call can follow.
Result copy_on_gpu(void* destination, const void* source, std::size_t bytes, int device) noexcept;
/// Copies packed bytes in memory of that kind into memory that the CPU reaches: by the CPU where it reaches both, else
/// by GPU `device`.
Result copy_packed(std::byte* into, const std::byte* packed, std::size_t bytes, int device,
                   device::MemoryKind kind) noexcept;

}  // namespace gapless::transfer

// The engines of a simulated GPU: copies of boxes, chunk buffers, and a clock by which runs take what is
// expected and what a test adds to it.
#pragma once

#include <array>
#include <atomic>
#include <cstring>

#include "pack/gpu/batch/chunks.hpp"
#include "pack/gpu/route/route.hpp"
#include "simulated_memory.hpp"

namespace gapless::tests {

/// Calls `copy(destination, source, bytes)` for every row, in order.
template <class Copy>
void copy_boxes(const pack::gpu::CopyPlan& plan, const Copy& copy) {
  for (int i = 0; i < plan.count; ++i) {
    const pack::gpu::BoxCopy& box = plan.copies[i];
    std::uintptr_t packed = box.packed;
    for (std::uint64_t plane = 0; plane < box.planes; ++plane) {
      for (std::uint64_t row = 0; row < box.rows; ++row, packed += box.row) {
        const std::uintptr_t memory = box.memory + plane * box.plane_distance + row * box.row_distance;
        plan.unpack ? copy(memory, packed, box.row) : copy(packed, memory, box.row);
      }
    }
  }
}

/// How much longer than expected each engine's runs take.
class EngineDelays {
 public:
  /// False for an unknown engine.
  bool set(const char* engine, std::int64_t nanoseconds) {
    const auto named = pack::gpu::engine_named(engine);
    if (!named) return false;
    delays_[static_cast<std::size_t>(*named)] = nanoseconds;
    return true;
  }
  std::int64_t elapsed_ns(const pack::gpu::Route& route) const {
    return expected_ns(route.engine, route.movement) + delays_[static_cast<std::size_t>(route.engine)];
  }

 private:
  std::array<std::atomic<std::int64_t>, pack::gpu::engine_count> delays_{};
};

/// Packed memory for the chunks of one job, freed when the job's stream has passed its end. `Stream` takes work by
/// add().
template <class Stream, class CopyToGpu>
class SimulatedChunks final : public pack::gpu::ChunkBuffers {
 public:
  /// `copy` issues a copy.
  SimulatedChunks(SimulatedMemory& memory, int device, Stream& stream, const CopyToGpu& copy)
      : memory_(memory), stream_(stream), copy_(copy), buffer_(memory.allocate(device, pack::gpu::largest_chunk)) {}
  ~SimulatedChunks() override {
    stream_.add([&memory = memory_, buffer = buffer_] { return buffer == nullptr || memory.release(buffer); });
  }

  bool has_memory() const { return buffer_ != nullptr; }
  device::Status bring(const void* host, std::size_t bytes, void*& packed) noexcept override {
    packed = buffer_;
    return copy_(buffer_, host, bytes);
  }
  device::Status done() noexcept override { return device::Status::ok; }

 private:
  SimulatedMemory& memory_;
  Stream& stream_;
  const CopyToGpu& copy_;
  void* buffer_;
};

}  // namespace gapless::tests

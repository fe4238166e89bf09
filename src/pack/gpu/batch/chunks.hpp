// A large unpack from host memory that no copies can do goes through packed GPU memory, chunk by chunk: a copy engine
// brings a chunk while a kernel unpacks the one before.
#pragma once

#include "model/gpu.hpp"
#include "pack/gpu/batch/issue.hpp"

namespace gapless::pack::gpu {

inline constexpr Offset largest_chunk = model::gpu_tuning.largest_chunk;

/// Where the chunk that begins at packed byte `begin` of a job's range up to `end` ends.
Offset end_of_chunk(Offset begin, Offset end) noexcept;

/// Packed GPU memory for one chunk at a time.
class ChunkBuffers {
 public:
  virtual ~ChunkBuffers() = default;
  /// Lets what is launched from now on find `bytes` of host memory at `packed`. Precondition: bytes <= largest_chunk.
  virtual device::Status bring(const void* host, std::size_t bytes, void*& packed) noexcept = 0;
  /// All that uses that chunk has been launched.
  virtual device::Status done() noexcept = 0;
};

/// Hands the job to the sink chunk by chunk. Its first failure, or that of the buffers, ends it. Throws std::bad_alloc.
device::Status issue_in_chunks(Planner& planner, const Job& job, int device, LaunchSink& sink, ChunkBuffers& buffers);

}  // namespace gapless::pack::gpu

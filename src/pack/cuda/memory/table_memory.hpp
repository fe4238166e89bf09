// Batches' tables in GPU memory: page-locked memory to copy them from, and events for when the GPU has passed them.
//
// A graph may be launched at any later time, and twice at a time, so one that is being captured gets a table of its
// own, copied at once and released when the graph and all that was made of it are gone.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/memory/descriptor_memory.hpp"
#include "pack/gpu/batch/table_pool.hpp"

namespace gapless::pack::gpu {

/// For the current device, from any thread.
class CudaTableMemory final : public TableMemory {
 public:
  bool allocate(int device, TableBlock& block) noexcept override;
  device::Status upload(const TableBlock& block, std::size_t bytes, void* stream) noexcept override;
  device::Status mark(const TableBlock& block, void* stream) noexcept override;
  device::Status follow(const TableBlock& block, void* stream) noexcept override;
  bool has_passed(const TableBlock& block) noexcept override;
};

/// The batch's table for the graph that `queue` is being captured into, which owns it; nullptr where there is no memory
/// for it. Throws std::bad_alloc.
const void* table_in_graph(const std::shared_ptr<CudaDescriptorMemory>& memory, const Batch& batch, int device,
                           cudaStream_t queue);

}  // namespace gapless::pack::gpu

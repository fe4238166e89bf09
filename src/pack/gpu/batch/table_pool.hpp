// Memory for batches' tables, of one GPU context: a few blocks, made when they are first needed and kept.
//
// A block is written again once the GPU has passed the last launch that reads it, so whoever finds none free is not
// kept waiting but goes without. The same batch finds its table where it left it, if no other needed the block since.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "device/runtime.hpp"
#include "pack/gpu/batch/batch.hpp"

namespace gapless::pack::gpu {

/// Memory for one table; the runtime's own notion of what uses it.
struct TableBlock {
  std::byte* staging = nullptr;  ///< page-locked
  std::byte* table = nullptr;    ///< the GPU's
  void* mark = nullptr;
};

/// Where tables live, and how the GPU passes them. To be called by one thread at a time for each block.
class TableMemory {
 public:
  virtual ~TableMemory() = default;
  /// Makes largest_table bytes of both, of which nothing uses the GPU's; false when there is no memory.
  virtual bool allocate(int device, TableBlock& block) noexcept = 0;
  /// Copies so many bytes from staging to the GPU, for what is issued to `stream` from now on.
  virtual device::Status upload(const TableBlock& block, std::size_t bytes, void* stream) noexcept = 0;
  /// All that uses the block has been issued, the last of it to `stream`.
  virtual device::Status mark(const TableBlock& block, void* stream) noexcept = 0;
  /// Lets what is issued to `stream` from now on come after the last mark.
  virtual device::Status follow(const TableBlock& block, void* stream) noexcept = 0;
  /// Has the GPU passed the last mark?
  virtual bool has_passed(const TableBlock& block) noexcept = 0;
};

class TablePool {
 public:
  static constexpr int blocks_per_device = 4;

  explicit TablePool(TableMemory& memory) noexcept : memory_(memory) {}

  /// What launch(table) returns, for an address in the GPU's memory at which kernels in `stream` find the batch's
  /// table. Nothing where no block is free.
  template <class Action>
  std::optional<device::Status> run(const Batch& batch, int device, void* stream, const Action& launch) noexcept {
    Block* const block = take(device, batch.identity());
    if (block == nullptr) return std::nullopt;
    device::Status status = bring(*block, batch, stream);
    if (status == device::Status::ok) {
      status = launch(static_cast<const void*>(block->memory.table));
      // After a failure too: the copy is under way.
      const device::Status marked = memory_.mark(block->memory, stream);
      if (marked != device::Status::ok) return marked;  // without a mark nobody knows when the block is free again
    }
    block->taken.clear(std::memory_order_release);
    return status;
  }

 private:
  struct Block {
    std::atomic_flag taken;
    std::atomic<std::uint64_t> batch{0};  ///< identity of the one whose table it holds; written by who has taken it
    TableBlock memory;
  };

  static constexpr int most_devices = 16;

  /// One that holds the batch's table, else one that is free; nullptr if there is neither.
  Block* take(int device, std::uint64_t batch) noexcept;
  bool is_free(int device, TableBlock& block) noexcept;
  /// Lets what is issued to `stream` from now on find the table; after a failure nothing has been issued.
  device::Status bring(Block& block, const Batch& batch, void* stream) noexcept;

  TableMemory& memory_;
  std::array<std::array<Block, blocks_per_device>, most_devices> blocks_;
  std::atomic<unsigned> next_{0};
};

}  // namespace gapless::pack::gpu

#include "pack/gpu/batch/table_pool.hpp"

namespace gapless::pack::gpu {

using device::Status;

TablePool::Block* TablePool::take(int device, std::uint64_t batch) noexcept {
  if (device >= most_devices) return nullptr;
  auto& blocks = blocks_[static_cast<std::size_t>(device)];
  const auto is_taken = [](Block& block) { return block.taken.test_and_set(std::memory_order_acquire); };
  const auto let_go = [](Block& block) { block.taken.clear(std::memory_order_release); };
  for (Block& block : blocks) {
    if (block.batch.load(std::memory_order_relaxed) != batch || is_taken(block)) continue;
    if (block.batch.load(std::memory_order_relaxed) == batch) return &block;
    let_go(block);
  }
  // The one that was written longest ago comes first.
  const unsigned first = next_.fetch_add(1, std::memory_order_relaxed);
  for (unsigned i = 0; i < blocks_per_device; ++i) {
    Block& block = blocks[(first + i) % blocks_per_device];
    if (is_taken(block)) continue;
    if (is_free(device, block.memory)) return &block;
    let_go(block);
  }
  return nullptr;
}

bool TablePool::is_free(int device, TableBlock& block) noexcept {
  return block.table != nullptr ? memory_.has_passed(block) : memory_.allocate(device, block);
}

Status TablePool::bring(Block& block, const Batch& batch, void* stream) noexcept {
  if (block.batch.load(std::memory_order_relaxed) == batch.identity()) return memory_.follow(block.memory, stream);
  batch.write_table(block.memory.staging);
  const Status status = memory_.upload(block.memory, batch.table_parts().end, stream);
  block.batch.store(status == Status::ok ? batch.identity() : 0, std::memory_order_relaxed);
  return status;
}

}  // namespace gapless::pack::gpu

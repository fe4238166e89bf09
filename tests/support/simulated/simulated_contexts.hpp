// Contexts of simulated GPUs: a GPU that is reset has another one from then on, and none of the memory of the old one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>

#include "pack/gpu/batch/table_pool.hpp"
#include "simulated_memory.hpp"

namespace gapless::tests {

class SimulatedContexts {
 public:
  explicit SimulatedContexts(pack::gpu::TableMemory& tables) : table_memory_(tables) {
    for (int device = 0; device < SimulatedMemory::device_count; ++device) replace(device);
  }

  std::uint64_t number(int device) const noexcept {
    const std::lock_guard lock(mutex_);
    return numbers_[static_cast<std::size_t>(device)];
  }
  bool has(std::uint64_t number) const noexcept {
    const std::lock_guard lock(mutex_);
    return std::find(numbers_.begin(), numbers_.end(), number) != numbers_.end();
  }
  /// The device's tables in its present context.
  pack::gpu::TablePool& tables(int device) {
    const std::lock_guard lock(mutex_);
    return tables_[numbers_[static_cast<std::size_t>(device)] - 1];
  }

  void replace(int device) {
    const std::lock_guard lock(mutex_);
    tables_.emplace_back(table_memory_);
    numbers_[static_cast<std::size_t>(device)] = tables_.size();
  }

 private:
  pack::gpu::TableMemory& table_memory_;
  mutable std::mutex mutex_;
  std::deque<pack::gpu::TablePool> tables_;  ///< of all contexts that there ever were
  std::array<std::uint64_t, SimulatedMemory::device_count> numbers_{};
};

}  // namespace gapless::tests

// Batches' tables on a simulated GPU: copied when their stream gets there, so that memory written again too early shows
// as wrong data.
#pragma once

#include <atomic>
#include <cstring>

#include "pack/gpu/batch/table_pool.hpp"
#include "simulated_memory.hpp"
#include "simulated_streams.hpp"

namespace gapless::tests {

class SimulatedTables final : public pack::gpu::TableMemory {
 public:
  /// `allow` is asked before memory is allocated, `uploads` counts.
  SimulatedTables(SimulatedMemory& memory, bool (*allow)(), std::atomic<long>& uploads)
      : memory_(memory), allow_(allow), uploads_(uploads) {}

  bool allocate(int device, pack::gpu::TableBlock& block) noexcept override {
    if (!allow_()) return false;
    auto* const table = static_cast<std::byte*>(memory_.allocate(device, pack::gpu::largest_table));
    if (table == nullptr) return false;
    block = {new std::byte[pack::gpu::largest_table], table, new Mark};
    return true;
  }
  device::Status upload(const pack::gpu::TableBlock& block, std::size_t bytes, void* stream) noexcept override {
    ++uploads_;
    static_cast<Stream*>(stream)->add([&memory = memory_, block, bytes] {
      const auto address = reinterpret_cast<std::uintptr_t>(block.table);
      std::memcpy(reinterpret_cast<void*>(memory.alias(address)), block.staging, bytes);
      return true;
    });
    return device::Status::ok;
  }
  device::Status mark(const pack::gpu::TableBlock& block, void* stream) noexcept override {
    auto& mark = *static_cast<Mark*>(block.mark);
    mark.stream = static_cast<Stream*>(stream);
    mark.stream->add([&mark, number = ++mark.issued] {
      mark.passed = number;
      return true;
    });
    return device::Status::ok;
  }
  device::Status follow(const pack::gpu::TableBlock& block, void* stream) noexcept override {
    Stream* const last = static_cast<Mark*>(block.mark)->stream;
    if (last != stream) last->finish_quietly();
    return device::Status::ok;
  }
  bool has_passed(const pack::gpu::TableBlock& block) noexcept override {
    const auto& mark = *static_cast<Mark*>(block.mark);
    return mark.passed == mark.issued;
  }

 private:
  struct Mark {
    Stream* stream = nullptr;
    long issued = 0;
    std::atomic<long> passed{0};
  };

  SimulatedMemory& memory_;
  bool (*allow_)();
  std::atomic<long>& uploads_;
};

}  // namespace gapless::tests

// What a simulated GPU does with a launch: the kernels' bodies, on memory that is looked at before it is touched.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <variant>

#include "pack/gpu/batch/issue.hpp"
#include "pack/gpu/batch/pair_batch.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "reduction/tile.hpp"
#include "sequential_kernels.hpp"
#include "simulated_memory.hpp"

namespace gapless::tests {

/// What a kernel may address: live device memory, through its alias, and page-locked host memory.
class CheckedSpace {
 public:
  /// Sets `fault` at the first access to anything else.
  CheckedSpace(const SimulatedMemory& memory, bool& fault) : memory_(memory), fault_(fault) {}

  template <class T>
  T* at(std::uintptr_t address) const noexcept {
    // A GPU faults on words that are not aligned to their width.
    if (address % alignof(std::remove_const_t<T>) != 0) return nowhere<T>();
    if (memory_.is_pinned(address, sizeof(T))) return reinterpret_cast<T*>(address);
    if (memory_.owner(address, sizeof(T)) < 0) return nowhere<T>();
    return reinterpret_cast<T*>(memory_.alias(address));
  }

  /// A GPU may read beside what is allocated, within an aligned word; what it finds there must not matter.
  std::uint64_t word_around(std::uintptr_t address) const noexcept {
    std::uint64_t word = 0x5a5a5a5a5a5a5a5a;
    bool found = false;
    for (std::uintptr_t i = 0; i < sizeof word; ++i) {
      const bool pinned = memory_.is_pinned(address + i, 1);
      if (!pinned && memory_.owner(address + i, 1) < 0) continue;
      found = true;
      const std::uintptr_t real = pinned ? address + i : memory_.alias(address + i);
      std::memcpy(reinterpret_cast<char*>(&word) + i, reinterpret_cast<const void*>(real), 1);
    }
    if (!found || address % sizeof word != 0) fault_ = true;
    return word;
  }

 private:
  template <class T>
  T* nowhere() const noexcept {
    fault_ = true;
    thread_local std::remove_const_t<T> sink{};
    return &sink;
  }

  const SimulatedMemory& memory_;
  bool& fault_;
};

/// Executes one launch or copy.
class Executor {
 public:
  explicit Executor(const SimulatedMemory& memory) : memory_(memory), space_(memory, fault) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void operator()(std::monostate) {}

  void operator()(const pack::gpu::ContiguousWork& work) {
    const std::uintptr_t destination = work.unpack ? work.memory : work.packed;
    const std::uintptr_t source = work.unpack ? work.packed : work.memory;
    copy(destination, source, work.bytes);
  }

  void copy(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes) {
    for (const auto address : {destination, source}) {
      if (memory_.is_device_address(address) && memory_.owner(address, bytes) < 0) fault = true;
    }
    if (fault) return;
    const auto real = [this](std::uintptr_t a) { return memory_.is_device_address(a) ? memory_.alias(a) : a; };
    std::memmove(reinterpret_cast<void*>(real(destination)), reinterpret_cast<const void*>(real(source)), bytes);
  }

  template <class Work>
  void operator()(const Work& work) {
    SequentialKernels<CheckedSpace>{space_}(work);
  }

  template <class Parameters>
  void run_batch(const Parameters& parameters, std::uint32_t tiles) {
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const pack::gpu::BatchTile found = pack::gpu::find_tile(parameters, tile);
      pack::gpu::run_fused_tile(found.tag, parameters.works + found.position, found.tile, block_);
    }
  }

  void run_batch(const pack::gpu::BatchTable& table, std::uint32_t tiles) {
    for (std::uint32_t tile = 0; tile < tiles && !fault; ++tile) {
      const pack::gpu::BatchTile found = pack::gpu::find_tile(table, tile, space_);
      pack::gpu::run_fused_tile(found.tag, pack::gpu::work_of(table, found, space_), found.tile, block_);
    }
  }

  template <class Places>
  void operator()(const pack::gpu::PairWork<Places>& work) {
    pack::gpu::visit_word(work.word_shift, [&](auto word) {
      for (std::uint64_t tile = 0; tile < work.tiles(); ++tile)
        pack::gpu::run_pair_tile<decltype(word)>(work, tile, block_);
    });
  }

  void operator()(const pack::gpu::PairBatch& batch) {
    for (std::uint32_t tile = 0; tile < batch.tiles(); ++tile) pack::gpu::run_pair_batch_tile(batch, tile, block_);
  }

  void operator()(const pack::gpu::OrderedPairWork& work) { pack::gpu::run_pair_tile(work, block_); }

  void operator()(const reduction::Job& job) {
    reduction::visit(job.reduction, [&]<class Number, class Operation>(Number, Operation) {
      constexpr int widest = reduction::widest<Number>;
      for (std::uint64_t tile = 0; tile < reduction::tiles_of(job); ++tile) {
        reduction::is_aligned(job) ? reduction::reduce_tile<Number, Operation, widest>(job, tile, block_)
                                   : reduction::reduce_tile<Number, Operation, 1>(job, tile, block_);
      }
    });
  }

  bool fault = false;

 private:
  const SimulatedMemory& memory_;
  CheckedSpace space_;
  pack::gpu::SequentialBlock<CheckedSpace> block_{space_};
};

}  // namespace gapless::tests

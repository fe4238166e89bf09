// What the runtime makes of a busy simulated GPU, of copies that fail and of memory that runs out: which engine,
// counted, and the bytes right in any case. The process's environment names the simulated GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "../transfer/simulated_gpu.hpp"
#include "device/device.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::tests {
namespace {

using device::Status;
using pack::Direction;
using pack::Job;
using pack::Reach;

constexpr long long late = 500'000;  // nanoseconds

class BusyGpu : public ::testing::Test {
 protected:
  ~BusyGpu() override {
    for (const char* engine : {"kernel", "ahead", "dma"}) gpu_.delay(engine, 0);
    gpu_.release(memory_);
    gpu_.release(packed_);
    runtime_->release(device::MemoryKind::pinned, 0, pinned_);
  }
  void SetUp() override {
    ASSERT_NE(runtime_, nullptr);
    memory_ = gpu_.allocate(0, bytes);
    packed_ = gpu_.allocate(0, bytes);
    ASSERT_EQ(runtime_->allocate(device::MemoryKind::pinned, 0, bytes, &pinned_), Status::ok);
    std::vector<char> pattern(bytes);
    for (std::size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(i * 31 + i / 256);
    gpu_.write(memory_, pattern.data(), bytes);
    gpu_.reset_counts();
  }

  Status wait_for(const layout::LayoutPointer& layout, Direction direction, void* packed, Reach reach) {
    const Job job{layout.get(), {1, 0}, 0, layout->size, direction, memory_, packed};
    return engine_->run_and_wait({&job, 1}, 0, reach);
  }
  void pack_in_gpu(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(wait_for(rows_, Direction::pack, packed_, Reach::this_gpu), Status::ok);
  }
  void pack_to_host(int times) {
    for (int i = 0; i < times; ++i) {
      std::memset(pinned_, 0, static_cast<std::size_t>(long_rows_->size));
      ASSERT_EQ(wait_for(long_rows_, Direction::pack, pinned_, Reach::beyond), Status::ok);
      for (layout::Offset k = 0; k < long_rows_->size; k += 6101) {
        const layout::Offset place = k / 4096 * 6144 + k % 4096;
        ASSERT_EQ(static_cast<char*>(pinned_)[k], static_cast<char>(place * 31 + place / 256)) << k;
      }
    }
  }
  long count(const char* what) { return gpu_.count(what); }

  static constexpr std::size_t bytes = 12 << 20;
  SimulatedGpu gpu_;
  device::Runtime* runtime_ = device::runtime();
  pack::GpuEngine* engine_ = pack::gpu_engine();
  layout::LayoutPointer rows_ = layout::repeat(layout::block(0, 64), 100, 96);
  layout::LayoutPointer long_rows_ = layout::repeat(layout::block(0, 4096), 256, 6144);  ///< copies pay on the way out
  void* memory_ = nullptr;
  void* packed_ = nullptr;
  void* pinned_ = nullptr;
};

TEST_F(BusyGpu, AnIdleOneIsGivenWhatIsFastest) {
  pack_in_gpu(10);
  EXPECT_EQ(count("launches"), 10);
  EXPECT_EQ(count("launches_of_high_priority") + count("copies"), 0);
  pack_to_host(10);
  EXPECT_EQ(count("launches"), 10);
  EXPECT_EQ(count("copies"), 10);
}

TEST_F(BusyGpu, KernelsGoAheadOfOthersUntilThereAreNone) {
  gpu_.delay("kernel", late);
  pack_in_gpu(20);
  EXPECT_EQ(count("launches"), 20);
  EXPECT_EQ(count("launches_of_high_priority"), 18);
  gpu_.delay("kernel", 0);
  pack_in_gpu(3000);
  gpu_.reset_counts();
  pack_in_gpu(100);
  EXPECT_EQ(count("launches"), 100);
  EXPECT_EQ(count("launches_of_high_priority"), 0);
}

TEST_F(BusyGpu, CopiesBehindOthersGiveWayToKernels) {
  gpu_.delay("dma", late);
  pack_to_host(20);
  EXPECT_EQ(count("copies"), 2);
  EXPECT_EQ(count("launches"), 18);
  gpu_.delay("dma", 0);
  pack_to_host(600);
  gpu_.reset_counts();
  pack_to_host(100);
  EXPECT_EQ(count("copies"), 100);
}

TEST_F(BusyGpu, WhatIsForcedIsDoneAndNothingLearnt) {
  gpu_.delay("kernel", late);
  engine_->force_engine("kernel");
  pack_in_gpu(10);
  EXPECT_EQ(count("launches_of_high_priority"), 0);
  engine_->force_engine("ahead");
  pack_in_gpu(10);
  EXPECT_EQ(count("launches_of_high_priority"), 10);
  engine_->force_engine("dma");
  pack_in_gpu(10);
  EXPECT_EQ(count("copies"), 10);
  engine_->force_engine("");
  gpu_.delay("kernel", 0);
  gpu_.reset_counts();
  pack_in_gpu(10);
  EXPECT_EQ(count("launches"), 10);
  EXPECT_EQ(count("launches_of_high_priority") + count("copies"), 0);
}

TEST_F(BusyGpu, WhatCopiesRefuseKernelsDo) {
  ASSERT_EQ(gpu_.fail("copy", 0, 1), 0);
  pack_to_host(2);
  EXPECT_EQ(count("copies"), 1);
  EXPECT_EQ(count("launches"), 1);
}

TEST_F(BusyGpu, ChunksAreCopiedAndUnpacked) {
  const auto odd = layout::repeat(layout::block(0, 100), 60'000, 130);
  ASSERT_EQ(wait_for(odd, Direction::unpack, pinned_, Reach::from_beyond), Status::ok);
  EXPECT_EQ(count("copies"), 2);
  EXPECT_EQ(count("launches"), 2);
}

TEST_F(BusyGpu, WithoutMemoryForChunksOneKernelDoes) {
  const auto odd = layout::repeat(layout::block(0, 100), 60'000, 130);
  ASSERT_EQ(gpu_.fail("allocate", 0, 1), 0);
  ASSERT_EQ(wait_for(odd, Direction::unpack, pinned_, Reach::from_beyond), Status::ok);
  EXPECT_EQ(count("copies"), 0);
  EXPECT_EQ(count("launches"), 1);
}

TEST_F(BusyGpu, AChunkThatCannotBeCopiedIsAFailure) {
  const auto odd = layout::repeat(layout::block(0, 100), 60'000, 130);
  const std::size_t before = gpu_.bytes_in_use();
  ASSERT_EQ(gpu_.fail("copy", 1, 1), 0);
  EXPECT_EQ(wait_for(odd, Direction::unpack, pinned_, Reach::from_beyond), Status::failed);
  EXPECT_EQ(gpu_.bytes_in_use(), before);
  EXPECT_EQ(wait_for(odd, Direction::unpack, pinned_, Reach::from_beyond), Status::ok);
}

}  // namespace
}  // namespace gapless::tests

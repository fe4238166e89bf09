// Registered GPU memory for packed bytes: used again, bounded, let go of with its GPU, and refusals remembered.
#include <gtest/gtest.h>

#include <vector>

#include "fabric/remote/loopback.hpp"
#include "simulated_gpu.hpp"
#include "transfer/rdma/memory/packed_buffers.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;
using transfer::PoolBuffer;
using transfer::rdma::PackedBuffers;
using transfer::rdma::PackedBytes;

constexpr std::size_t page = std::size_t{2} << 20;

class PackedBuffersTest : public testing::Test {
 protected:
  PackedBuffersTest() { endpoint_.faults.gpu_registrations_left = 1000; }
  ~PackedBuffersTest() override {
    transfer::set_pool_limit(limit_);
    buffers_.clear();
    transfer::drain_pools();
  }
  /// Of one message.
  const void* pass(std::size_t bytes, bool is_reached = false) {
    PackedBytes packed = buffers_.take(0, bytes);
    const void* const where = packed.buffer.data();
    EXPECT_TRUE(!packed || (packed.is_on_gpu() && packed.region.covers(where, bytes)));
    EXPECT_TRUE(!packed || packed.buffer.kind() == MemoryKind::device);
    buffers_.give(std::move(packed), is_reached);
    return where;
  }

  std::size_t limit_ = transfer::pool_limit();
  fabric::LoopbackNetwork network_;
  fabric::LoopbackEndpoint endpoint_{network_, {}};
  SimulatedGpu gpu_;
  PackedBuffers buffers_{endpoint_};
};

TEST_F(PackedBuffersTest, AreRegisteredOnce) {
  const void* const first = pass(20000);
  EXPECT_NE(first, nullptr);
  for (const std::size_t bytes : {std::size_t{16384}, page, std::size_t{20000}}) EXPECT_EQ(pass(bytes), first);
  EXPECT_NE(pass(page + 1), first);
  EXPECT_EQ(buffers_.registrations(), 2u);
  EXPECT_EQ(endpoint_.regions(), 2u);
}

TEST_F(PackedBuffersTest, InUseAreNotGivenAway) {
  PackedBytes one = buffers_.take(0, 20000), other = buffers_.take(0, 20000), elsewhere = buffers_.take(1, 20000);
  EXPECT_NE(one.buffer.data(), other.buffer.data());
  EXPECT_EQ(elsewhere.buffer.location().device, 1);
  EXPECT_EQ(buffers_.held(), 3u);
  for (PackedBytes* each : {&one, &other, &elsewhere}) buffers_.give(std::move(*each), false);
  EXPECT_EQ(buffers_.held(), 0u);
}

TEST_F(PackedBuffersTest, AreNotTakenByWhatNeedsMuchLess) {
  const void* const longer = pass(16 * page);
  EXPECT_NE(pass(20000), longer);
  EXPECT_EQ(pass(9 * page), longer);
}

TEST_F(PackedBuffersTest, ARefusalIsRemembered) {
  endpoint_.faults.gpu_registrations_left = 0;
  EXPECT_EQ(pass(20000), nullptr);
  EXPECT_EQ(pass(20000), nullptr);
  EXPECT_EQ(endpoint_.gpu_attempts(), 1u);
}

TEST_F(PackedBuffersTest, ALaterRefusalIsOfThatMessageAlone) {
  endpoint_.faults.gpu_registrations_left = 1;
  const void* const first = pass(20000);
  EXPECT_EQ(pass(page + 1), nullptr);
  EXPECT_EQ(pass(20000), first);
  endpoint_.faults.gpu_registrations_left = 1;
  EXPECT_NE(pass(page + 1), nullptr);
}

TEST_F(PackedBuffersTest, WithoutGpuMemoryThereIsNone) {
  gpu_.fail("allocate", 0, 1);
  EXPECT_EQ(pass(20000), nullptr);
  EXPECT_NE(pass(20000), nullptr);
}

TEST_F(PackedBuffersTest, WhatThereIsOfThemIsBounded) {
  transfer::set_pool_limit(page);  // of which there may be four times as much of long buffers
  std::vector<PackedBytes> held;
  for (int i = 0; i < 4; ++i) held.push_back(buffers_.take(0, page));
  for (const PackedBytes& each : held) EXPECT_TRUE(each.is_on_gpu());
  EXPECT_EQ(pass(page), nullptr);
  for (PackedBytes& each : held) buffers_.give(std::move(each), false);
  // Those that wait give way.
  EXPECT_NE(pass(3 * page), nullptr);
  EXPECT_LE(endpoint_.regions(), 2u);
  EXPECT_EQ(pass(5 * page), nullptr);
}

TEST_F(PackedBuffersTest, WhatAPeerMayStillWriteToIsNotReachedAnyMore) {
  EXPECT_NE(pass(20000, true), nullptr);
  EXPECT_EQ(endpoint_.regions(), 0u);
  EXPECT_NE(pass(20000), nullptr);
  EXPECT_EQ(buffers_.registrations(), 2u);
}

TEST_F(PackedBuffersTest, GoWithTheirGpu) {
  EXPECT_NE(pass(20000), nullptr);
  gpu_.reset(0);
  EXPECT_NE(pass(20000), nullptr);
  EXPECT_EQ(buffers_.registrations(), 2u);
  EXPECT_EQ(endpoint_.regions(), 1u);
}

TEST_F(PackedBuffersTest, PageLockedMemoryGoesToThePoolOfWhoTakesNext) {
  PackedBytes packed{.buffer = PoolBuffer(MemoryKind::pinned, 0, 20000)};
  EXPECT_FALSE(packed.is_on_gpu());
  buffers_.give(std::move(packed), false);
  EXPECT_EQ(transfer::pooled_bytes(), 0u);
  static_cast<void>(pass(20000));
  EXPECT_GE(transfer::pooled_bytes(), 20000u);
}

TEST_F(PackedBuffersTest, ClearedAreGone) {
  static_cast<void>(pass(20000));
  buffers_.clear();
  EXPECT_EQ(endpoint_.regions(), 0u);
  transfer::drain_pools();
  EXPECT_EQ(gpu_.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace gapless::tests

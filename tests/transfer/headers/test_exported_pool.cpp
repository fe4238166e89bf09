// The GPU memory that peers unpack from: who has which segments, and what happens where memory is refused or goes.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "device/device.hpp"
#include "device/opened_memory.hpp"
#include "device/shared_pages.hpp"
#include "simulated_gpu.hpp"
#include "transfer/headers/exported/exported_pool.hpp"

namespace gapless::transfer::headers {
namespace {

constexpr std::size_t segment = 4096, all = segment * exported_segments;

class ExportedPoolTest : public testing::Test {
 protected:
  /// A peer lets go of what it has fetched.
  void fetched(SegmentRun run) { words_[run.first].store(0); }

  tests::SimulatedGpu gpu_;
  SegmentWords words_{};
};

/// In GPU memory, and in page-locked memory of the host.
class EachPool : public ExportedPoolTest, public testing::WithParamInterface<device::MemoryKind> {
 protected:
  ExportedPool pool_{words_, all, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(OfAKind, EachPool, testing::Values(device::MemoryKind::device, device::MemoryKind::pinned),
                         [](const auto& info) {
                           return info.param == device::MemoryKind::device ? "OnTheGpu" : "OnTheHost";
                         });

TEST_F(ExportedPoolTest, IsMadeWhenItIsAskedForAndFreedInTheEnd) {
  const std::size_t before = gpu_.bytes_in_use();
  {
    ExportedPool pool(words_, all, device::MemoryKind::device);
    EXPECT_EQ(before, gpu_.bytes_in_use());
    ASSERT_TRUE(pool.is_there(0));
    ASSERT_TRUE(pool.is_there(0));
    EXPECT_EQ(before + all, gpu_.bytes_in_use());
    EXPECT_NE(0u, pool.handle().number);
    EXPECT_FALSE(pool.is_there(1)) << "it is the other GPU's";
  }
  EXPECT_EQ(before, gpu_.bytes_in_use());
}

TEST_P(EachPool, RunsAreDisjointAndLieInTheMemory) {
  ASSERT_TRUE(pool_.is_there(0));
  std::mt19937 random(20);
  std::vector<SegmentRun> runs;
  for (int times = 0; times < 20'000; ++times) {
    if (!runs.empty() && random() % 2 == 0) {
      const std::size_t which = random() % runs.size();
      fetched(runs[which]);
      runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? all / 4 : 4 * segment);
    const SegmentRun run = pool_.take(bytes);
    if (run.count == 0) continue;
    ASSERT_EQ((bytes + segment - 1) / segment, run.count);
    ASSERT_LE(run.first + run.count, exported_segments);
    runs.push_back(run);
    std::set<std::uint32_t> taken;
    for (const SegmentRun& each : runs) {
      for (std::uint32_t i = 0; i < each.count; ++i) ASSERT_TRUE(taken.insert(each.first + i).second);
    }
  }
}

TEST_P(EachPool, IsWhollyUsedAndWhollyFreedAgain) {
  ASSERT_TRUE(pool_.is_there(0));
  for (int times = 0; times < 3; ++times) {
    std::vector<SegmentRun> runs;
    for (unsigned i = 0; i < exported_segments; ++i) runs.push_back(pool_.take(segment));
    for (const SegmentRun& run : runs) ASSERT_EQ(1u, run.count);
    EXPECT_EQ(0u, pool_.take(1).count);
    for (const SegmentRun& run : runs) fetched(run);
    const SegmentRun whole = pool_.take(all);
    ASSERT_EQ(exported_segments, whole.count);
    pool_.give_back(whole);
    EXPECT_EQ(0u, pool_.take(all + 1).count);
    EXPECT_EQ(0u, pool_.take(0).count);
  }
}

TEST_P(EachPool, LeavesRoomWhereAsked) {
  ASSERT_TRUE(pool_.is_there(0));
  constexpr std::uint32_t spare = exported_segments / 4;
  const SegmentRun most = pool_.take(segment * (exported_segments - spare), spare);
  ASSERT_EQ(exported_segments - spare, most.count);
  EXPECT_EQ(0u, pool_.take(segment, spare).count);
  const SegmentRun rest = pool_.take(segment * spare);
  EXPECT_EQ(spare, rest.count);
  pool_.give_back(most);
  pool_.give_back(rest);
  const SegmentRun whole = pool_.take(all, spare);
  EXPECT_EQ(exported_segments, whole.count) << "of what is as long as the pool nothing is asked";
  pool_.give_back(whole);
}

TEST_P(EachPool, ComesAgainAfterItsContextOnceAllIsFetched) {
  ASSERT_TRUE(pool_.is_there(0));
  const std::uint64_t number = pool_.handle().number;
  const SegmentRun run = pool_.take(segment);
  gpu_.reset(0);
  EXPECT_FALSE(pool_.is_there(0)) << "a peer has yet to let go of a segment of the old memory";
  fetched(run);
  ASSERT_TRUE(pool_.is_there(0));
  EXPECT_NE(number, pool_.handle().number);
}

TEST_F(ExportedPoolTest, IsNotThereWhereMemoryOrItsExportIsRefused) {
  const std::size_t before = gpu_.bytes_in_use();
  ExportedPool pool(words_, all, device::MemoryKind::device);
  gpu_.fail("export", 0, 1);
  EXPECT_FALSE(pool.is_there(0));
  EXPECT_EQ(before, gpu_.bytes_in_use());
  gpu_.fail("allocate", 0, 1);
  EXPECT_FALSE(pool.is_there(0));
  EXPECT_TRUE(pool.is_there(0)) << "memory may be had later";
  ExportedPool never(words_, all, device::MemoryKind::device);
  gpu_.fail("export", 0, -1);
  for (int times = 0; times < 10; ++times) EXPECT_FALSE(never.is_there(0));
  gpu_.reset_counts();
  for (int times = 0; times < 10; ++times) EXPECT_FALSE(never.is_there(0));
  EXPECT_EQ(0, gpu_.count("allocations")) << "the driver is not asked for ever";
  gpu_.fail("export", 0, 0);
  ExportedPool none(words_, exported_segments, device::MemoryKind::device);
  EXPECT_FALSE(none.is_there(0)) << "too little memory for segments";
}

using OnTheHost = ExportedPoolTest;

TEST_F(OnTheHost, EveryGpuMayPackIntoAPool) {
  ExportedPool pool(words_, all, device::MemoryKind::pinned);
  ASSERT_TRUE(pool.is_there(0));
  ASSERT_TRUE(pool.is_there(1));
  EXPECT_TRUE(pool.handle().is_on_host());
  EXPECT_TRUE(device::OpenedMemory::keeps(pool.handle()));
  const SegmentRun run = pool.take(2 * segment);
  ASSERT_EQ(2u, run.count);
  const auto address = reinterpret_cast<std::uintptr_t>(pool.data(run));
  EXPECT_TRUE(pool.handle().contains(address) && pool.handle().contains(address + 2 * segment - 1));
  std::fill_n(pool.data(run), 2 * segment, std::byte{7});
}

TEST_F(OnTheHost, OtherProcessesMapThePool) {
  ExportedPool pool(words_, all, device::MemoryKind::pinned);
  ASSERT_TRUE(pool.is_there(0));
  const SegmentRun run = pool.take(segment);
  *pool.data(run) = std::byte{42};
  // Another process's, as far as this one is told.
  const auto mapped = device::SharedPages::open(device::runtime(), 0, pool.handle());
  ASSERT_TRUE(mapped);
  EXPECT_NE(pool.data({0, 1}), mapped.data());
  EXPECT_EQ(std::byte{42}, mapped.data()[run.first * segment]);
  const auto for_cpu = device::SharedPages::open(nullptr, -1, pool.handle());
  ASSERT_TRUE(for_cpu) << "no page is locked for the CPU";
  EXPECT_EQ(std::byte{42}, for_cpu.data()[run.first * segment]);
  device::MemoryHandle other = pool.handle();
  other.number += 1;
  EXPECT_FALSE(device::SharedPages::open(device::runtime(), 0, other)) << "the owner has no such memory";
}

TEST_F(OnTheHost, APoolForTheCpuIsLockedOnceAGpuUsesIt) {
  ExportedPool pool(words_, all, device::MemoryKind::pinned);
  gpu_.fail("lock", 0, 1);
  ASSERT_TRUE(pool.is_there(-1)) << "no page is locked for the CPU";
  const std::uint64_t number = pool.handle().number;
  EXPECT_FALSE(pool.is_there(0));
  EXPECT_TRUE(pool.is_there(-1)) << "it stays the CPU's";
  ASSERT_TRUE(pool.is_there(0));
  EXPECT_EQ(number, pool.handle().number) << "peers know it already";
  const SegmentRun run = pool.take(segment);
  gpu_.reset(0);
  EXPECT_TRUE(pool.is_there(-1));
  EXPECT_FALSE(pool.is_there(0)) << "a peer has yet to let go of a segment";
  fetched(run);
  EXPECT_TRUE(pool.is_there(0));
}

TEST_F(OnTheHost, APoolIsNotThereWherePagesAreNotLocked) {
  ExportedPool pool(words_, all, device::MemoryKind::pinned);
  gpu_.fail("lock", 0, 1);
  EXPECT_FALSE(pool.is_there(0));
  EXPECT_TRUE(pool.is_there(0)) << "they may be locked later";
  ExportedPool never(words_, all, device::MemoryKind::pinned);
  gpu_.fail("lock", 0, 4);
  for (int times = 0; times < 4; ++times) EXPECT_FALSE(never.is_there(0));
  EXPECT_FALSE(never.is_there(0)) << "the driver is not asked for ever";
}

}  // namespace
}  // namespace gapless::transfer::headers

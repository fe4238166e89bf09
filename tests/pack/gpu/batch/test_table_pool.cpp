// Who gets which block for a batch's table, after failures and among threads too.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "pack/gpu/batch/table_pool.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;
using device::Status;

/// Ordinary memory; fails when told to.
class HostTables final : public TableMemory {
 public:
  bool allocate(int, TableBlock& block) noexcept override {
    if (full) return false;
    auto& memory = memory_[static_cast<std::size_t>(allocations++)];
    memory = std::make_unique<std::byte[]>(2 * largest_table);
    block = {memory.get(), memory.get() + largest_table, nullptr};
    return true;
  }
  Status upload(const TableBlock& block, std::size_t bytes, void*) noexcept override {
    if (upload_fails) return Status::failed;
    ++uploads;
    std::memcpy(block.table, block.staging, bytes);
    return Status::ok;
  }
  Status mark(const TableBlock&, void*) noexcept override {
    ++marks;
    return mark_fails ? Status::failed : Status::ok;
  }
  Status follow(const TableBlock&, void*) noexcept override {
    ++followed;
    return follow_fails ? Status::failed : Status::ok;
  }
  bool has_passed(const TableBlock&) noexcept override { return !busy; }

  bool full = false, busy = false, upload_fails = false, mark_fails = false, follow_fails = false;
  std::atomic<int> allocations{0}, uploads{0}, marks{0}, followed{0};

 private:
  std::array<std::unique_ptr<std::byte[]>, 64> memory_;
};

void fill(Batch& batch, std::uint32_t words) {
  batch.clear();
  for (std::uint32_t job = 0; job < 300; ++job) {
    SmallNest nest{};
    nest.word_count = words + job;
    nest.level_count = 1;
    ASSERT_TRUE(batch.add(nest, nullptr));
  }
}

class BatchTables : public ::testing::Test {
 protected:
  std::optional<Status> run(const Batch& batch, Status launched = Status::ok) {
    return pool_.run(batch, 0, nullptr, [&](const void* table) {
      std::vector<Word16> expected(largest_table / sizeof(Word16));
      std::memcpy(expected.data(), table, largest_table);  // what lies between the parts does not matter
      batch.write_table(reinterpret_cast<std::byte*>(expected.data()));
      EXPECT_EQ(std::memcmp(table, expected.data(), batch.table_parts().end), 0);
      return launched;
    });
  }

  HostTables memory_;
  TablePool pool_{memory_};
};

TEST_F(BatchTables, OneBlockMoreWhileAllAreInUse) {
  std::vector<Batch> batches(TablePool::blocks_per_device + 1);
  for (Batch& batch : batches) fill(batch, 1);
  memory_.busy = true;
  for (int i = 0; i < TablePool::blocks_per_device; ++i) EXPECT_EQ(run(batches[i]), Status::ok);
  EXPECT_EQ(memory_.allocations, TablePool::blocks_per_device);
  EXPECT_EQ(run(batches.back()), std::nullopt);
  EXPECT_EQ(run(batches[2]), Status::ok) << "its table is there, and in use by itself";
  EXPECT_EQ(memory_.uploads, TablePool::blocks_per_device);
  EXPECT_EQ(memory_.followed, 1);
  memory_.busy = false;
  EXPECT_EQ(run(batches.back()), Status::ok);
  EXPECT_EQ(memory_.allocations, TablePool::blocks_per_device);
}

TEST_F(BatchTables, NoMemoryNoTable) {
  Batch batch;
  fill(batch, 1);
  memory_.full = true;
  EXPECT_EQ(run(batch), std::nullopt);
  EXPECT_EQ(memory_.marks, 0);
  memory_.full = false;
  EXPECT_EQ(run(batch), Status::ok);
}

TEST_F(BatchTables, WhatFailedToArriveIsNotFoundAgain) {
  Batch batch;
  fill(batch, 1);
  memory_.upload_fails = true;
  EXPECT_EQ(run(batch), Status::failed);
  memory_.upload_fails = false;
  EXPECT_EQ(run(batch), Status::ok);
  EXPECT_EQ(memory_.uploads, 1);
  memory_.follow_fails = true;
  EXPECT_EQ(run(batch), Status::failed);
  EXPECT_EQ(memory_.marks, 1) << "nothing was issued since";
}

TEST_F(BatchTables, AFailedLaunchIsMarkedBecauseTheCopyIsUnderWay) {
  Batch batch;
  fill(batch, 1);
  EXPECT_EQ(run(batch, Status::failed), Status::failed);
  EXPECT_EQ(memory_.marks, 1);
}

TEST_F(BatchTables, ABlockWithoutAMarkIsNobodysAnyMore) {
  memory_.mark_fails = true;
  for (int i = 0; i < TablePool::blocks_per_device; ++i) {
    Batch batch;
    fill(batch, 1);
    EXPECT_EQ(run(batch), Status::failed);
  }
  Batch batch;
  fill(batch, 1);
  EXPECT_EQ(run(batch), std::nullopt);
}

TEST_F(BatchTables, ThreadsNeverShareABlock) {
  const std::uint64_t seed = random_seed();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([this, seed, t] {
      std::mt19937_64 random(seed + t);
      std::vector<Batch> batches(3);
      for (Batch& batch : batches) fill(batch, static_cast<std::uint32_t>(random() % 1000));
      for (int i = 0; i < 200; ++i) {
        Batch& batch = batches[random() % batches.size()];
        if (random() % 4 == 0) fill(batch, static_cast<std::uint32_t>(random() % 1000));
        const std::optional<Status> status = run(batch);
        ASSERT_TRUE(!status || *status == Status::ok);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(memory_.allocations, TablePool::blocks_per_device);
}

}  // namespace
}  // namespace gapless::tests

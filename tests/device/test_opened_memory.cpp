// The caches of exported and opened GPU memory, over a driver that keeps books: memory that is mapped somewhere is not
// free, and what is freed and allocated again has the same address.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "device/exported_memory.hpp"
#include "device/opened_memory.hpp"
#include "refusing_runtime.hpp"

namespace gapless::tests {
namespace {

using device::ExportedMemory;
using device::MemoryHandle;
using device::OpenedMemory;
using device::Status;

/// One GPU of 1000 bytes or more, its owner, and what peers have mapped of it.
class Books final : public RefusingRuntime {
 public:
  using RefusingRuntime::allocate;
  std::uint64_t all = 1000;

  /// 0 where there is no room: mapped allocations take theirs although they are freed.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t address) {
    forget_what_is_gone();
    if (bytes > free_bytes()) return 0;
    MemoryHandle handle;
    handle.number = ++last_;
    handle.base = address;
    handle.bytes = bytes;
    handle.process = process;
    allocations_[last_] = {handle, true};
    return last_;
  }
  void free(std::uint64_t number) { allocations_.at(number).is_live = false; }
  /// As cudaDeviceReset of the process that maps.
  void reset() {
    ++context_;
    mapped_.clear();
    bases_.clear();
  }

  std::uint64_t allocation_number(const void* pointer) noexcept override {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    for (const auto& [number, allocation] : allocations_) {
      if (allocation.is_live && allocation.handle.contains(address)) return number;
    }
    return 0;
  }
  Status export_memory(const void* pointer, MemoryHandle& handle) noexcept override {
    ++exports;
    if (refuses_export) return Status::unsupported;
    handle = allocations_.at(allocation_number(pointer)).handle;
    handle.free_bytes = free_bytes();
    return Status::ok;
  }
  Status open_memory(const MemoryHandle& handle, int, void** base) noexcept override {
    ++opens;
    if (refuses_open || !allocations_.contains(handle.number)) return Status::failed;
    EXPECT_FALSE(mapped_.contains(handle.number)) << "mapped twice";
    mapped_.insert(handle.number);
    *base = reinterpret_cast<void*>(handle.number << 32);
    bases_[*base] = handle.number;
    return Status::ok;
  }
  void close_memory(int, void* base) noexcept override {
    EXPECT_EQ(bases_.count(base), 1u) << "closed, but not open";
    mapped_.erase(bases_[base]);
    bases_.erase(base);
  }
  std::uint64_t context(int) noexcept override { return context_; }
  bool has_context(std::uint64_t number) noexcept override { return number == context_; }

  static constexpr std::int64_t process = 4711;
  int exports = 0, opens = 0;
  bool refuses_export = false, refuses_open = false;

 private:
  struct Allocation {
    MemoryHandle handle;
    bool is_live;
  };
  std::uint64_t free_bytes() const {
    std::uint64_t taken = 0;
    for (const auto& [number, allocation] : allocations_) taken += allocation.handle.bytes;
    return all - taken;
  }
  void forget_what_is_gone() {
    std::erase_if(allocations_,
                  [this](const auto& entry) { return !entry.second.is_live && !mapped_.contains(entry.first); });
  }

  std::map<std::uint64_t, Allocation> allocations_;
  std::set<std::uint64_t> mapped_;
  std::map<void*, std::uint64_t> bases_;
  std::uint64_t last_ = 0, context_ = 1;
};

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

class Memories : public ::testing::Test {
 protected:
  /// As a message does: the owner says what is freed and offers the memory, and the peer maps and uses it.
  Status send(std::uint64_t address, std::uint64_t expected_number) {
    std::uint64_t freed[4];
    const std::size_t count = exported_.take_freed(freed);
    MemoryHandle handle;
    if (const Status status = exported_.handle_of(at(address), handle); status != Status::ok) return status;
    EXPECT_EQ(handle.number, expected_number);
    opened_.owner_has_freed(Books::process, {freed, count});
    Status status = Status::ok;
    const OpenedMemory::Use use = opened_.use(handle, 0, status);
    if (status != Status::ok) return status;
    EXPECT_EQ(use.at(address), reinterpret_cast<void*>((expected_number << 32) + (address - handle.base)));
    return Status::ok;
  }

  Books books_;
  ExportedMemory exported_{books_};
  OpenedMemory opened_{books_};
};

TEST_F(Memories, AreExportedAndOpenedOnce) {
  const std::uint64_t number = books_.allocate(100, 0x1000);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(send(0x1000 + static_cast<std::uint64_t>(i), number), Status::ok);
  EXPECT_EQ(books_.exports, 1);
  EXPECT_EQ(books_.opens, 1);
}

TEST_F(Memories, FreedAndAllocatedAgainAtTheSameAddressAreOthers) {
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t number = books_.allocate(100, 0x1000);
    ASSERT_NE(number, 0u) << i;
    ASSERT_EQ(send(0x1000 + 7, number), Status::ok);
    books_.free(number);
  }
  EXPECT_EQ(books_.opens, 100'000);
  EXPECT_LE(opened_.counts().open, 1u);
}

TEST_F(Memories, AnOwnerCanAllocateThreeFifthsAgainAndAgain) {
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t number = books_.allocate(600, 0x1000 * static_cast<std::uint64_t>(1 + i % 3));
    ASSERT_NE(number, 0u) << "no memory left in round " << i;
    ASSERT_EQ(send(0x1000 * static_cast<std::uint64_t>(1 + i % 3), number), Status::ok);
    books_.free(number);
  }
}

TEST_F(Memories, AnOwnerWithLittleMemoryLeftCanAllocateItAgain) {
  ASSERT_NE(books_.allocate(550, 0x100000), 0u);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t number = books_.allocate(400, 0x1000 * static_cast<std::uint64_t>(1 + i % 3));
    ASSERT_NE(number, 0u) << "no memory left in round " << i;
    ASSERT_EQ(send(0x1000 * static_cast<std::uint64_t>(1 + i % 3), number), Status::ok);
    books_.free(number);
  }
}

TEST_F(Memories, AnOwnerCanAllocateThreeFifthsAfterManySmallOnes) {
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 10; ++i) {
      numbers.push_back(books_.allocate(60, 0x10000 + 0x1000 * i));
      ASSERT_NE(numbers.back(), 0u) << "round " << round;
      ASSERT_EQ(send(0x10000 + 0x1000 * i, numbers.back()), Status::ok);
    }
    for (const std::uint64_t number : numbers) books_.free(number);
    const std::uint64_t large = books_.allocate(600, 0x90000);
    ASSERT_NE(large, 0u) << "round " << round;
    books_.free(large);
  }
}

TEST_F(Memories, InUseStayMappedUntilTheyAreNotUsed) {
  const std::uint64_t number = books_.allocate(600, 0x1000);
  MemoryHandle handle;
  ASSERT_EQ(exported_.handle_of(at(0x1000), handle), Status::ok);
  Status status = Status::failed;
  OpenedMemory::Use first = opened_.use(handle, 0, status);
  OpenedMemory::Use second = opened_.use(handle, 0, status);
  books_.free(number);
  opened_.owner_has_freed(Books::process, std::vector<std::uint64_t>{number});
  first.end();
  EXPECT_EQ(opened_.counts().open, 1u);
  second.end();
  EXPECT_EQ(opened_.counts().open, 0u);
}

TEST_F(Memories, ManyInTurnAreOpenedOnceEach) {
  books_.all = 100'000;
  constexpr std::uint64_t count = 64;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(books_.allocate(100, 0x1000 * (i + 1)));
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(send(0x1000 * (i + 1), numbers[i]), Status::ok);
  }
  EXPECT_EQ(books_.opens, static_cast<int>(count));
  EXPECT_EQ(opened_.counts().closed, 0u);
}

TEST_F(Memories, AreBoundedInNumber) {
  books_.all = 100'000;
  constexpr std::uint64_t bound = 512, more = 100;
  for (std::uint64_t i = 1; i <= bound + more; ++i) {
    const std::uint64_t number = books_.allocate(1, 0x1000 * i);
    ASSERT_EQ(send(0x1000 * i, number), Status::ok);
  }
  EXPECT_EQ(opened_.counts().open, bound);
  EXPECT_EQ(opened_.counts().closed, more);
}

TEST_F(Memories, AreWithinTheLimitOnceTheyAreNotUsed) {
  Status status = Status::failed;
  const auto use = [&](std::uint64_t address) {
    books_.allocate(200, address);
    MemoryHandle handle;
    EXPECT_EQ(exported_.handle_of(at(address), handle), Status::ok);
    return opened_.use(handle, 0, status);
  };
  OpenedMemory::Use first = use(0x1000), second = use(0x2000), third = use(0x3000);
  first.end();
  EXPECT_EQ(opened_.counts().open, 2u) << "600 bytes, of which 200 may stay";
  third.end();
  EXPECT_EQ(opened_.counts().open, 1u);
  second.end();
  EXPECT_EQ(opened_.counts().open, 1u);
}

TEST_F(Memories, RefusalsAreNoticedAndCostLittle) {
  const std::uint64_t number = books_.allocate(100, 0x1000);
  books_.refuses_open = true;
  EXPECT_EQ(send(0x1000, number), Status::failed);
  EXPECT_EQ(opened_.counts().refused, 1u);
  books_.refuses_open = false;
  EXPECT_EQ(send(0x1000, number), Status::ok);
  books_.refuses_export = true;
  static_cast<void>(books_.allocate(100, 0x2000));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send(0x2000, 2), Status::unsupported);
  EXPECT_EQ(books_.exports, 2) << "asked again";
  EXPECT_EQ(send(0x3000, 0), Status::unsupported) << "no memory at all";
}

TEST_F(Memories, EndWithTheirContextAndTheirOwner) {
  const std::uint64_t number = books_.allocate(100, 0x1000);
  ASSERT_EQ(send(0x1000, number), Status::ok);
  books_.reset();
  ASSERT_EQ(send(0x1000, number), Status::ok);
  EXPECT_EQ(books_.opens, 2);
  EXPECT_EQ(opened_.counts().open, 1u);
  opened_.owner_has_ended(Books::process);
  EXPECT_EQ(opened_.counts().open, 0u);
}

}  // namespace
}  // namespace gapless::tests

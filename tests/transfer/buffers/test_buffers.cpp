// Pools: a buffer that was given back is used again, what is kept is bounded, and no memory is an answer, not a crash.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "simulated_gpu.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/buffers/long_buffers.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;
using transfer::PoolBuffer;
namespace buffer_memory = transfer::buffer_memory;

class Buffers : public ::testing::Test {
 protected:
  void SetUp() override { transfer::drain_pools(); }
  void TearDown() override {
    transfer::set_pool_limit(limit_);
    transfer::drain_pools();
  }
  std::size_t limit_ = transfer::pool_limit();
  SimulatedGpu gpu_;
};

TEST_F(Buffers, AreUsedAgain) {
  const void* first = PoolBuffer(MemoryKind::host, -1, 5000).data();
  EXPECT_GE(transfer::pooled_bytes(), 5000u);
  const PoolBuffer again(MemoryKind::host, -1, 8000);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(transfer::pooled_bytes(), 0u);
}

TEST_F(Buffers, InUseAreNotGivenAway) {
  const PoolBuffer one(MemoryKind::host, -1, 100), other(MemoryKind::host, -1, 100);
  EXPECT_NE(one.data(), other.data());
}

TEST_F(Buffers, HoldWhatWasAskedFor) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{3} << 20}) {
    const PoolBuffer wire(MemoryKind::host, -1, bytes);
    ASSERT_TRUE(wire);
    std::memset(wire.data(), 1, bytes);
  }
}

// Memory of malloc is 16 bytes into a page where it is long.
TEST_F(Buffers, AreNotPlacedInAPageSoThatCopiesIntoMemoryOfMallocAreSlow) {
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned}) {
    for (const std::size_t bytes : {std::size_t{1} << 20, (std::size_t{16} << 20) + 1}) {
      const PoolBuffer buffer(kind, kind == MemoryKind::host ? -1 : 0, bytes);
      ASSERT_TRUE(buffer);
      std::memset(buffer.data(), 1, bytes + 1);
      const auto distance = (16 - reinterpret_cast<std::uintptr_t>(buffer.data())) % 4096;
      EXPECT_FALSE(distance >= 1 && distance < 32) << distance;
    }
  }
}

TEST_F(Buffers, KeptBytesAreBounded) {
  transfer::set_pool_limit(1 << 20);
  {
    std::vector<PoolBuffer> wires(64);
    for (PoolBuffer& wire : wires) wire = PoolBuffer(MemoryKind::host, -1, 100000);
  }
  EXPECT_LE(transfer::pooled_bytes(), std::size_t{1} << 20);
  EXPECT_GT(transfer::pooled_bytes(), 0u);
  const std::size_t kept = transfer::pooled_bytes();
  { const PoolBuffer large(MemoryKind::host, -1, 4 << 20); }
  EXPECT_LE(transfer::pooled_bytes(), std::size_t{1} << 20);
  EXPECT_EQ(transfer::pooled_bytes(), kept) << "others make no room for one that cannot be kept";
}

TEST_F(Buffers, AWindowOfMessagesIsKept) {
  {
    std::vector<PoolBuffer> window(32);
    for (PoolBuffer& wire : window) wire = PoolBuffer(MemoryKind::host, -1, 1 << 20);
  }
  EXPECT_EQ(transfer::pooled_bytes(), std::size_t{32} << 20);
}

/// Takes `count` buffers of `bytes` at a time, and gives them back.
void use_window(MemoryKind kind, std::size_t count, std::size_t bytes) {
  std::vector<PoolBuffer> window;
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(window.emplace_back(kind, 0, bytes)) << i << " of " << bytes;
}

// Windows of every length up to one whose messages fill the pool by themselves, as benchmarks send them: those that are
// used again cost no allocation, whatever was used before.
TEST_F(Buffers, WindowsOfGrowingLengthAreKept) {
  constexpr std::size_t messages = 64;
  for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::device}) {
    for (std::size_t bytes = 4096; bytes <= std::size_t{4} << 20; bytes *= 2) {
      use_window(kind, messages, bytes);
      const long before = gpu_.count("allocations");
      for (int times = 0; times < 3; ++times) use_window(kind, messages, bytes);
      EXPECT_EQ(gpu_.count("allocations"), before) << bytes;
    }
    EXPECT_LE(transfer::pooled_bytes(), std::size_t{256} << 20);
    transfer::drain_pools();
  }
}

TEST_F(Buffers, ManyShortOnesAreKept) {
  use_window(MemoryKind::pinned, 500, 4096);
  const long before = gpu_.count("allocations");
  use_window(MemoryKind::pinned, 500, 4096);
  EXPECT_EQ(gpu_.count("allocations"), before);
}

TEST_F(Buffers, OfTheLengthThatWasUsedLongestAgoMakeRoom) {
  transfer::set_pool_limit(4 << 20);
  use_window(MemoryKind::host, 2, 1 << 20);
  use_window(MemoryKind::host, 4, 1 << 19);
  use_window(MemoryKind::host, 2, 1 << 20);
  const void* const newer = PoolBuffer(MemoryKind::host, 0, 1 << 20).data();
  use_window(MemoryKind::host, 1, 2 << 20);
  EXPECT_EQ(PoolBuffer(MemoryKind::host, 0, 1 << 20).data(), newer);
  EXPECT_EQ(transfer::pooled_bytes(), std::size_t{4} << 20);
  use_window(MemoryKind::pinned, 2, 1 << 20);
  EXPECT_EQ(transfer::pooled_bytes(), std::size_t{6} << 20) << "kinds of memory have bounds of their own";
}

TEST_F(Buffers, KeptOnesGiveTheirPageLockedMemoryToOthers) {
  transfer::set_pool_limit(16 << 20);
  use_window(MemoryKind::pinned, 64, 1 << 20);
  use_window(MemoryKind::pinned, 1, 40 << 20);
  use_window(MemoryKind::pinned, 5, 15 << 20);
  EXPECT_LE(buffer_memory::page_locked_bytes(), transfer::page_locked_limit());
}

TEST_F(Buffers, LimitZeroKeepsNothing) {
  transfer::set_pool_limit(0);
  { const PoolBuffer wire(MemoryKind::pinned, 0, 100); }
  EXPECT_EQ(transfer::pooled_bytes(), 0u);
  EXPECT_EQ(gpu_.bytes_in_use(), 0u);
}

TEST_F(Buffers, KindsAndGpusAreApart) {
  const void* pinned = PoolBuffer(MemoryKind::pinned, 0, 100).data();
  const void* on_gpu_0 = PoolBuffer(MemoryKind::device, 0, 100).data();
  const PoolBuffer on_gpu_1(MemoryKind::device, 1, 100), host(MemoryKind::host, -1, 100);
  EXPECT_NE(on_gpu_1.data(), on_gpu_0);
  EXPECT_EQ(device::locate(on_gpu_1.data()).device, 1);
  EXPECT_NE(host.data(), pinned);
}

TEST_F(Buffers, MovingLeavesOneOwner) {
  PoolBuffer first(MemoryKind::host, -1, 100);
  const void* memory = first.data();
  PoolBuffer second(std::move(first));
  EXPECT_FALSE(first);
  first = std::move(second);
  EXPECT_EQ(first.data(), memory);
}

TEST_F(Buffers, NoMemoryIsAnEmptyWire) {
  EXPECT_FALSE(PoolBuffer(MemoryKind::host, -1, std::size_t{1} << 47));
  EXPECT_FALSE(PoolBuffer(MemoryKind::host, -1, ~std::size_t{0}));
  gpu_.fail("allocate", 0, 1);
  EXPECT_FALSE(PoolBuffer(MemoryKind::pinned, 0, 100));
  EXPECT_TRUE(PoolBuffer(MemoryKind::pinned, 0, 100));
}

TEST_F(Buffers, EndWithTheirThread) {
  std::thread([] { const PoolBuffer wire(MemoryKind::device, 0, 1 << 20); }).join();
  EXPECT_EQ(gpu_.bytes_in_use(), 0u);
  EXPECT_EQ(transfer::pooled_bytes(), 0u);
}

TEST_F(Buffers, EndWithTheirContext) {
  for (const auto kind : {MemoryKind::device, MemoryKind::pinned}) {
    { const PoolBuffer kept(kind, 0, 100); }
    const void* const of_other_gpu = PoolBuffer(kind, 1, 100).data();
    gpu_.reset(0);
    const PoolBuffer fresh(kind, 0, 100);
    EXPECT_TRUE(device::runtime()->locate(fresh.data()).kind == kind) << "a buffer of the old context";
    EXPECT_EQ(PoolBuffer(kind, 1, 100).data(), of_other_gpu);
  }
}

TEST_F(Buffers, OfAnOldContextAreNotReleased) {
  for (const std::size_t limit : {limit_, std::size_t{0}}) {
    transfer::set_pool_limit(limit);
    transfer::drain_pools();
    auto in_use = std::make_unique<PoolBuffer>(MemoryKind::device, 0, 4096);
    const void* const address = in_use->data();
    gpu_.reset(0);
    void* const of_program = gpu_.allocate(0, 4096);
    ASSERT_EQ(of_program, address);
    in_use.reset();
    EXPECT_EQ(transfer::pooled_bytes(), 0u);
    transfer::drain_pools();
    EXPECT_EQ(device::runtime()->locate(of_program).kind, MemoryKind::device);
    gpu_.release(of_program);
  }
}

TEST_F(Buffers, OfOldContextsTakeNoneOfWhatMayBeKept) {
  transfer::set_pool_limit(1 << 20);
  for (int resets = 0; resets < 10; ++resets) {
    { const PoolBuffer half(MemoryKind::pinned, 0, 1 << 19); }
    EXPECT_EQ(transfer::pooled_bytes(), std::size_t{1} << 19) << resets;
    gpu_.reset(0);
  }
}

TEST_F(Buffers, LongOnesAreKeptByTheProcess) {
  for (const auto kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
    const void* first = nullptr;
    std::thread([&] { first = PoolBuffer(kind, 0, 40 << 20).data(); }).join();
    const long before = gpu_.count("allocations");
    for (const std::size_t bytes : {std::size_t{40} << 20, std::size_t{30} << 20}) {
      const PoolBuffer again(kind, 0, bytes);
      EXPECT_EQ(again.data(), first);
      const PoolBuffer longer(kind, 0, 41 << 20);
      EXPECT_NE(longer.data(), first);
    }
    EXPECT_LE(gpu_.count("allocations") - before, 1) << "the longer one, once";
  }
}

TEST_F(Buffers, PagesOfLongOnesCanBeTakenBack) {
  constexpr std::size_t capacity = std::size_t{32} << 20;
  const buffer_memory::MemoryPlace host;
  std::byte* const memory = buffer_memory::allocate(host, capacity, false);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(buffer_memory::offer_pages(memory, capacity));
  buffer_memory::release(host, memory, capacity);
}

TEST_F(Buffers, NewLongOnesAreWorthTheirMemoryForEveryThirdMessage) {
  constexpr buffer_memory::MemoryPlace host{MemoryKind::host, -1, 0};
  constexpr std::size_t bytes = std::size_t{20} << 20;
  const auto is_worth_taking = [&](std::size_t length) {
    return transfer::long_buffers::is_worth_taking(host, length);
  };
  while (!is_worth_taking(bytes)) continue;  // whatever came before this test
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(is_worth_taking(bytes));
    EXPECT_FALSE(is_worth_taking(bytes));
    EXPECT_TRUE(is_worth_taking(bytes));
  }
  EXPECT_FALSE(is_worth_taking(bytes));
  EXPECT_FALSE(is_worth_taking(bytes));
  EXPECT_FALSE(is_worth_taking(4 * bytes));  // what shorter ones have done without does not pay for a longer one
  static_cast<void>(PoolBuffer(MemoryKind::host, -1, bytes));
  for (int message = 0; message < 3; ++message) EXPECT_TRUE(is_worth_taking(bytes)) << "a kept one costs nothing";
}

TEST_F(Buffers, KeptLongOnesAreBoundedAndEndWithTheirContext) {
  transfer::set_pool_limit(16 << 20);
  for (int i = 0; i < 20; i += 4) {
    std::vector<PoolBuffer> buffers;
    for (int k = 0; k < 4; ++k) buffers.emplace_back(MemoryKind::device, 0, static_cast<std::size_t>(20 + i) << 20);
  }
  EXPECT_LE(gpu_.bytes_in_use(), std::size_t{65} << 20);
  EXPECT_GT(gpu_.bytes_in_use(), std::size_t{30} << 20);
  gpu_.reset(0);
  const PoolBuffer fresh(MemoryKind::device, 0, 36 << 20);
  EXPECT_EQ(device::runtime()->locate(fresh.data()).kind, MemoryKind::device);
}

TEST_F(Buffers, PageLockedMemoryIsBounded) {
  transfer::set_pool_limit(16 << 20);
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{24} << 20, std::size_t{1} << 20}) {
    std::vector<PoolBuffer> buffers;
    for (;;) {
      PoolBuffer buffer(MemoryKind::pinned, 0, bytes);
      if (!buffer) break;
      buffers.push_back(std::move(buffer));
      ASSERT_LE(buffer_memory::page_locked_bytes(), transfer::page_locked_limit());
    }
    EXPECT_GT((buffers.size() + 1) * bytes * 5 / 4, std::size_t{80} << 20);
    EXPECT_TRUE(PoolBuffer(MemoryKind::device, 0, bytes)) << "of another kind";
  }
  gpu_.reset(0);
  transfer::drain_pools();
  { const PoolBuffer of_new_context(MemoryKind::pinned, 0, 1 << 20); }
  transfer::drain_pools();
  EXPECT_EQ(buffer_memory::page_locked_bytes(), 0u);
}

/// Takes and gives back a buffer when the thread's objects are destroyed: after its pools, since it is older than they.
struct LateUser {
  bool* served = nullptr;
  ~LateUser() {
    if (served == nullptr) return;
    const PoolBuffer wire(MemoryKind::host, -1, 5000);
    std::memset(wire.data(), 1, 5000);
    transfer::drain_pools();
    *served = transfer::pooled_bytes() == 0;
  }
};

TEST_F(Buffers, AreServedWhenThePoolsOfTheThreadHaveEnded) {
  bool served = false;
  std::thread([&] {
    thread_local LateUser last;
    last.served = &served;
    for (int i = 0; i < 5; ++i) const PoolBuffer wire(MemoryKind::host, -1, std::size_t{4096} << i);
  }).join();
  EXPECT_TRUE(served);
}

std::jmp_buf landing;

/// As a call does that is left by its error handler: an object in its frame is assigned a buffer.
[[gnu::noinline]] void take_and_jump(int depth) {
  volatile char frame[200];
  frame[0] = static_cast<char>(depth);
  if (depth != 0) {
    take_and_jump(depth - 1);
    frame[1] = frame[0];
    return;
  }
  PoolBuffer mine;
  mine = PoolBuffer(MemoryKind::host, -1, 5000);
  std::memset(mine.data(), 1, 5000);
  std::longjmp(landing, 1);
}

TEST_F(Buffers, OfFramesThatWereLeftByAJumpAreTakenBack) {
  const std::size_t before = transfer::existing_buffers();
  static int round;  // outlives the jumps
  for (round = 0; round < 1000; ++round) {
    if (setjmp(landing) == 0) take_and_jump(round % 7);
  }
  EXPECT_LE(transfer::existing_buffers(), before + 8);
  transfer::drain_pools();
  EXPECT_EQ(transfer::existing_buffers(), before);
}

/// Two users in turn on stacks of their own, as user-level threads are: neither loses its buffer to the other.
struct OnOwnStack {
  static inline ucontext_t main_context, other_context;
  static inline bool kept = false;

  static void run() {
    PoolBuffer mine;
    mine = PoolBuffer(MemoryKind::host, -1, 5000);
    std::memset(mine.data(), 1, 5000);
    swapcontext(&other_context, &main_context);
    kept = std::all_of(mine.data(), mine.data() + 5000, [](std::byte one) { return one == std::byte{1}; });
  }
};

TEST_F(Buffers, OfUserLevelThreadsAreTheirs) {
  std::vector<char> stack(256 << 10);
  getcontext(&OnOwnStack::other_context);
  OnOwnStack::other_context.uc_stack.ss_sp = stack.data();
  OnOwnStack::other_context.uc_stack.ss_size = stack.size();
  OnOwnStack::other_context.uc_link = &OnOwnStack::main_context;
  makecontext(&OnOwnStack::other_context, OnOwnStack::run, 0);
  swapcontext(&OnOwnStack::main_context, &OnOwnStack::other_context);
  {
    PoolBuffer mine, another;
    mine = PoolBuffer(MemoryKind::host, -1, 5000);
    another = PoolBuffer(MemoryKind::host, -1, 5000);
    std::memset(mine.data(), 2, 5000);
    std::memset(another.data(), 3, 5000);
    swapcontext(&OnOwnStack::main_context, &OnOwnStack::other_context);
    EXPECT_EQ(mine.data()[4999], std::byte{2});
    EXPECT_EQ(another.data()[4999], std::byte{3});
  }
  EXPECT_TRUE(OnOwnStack::kept);
}

}  // namespace
}  // namespace gapless::tests

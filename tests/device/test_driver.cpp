// What one buffer costs: nothing where its memory is surely the host's, else one question to the driver, whose answer
// is never kept. Each test runs in a process of its own, because core looks for a driver once. FAKE_DRIVER names the
// library that plays it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "device/device.hpp"
#include "loaded_fake_driver.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;

constexpr std::size_t page = 4096;
constexpr int host_type = 1, device_type = 2, gpu = 3;

MemoryKind kind_of(const void* pointer) { return device::locate(pointer).kind; }

/// How often the driver is asked while `pointer` is located ten times, each time with that answer.
long queries_for_ten(const void* pointer, MemoryKind expected) {
  const long before = driver().queries();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(kind_of(pointer), expected);
  return driver().queries() - before;
}

class Driver : public ::testing::Test {
 protected:
  void SetUp() override {
    driver();
    ASSERT_TRUE(device::in_use());
    addresses_ = static_cast<std::byte*>(driver().reserve(page));
    ASSERT_NE(addresses_, nullptr);
  }

  void give_out(int type) { driver().add({addresses_, page, type, gpu, nullptr, 0}); }

  std::byte* addresses_ = nullptr;
};

TEST_F(Driver, IsNotAskedAboutHeapStackAndProgramData) {
  static int data;
  int local = 0;
  const auto heap = std::make_unique<int>();
  EXPECT_EQ(queries_for_ten(&data, MemoryKind::host), 0);
  EXPECT_EQ(queries_for_ten(&local, MemoryKind::host), 0);
  EXPECT_EQ(queries_for_ten(heap.get(), MemoryKind::host), 0);
}

TEST_F(Driver, IsAskedOnceEachTimeAboutOtherHostMemory) {
  void* const array = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(array, MAP_FAILED);
  EXPECT_EQ(queries_for_ten(array, MemoryKind::host), 10);
}

TEST_F(Driver, IsAskedOnceEachTimeAboutGpuMemory) {
  give_out(device_type);
  EXPECT_EQ(queries_for_ten(addresses_ + page - 1, MemoryKind::device), 10);
  EXPECT_EQ(device::locate(addresses_).device, gpu);
}

TEST_F(Driver, IsBelievedWhenAddressesBecomeAnotherKindOfMemory) {
  EXPECT_EQ(kind_of(addresses_), MemoryKind::host);
  give_out(device_type);
  EXPECT_EQ(kind_of(addresses_), MemoryKind::device);
  driver().forget(addresses_);
  EXPECT_EQ(kind_of(addresses_), MemoryKind::host);
  give_out(host_type);
  EXPECT_EQ(kind_of(addresses_), MemoryKind::pinned);
}

TEST_F(Driver, KnowsNoMemoryBeforeTheProgramInitialisesIt) {
  give_out(device_type);
  driver().initialise(0);
  EXPECT_EQ(queries_for_ten(addresses_, MemoryKind::host), 10);
  driver().initialise(1);
  EXPECT_EQ(kind_of(addresses_), MemoryKind::device);
}

TEST_F(Driver, IsNotTakenToMeanHostMemoryByAKernelsFailure) {
  constexpr int illegal_address = 700;
  void* const array = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(array, MAP_FAILED);
  give_out(device_type);
  driver().fail(illegal_address);
  EXPECT_EQ(kind_of(addresses_), MemoryKind::device);
  device::Locator locator;
  EXPECT_EQ(locator.locate(addresses_).kind, MemoryKind::device);
  EXPECT_EQ(kind_of(array), MemoryKind::host);
  driver().fail(0);
  munmap(array, page);
}

}  // namespace
}  // namespace gapless::tests

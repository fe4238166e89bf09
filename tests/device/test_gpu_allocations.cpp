// Answers about allocations of GPU memory are remembered, and never after they may have become wrong. Each test runs in
// a process of its own, because core looks for a driver once. FAKE_DRIVER names the library that plays it.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "device/driver_mappings.hpp"
#include "device/gpu_allocations.hpp"
#include "device/imports.hpp"
#include "loaded_fake_driver.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;

constexpr std::size_t page = 4096, bytes = 4 * page;
constexpr int host_type = 1, device_type = 2, gpu = 3;

MemoryKind kind_of(const void* pointer) { return device::locate(pointer).kind; }

/// How often the driver is asked while `pointer`, of that GPU's memory, is located `times` times.
long queries_for(const void* pointer, int times, int expected_gpu = gpu) {
  const long before = driver().queries();
  for (int i = 0; i < times; ++i) {
    const device::Location location = device::locate(pointer);
    EXPECT_EQ(location.kind, MemoryKind::device);
    EXPECT_EQ(location.device, expected_gpu);
  }
  return driver().queries() - before;
}

/// How often the driver is asked while `pointer` is located ten times, each time with that answer.
long queries_for_ten(const void* pointer, MemoryKind expected) {
  const long before = driver().queries();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(kind_of(pointer), expected);
  return driver().queries() - before;
}

std::byte* allocate(std::size_t size, int of_gpu = gpu) {
  auto* const addresses = static_cast<std::byte*>(driver().reserve(size));
  driver().add({addresses, size, device_type, of_gpu, nullptr, 0});
  return addresses;
}

class GpuAllocations : public ::testing::Test {
 protected:
  void SetUp() override {
    driver();
    ASSERT_TRUE(device::in_use());
    memory_ = allocate(bytes);
    driver().control();
    EXPECT_EQ(queries_for(memory_, 1), 1);
  }

  std::byte* memory_ = nullptr;
};

TEST_F(GpuAllocations, AreAskedAboutOnce) {
  EXPECT_EQ(queries_for(memory_, 100), 0);
  EXPECT_EQ(queries_for(memory_ + bytes - 1, 100), 0);
  EXPECT_EQ(kind_of(memory_ + bytes), MemoryKind::host) << "of another allocation, if of any";
  EXPECT_EQ(kind_of(memory_ - 1), MemoryKind::host);
}

TEST_F(GpuAllocations, AreForgottenWhenTheDriverUnmapsThem) {
  driver().release(memory_, bytes);
  void* const array =
      mmap(memory_, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(array, memory_);
  EXPECT_EQ(kind_of(memory_), MemoryKind::host);
}

TEST_F(GpuAllocations, AreForgottenWhateverTheDriverAsksOfTheSystem) {
  driver().control();
  EXPECT_EQ(queries_for(memory_, 100), 1);
  ASSERT_NE(driver().reserve(page), nullptr);
  EXPECT_EQ(queries_for(memory_, 100), 1);
  driver().release(allocate(page), page);
  EXPECT_EQ(queries_for(memory_, 100), 1);
}

TEST_F(GpuAllocations, SurviveWhatTheProgramMaps) {
  void* const array = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(array, MAP_FAILED);
  munmap(array, bytes);
  ioctl(-1, 0, nullptr);
  EXPECT_EQ(queries_for(memory_, 100), 0);
}

TEST_F(GpuAllocations, AreForgottenByEveryThread) {
  std::atomic<int> step{0};
  const auto wait_for = [&](int wanted) {
    while (step != wanted) std::this_thread::yield();
  };
  std::thread other([&] {
    EXPECT_EQ(queries_for(memory_, 10), 1) << "another thread knows nothing yet";
    step = 1;
    wait_for(2);
    EXPECT_EQ(queries_for(memory_, 10), 1);
  });
  wait_for(1);
  driver().control();
  step = 2;
  other.join();
}

TEST_F(GpuAllocations, AreNoPartsOfReservations) {
  auto* const reserved = static_cast<std::byte*>(driver().reserve(2 * page));
  driver().add({reserved, page, device_type, gpu, reserved, 2 * page});
  driver().add({reserved + page, page, device_type, gpu + 1, reserved, 2 * page});
  EXPECT_EQ(queries_for(reserved, 10), 10);
  EXPECT_EQ(queries_for(reserved + page, 10, gpu + 1), 10);
}

TEST_F(GpuAllocations, AreNotPageLockedMemory) {
  auto* const pinned = static_cast<std::byte*>(driver().reserve(page));
  driver().add({pinned, page, host_type, 0, nullptr, 0});
  EXPECT_EQ(queries_for_ten(pinned, MemoryKind::pinned), 10);
}

TEST_F(GpuAllocations, MoreThanAreRememberedAreStillRight) {
  constexpr int count = 3 * device::gpu_allocations::most_remembered;
  std::vector<std::byte*> many;
  for (int i = 0; i < count; ++i) many.push_back(allocate(page, i));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(queries_for(many[static_cast<std::size_t>(i)], 1, i), 1);
  }
  EXPECT_EQ(queries_for(many[count - 1], 10, count - 1), 0);
}

TEST_F(GpuAllocations, AreAskedAboutEachTimeOnceAnotherToolSeesTheReleases) {
  const device::Redirection other{"ioctl", reinterpret_cast<void*>(&ioctl)};
  std::array<device::RedirectedImport, 2> places;
  ASSERT_EQ(device::redirect_imports(*loaded_fake_driver().library, {&other, 1}, places), 1u);
  EXPECT_EQ(queries_for(memory_, 10), 10);
}

// With the environment that CMakeLists.txt gives each.

TEST(GpuAllocationsAlone, AreAskedAboutEachTimeUntilTheDriverWasSeenAskingTheSystem) {
  driver();
  ASSERT_TRUE(device::in_use());
  std::byte* const memory = allocate(page);
  EXPECT_EQ(queries_for(memory, 10), 10);
  driver().control();
  EXPECT_EQ(queries_for(memory, 10), 1);
}

TEST(GpuAllocationsAlone, AreAskedAboutEachTimeIfTheUserSaysSo) {
  driver();
  ASSERT_TRUE(device::in_use());
  std::byte* const memory = allocate(page);
  driver().control();
  EXPECT_EQ(device::driver_mappings::changes(), 0u);
  EXPECT_EQ(queries_for(memory, 10), 10);
}

/// Of ten times before and ten after the driver is initialised, how often it is asked.
void expect_queries(long before, long after) {
  driver();
  ASSERT_TRUE(device::in_use());
  std::byte* const memory = allocate(page);
  EXPECT_EQ(queries_for_ten(memory, MemoryKind::host), before);
  driver().initialise();
  EXPECT_EQ(queries_for_ten(memory, MemoryKind::device), after);
}

TEST(UninitialisedDriverAlone, IsNotAsked) { expect_queries(0, 1); }

TEST(UninitialisedDriverAlone, IsAskedEachTimeIfItsCallsAreNotSeen) { expect_queries(10, 10); }

}  // namespace
}  // namespace gapless::tests

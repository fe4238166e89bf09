// Answers about host pages are remembered, and never after they have become wrong. Each test runs in a process of its
// own, because core looks for a driver once. FAKE_DRIVER names the library that plays it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "device/device.hpp"
#include "device/driver_mappings.hpp"
#include "device/host_pages.hpp"
#include "device/imports.hpp"
#include "loaded_fake_driver.hpp"

namespace gapless::tests {
namespace {

constexpr std::size_t page = 4096, array_bytes = 64 * page;

device::MemoryKind kind_of(const void* pointer) { return device::locate(pointer).kind; }

/// How often the driver is asked while `pointer` is located `times` times.
long queries_for(const void* pointer, int times) {
  const long before = driver().queries();
  for (int i = 0; i < times; ++i) EXPECT_EQ(kind_of(pointer), device::MemoryKind::host);
  return driver().queries() - before;
}

std::byte* map_host_array(void* address = nullptr) {
  const int fixed = address != nullptr ? MAP_FIXED : 0;
  void* const array = mmap(address, array_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  if (array == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(array);
}

class HostPages : public ::testing::Test {
 protected:
  void SetUp() override {
    driver();
    ASSERT_TRUE(device::in_use());
    array_ = map_host_array();
    // The first question makes the driver map something, which makes its own answer one from before a mapping.
    for (int i = 0; i < 2; ++i) EXPECT_EQ(kind_of(array_), device::MemoryKind::host);
  }

  std::byte* array_ = nullptr;
};

TEST_F(HostPages, AreAskedAboutOnce) {
  EXPECT_EQ(queries_for(array_, 100), 0);
  EXPECT_EQ(queries_for(array_ + page - 1, 100), 0) << "the same page";
  EXPECT_EQ(queries_for(array_ + page, 100), 1) << "another page";
  EXPECT_EQ(queries_for(array_, 100), 0);
}

TEST_F(HostPages, AreForgottenWhenTheDriverMapsInTheirPlace) {
  munmap(array_, array_bytes);
  ASSERT_TRUE(driver().map(array_, array_bytes));
  EXPECT_EQ(kind_of(array_), device::MemoryKind::device);
  EXPECT_EQ(kind_of(array_ + array_bytes - 1), device::MemoryKind::device);
}

TEST_F(HostPages, AreForgottenWhereverTheDriverMaps) {
  ASSERT_NE(driver().reserve(page), nullptr);
  EXPECT_EQ(queries_for(array_, 100), 1);
}

TEST_F(HostPages, SurviveWhatTheProgramMaps) {
  map_host_array();
  munmap(array_, array_bytes);
  map_host_array(array_);
  EXPECT_EQ(queries_for(array_, 100), 0);
}

TEST_F(HostPages, AreNotWhatTheDriverKeepsInReserve) {
  auto* const reserved = static_cast<std::byte*>(driver().reserve(array_bytes));
  ASSERT_NE(reserved, nullptr);
  // A message of no elements may name any address.
  EXPECT_EQ(queries_for(reserved, 10), 10);
  driver().give_out(reserved, array_bytes);
  EXPECT_EQ(kind_of(reserved), device::MemoryKind::device);
}

TEST_F(HostPages, AreAskedAboutEachTimeOnceAnotherToolSeesTheMappings) {
  EXPECT_EQ(queries_for(array_, 10), 0);
  const device::Redirection other{"mmap", reinterpret_cast<void*>(&mmap)};
  std::array<device::RedirectedImport, 2> places;
  ASSERT_EQ(device::redirect_imports(*loaded_fake_driver().library, {&other, 1}, places), 1u);
  EXPECT_EQ(queries_for(array_, 10), 10);
}

TEST_F(HostPages, AreAskedAboutEachTimeOnceTheCountIsTooLargeToBeKept) {
  constexpr std::uint64_t largest = (std::uint64_t{1} << 28) - 1;
  device::driver_mappings::internal::count.store(largest - 1);
  ASSERT_NE(driver().reserve(page), nullptr);
  EXPECT_EQ(queries_for(array_, 10), 1);
  ASSERT_NE(driver().reserve(page), nullptr);
  EXPECT_EQ(queries_for(array_, 10), 10);
}

TEST_F(HostPages, ManyMoreThanAreRememberedAreStillRight) {
  constexpr std::size_t pages = 3 * device::host_pages::most_remembered;
  auto* const many = static_cast<std::byte*>(
      mmap(nullptr, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(many, MAP_FAILED);
  for (std::size_t i = 0; i < pages; ++i) EXPECT_EQ(kind_of(many + i * page), device::MemoryKind::host);
  EXPECT_EQ(queries_for(many + (pages - 1) * page, 10), 0);
  EXPECT_EQ(queries_for(many, 10), 1) << "its place was needed for another";
}

// With the environment that CMakeLists.txt gives each.

TEST(HostPagesAlone, AreAskedAboutEachTimeIfTheUserSaysSo) {
  ASSERT_TRUE((driver(), device::in_use()));
  EXPECT_EQ(device::driver_mappings::count(), 0u);
  EXPECT_EQ(queries_for(map_host_array(), 10), 10);
}

TEST(HostPagesAlone, AreAskedAboutEachTimeUntilTheDriverWasSeenMapping) {
  ASSERT_TRUE((driver(), device::in_use()));
  std::byte* const array = map_host_array();
  EXPECT_EQ(queries_for(array, 10), 10);
  ASSERT_NE(driver().reserve(page), nullptr);
  EXPECT_EQ(queries_for(array, 10), 1);
}

TEST(Readable, IsWhatTheCpuCanRead) {
  int local = 0;
  std::byte* const array = map_host_array();
  errno = ENOENT;
  EXPECT_TRUE(device::host_pages::is_readable(&local));
  EXPECT_TRUE(device::host_pages::is_readable(array + page - 1));
  ASSERT_EQ(mprotect(array, page, PROT_NONE), 0);
  EXPECT_FALSE(device::host_pages::is_readable(array));
  EXPECT_TRUE(device::host_pages::is_readable(array + page));
  munmap(array, array_bytes);
  EXPECT_FALSE(device::host_pages::is_readable(array + page));
  EXPECT_FALSE(device::host_pages::is_readable(reinterpret_cast<void*>(64)));
  EXPECT_EQ(errno, ENOENT);
}

TEST(Imports, AllPlacesOrNone) {
  driver();
  const device::Redirection unknown{"no_such_function", nullptr};
  std::array<device::RedirectedImport, 1> one;
  EXPECT_EQ(device::redirect_imports(*loaded_fake_driver().library, {&unknown, 1}, one), 0u);
  const std::array two{device::Redirection{"mmap", nullptr}, device::Redirection{"munmap", nullptr}};
  EXPECT_EQ(device::redirect_imports(*loaded_fake_driver().library, two, one), 0u) << "more places than fit";
  EXPECT_NE(driver().reserve(page), nullptr) << "a null pointer was written";
}

}  // namespace
}  // namespace gapless::tests

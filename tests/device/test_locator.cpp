// What is answered without a question is right, and memory of one allocation is asked about once. FAKE_DRIVER names the
// library that plays the driver; where it is an old one, everything is asked.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "device/device.hpp"
#include "loaded_fake_driver.hpp"
#include "seed.hpp"

namespace gapless::device {

static bool operator==(const Location& a, const Location& b) { return a.kind == b.kind && a.device == b.device; }
static void PrintTo(const Location& location, std::ostream* out) {
  *out << "kind " << static_cast<int>(location.kind) << " of GPU " << location.device;
}

}  // namespace gapless::device

namespace gapless::tests {
namespace {

using device::Location, device::MemoryKind;

constexpr std::size_t page = 4096;
constexpr int host_type = 1, device_type = 2;
constexpr Location nowhere{}, gpu0{MemoryKind::device, 0}, gpu1{MemoryKind::device, 1}, pinned{MemoryKind::pinned, 0};

bool is_old_driver() { return std::getenv("FAKE_DRIVER_KNOWS_NO_RANGES") != nullptr; }

class Locator : public ::testing::Test {
 protected:
  void SetUp() override {
    driver();
    ASSERT_TRUE(device::in_use());
    addresses_ = static_cast<std::byte*>(driver().reserve(64 * page));
    ASSERT_NE(addresses_, nullptr);
  }

  std::byte* allocate(std::size_t offset, std::size_t bytes, int gpu) {
    driver().add({addresses_ + offset, bytes, device_type, gpu, nullptr, 0});
    return addresses_ + offset;
  }

  std::byte* addresses_ = nullptr;
};

/// How often the driver is asked while one call locates the pointers, each of which must be `expected`.
long queries_for(const std::vector<const std::byte*>& pointers, Location expected) {
  device::Locator locator;
  const long before = driver().queries();
  for (const std::byte* pointer : pointers) EXPECT_EQ(locator.locate(pointer), expected);
  return driver().queries() - before;
}

TEST_F(Locator, AsksOnceForEachAllocation) {
  std::byte* const cube = allocate(0, page, 0);
  std::byte* const packed = allocate(8 * page, page, 0);
  std::vector<const std::byte*> pointers;
  for (std::size_t i = 0; i < 26; ++i) {
    pointers.push_back(cube + (i * 1231) % page);
    pointers.push_back(packed + i * 32);
  }
  EXPECT_EQ(queries_for(pointers, gpu0), is_old_driver() ? 2 * 52 : 2);
}

TEST_F(Locator, TellsNeighbouringAllocationsApart) {
  std::byte* const left = allocate(0, 3 * 256, 0);
  std::byte* const right = allocate(3 * 256, 5 * 256, 1);
  device::Locator locator;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(locator.locate(left), gpu0);
    EXPECT_EQ(locator.locate(right), gpu1);
    EXPECT_EQ(locator.locate(left + 3 * 256 - 1), gpu0);
    EXPECT_EQ(locator.locate(right + 5 * 256 - 1), gpu1);
    EXPECT_EQ(locator.locate(right + 5 * 256), nowhere);
    EXPECT_EQ(locator.locate(left - 1), nowhere);
  }
}

TEST_F(Locator, AsksOfEveryPointerIntoAReservation) {
  const auto add_part = [&](std::size_t offset, int type, int gpu) {
    driver().add({addresses_ + offset, page, type, gpu, addresses_, 4 * page});
  };
  add_part(0, device_type, 0);
  add_part(page, device_type, 1);
  add_part(2 * page, host_type, 0);
  device::Locator locator;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(locator.locate(addresses_), gpu0);
    EXPECT_EQ(locator.locate(addresses_ + page), gpu1);
    EXPECT_EQ(locator.locate(addresses_ + 2 * page), pinned);
    EXPECT_EQ(locator.locate(addresses_ + 3 * page), nowhere) << "not mapped";
  }
}

TEST_F(Locator, AsksOnceForAPointerIntoAReservation) {
  driver().add({addresses_, page, device_type, 0, addresses_, 4 * page});
  EXPECT_EQ(queries_for({addresses_, addresses_, addresses_ + 1, addresses_}, gpu0), is_old_driver() ? 2 * 2 : 2);
}

TEST_F(Locator, AsksOfPageLockedMemoryEachTime) {
  driver().add({addresses_, page, host_type, 0, nullptr, 0});
  EXPECT_EQ(queries_for({addresses_, addresses_ + 8}, pinned), is_old_driver() ? 2 * 2 : 2);
}

TEST_F(Locator, IsRightAboutMoreAllocationsThanItKeeps) {
  std::vector<const std::byte*> pointers;
  for (std::size_t i = 0; i < 20; ++i) pointers.push_back(allocate(i * page, page, 1) + 100);
  const std::vector<const std::byte*> last(pointers.end() - 8, pointers.end());
  pointers.insert(pointers.end(), last.begin(), last.end());
  EXPECT_EQ(queries_for(pointers, gpu1), is_old_driver() ? 2 * 20 : 20);
}

TEST_F(Locator, AnotherCallAsksAnew) {
  std::byte* const memory = allocate(0, page, 0);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(queries_for({memory, memory + 1}, gpu0), is_old_driver() ? 4 : 1);
}

TEST_F(Locator, AgreesWithWhatWasHandedOut) {
  std::mt19937_64 random(random_seed());
  std::vector<Location> of_byte(64 * page, nowhere);
  std::size_t at = 0;
  for (int i = 0; i < 40; ++i) {
    at += random() % 3 * 64;
    const std::size_t bytes = 64 * (1 + random() % 40);
    const bool is_host = random() % 4 == 0;
    const int gpu = is_host ? 0 : static_cast<int>(random() % 2);
    // Some are parts of reservations that seem to hold everything.
    void* const reservation = random() % 3 == 0 ? addresses_ : nullptr;
    driver().add({addresses_ + at, bytes, is_host ? host_type : device_type, gpu, reservation, of_byte.size()});
    std::fill_n(of_byte.begin() + static_cast<std::ptrdiff_t>(at), bytes, is_host ? pinned : gpu == 0 ? gpu0 : gpu1);
    at += bytes;
  }
  for (int call = 0; call < 50; ++call) {
    device::Locator locator;
    for (int i = 0; i < 100; ++i) {
      const std::size_t offset = random() % of_byte.size();
      ASSERT_EQ(locator.locate(addresses_ + offset), of_byte[offset]) << "byte " << offset;
    }
  }
}

}  // namespace
}  // namespace gapless::tests

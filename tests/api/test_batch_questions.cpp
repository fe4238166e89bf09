// A batch asks the driver once about each allocation, and knows whose each is. The driver is the one that FAKE_DRIVER
// names, and no GPU is there: what is seen of a batch is why it is refused.
#include <cstring>

#include "loaded_fake_driver.hpp"
#include "random_type.hpp"

namespace {

using gapless::tests::driver;

constexpr std::size_t page = 4096;
constexpr int device_type = 2;

char* allocate(int gpu) {
  auto* const memory = static_cast<char*>(driver().reserve(page));
  driver().add({memory, page, device_type, gpu, nullptr, 0});
  return memory;
}

TEST(BatchQuestions, OneForEachAllocation) {
  driver();
  const TypeHandle vector = parse("vector(16, 1, 2, int)");  // 64 bytes of 124
  char *const cube = allocate(0), *const packed = allocate(0), *const elsewhere = allocate(1);
  std::vector<gapless_job> jobs;
  for (int region = 0; region < 26; ++region) {
    jobs.push_back({vector.get(), 1, cube + region * 124, 0, 64, packed + region * 64, GAPLESS_PACK});
  }
  jobs.push_back({vector.get(), 1, elsewhere, 0, 64, elsewhere + 1024, GAPLESS_PACK});

  EXPECT_EQ(gapless_pack_batch(jobs.data(), jobs.size(), nullptr), GAPLESS_ERROR_UNSUPPORTED);  // finds the driver
  const long before = driver().queries();
  EXPECT_EQ(gapless_pack_batch(jobs.data(), jobs.size(), nullptr), GAPLESS_ERROR_UNSUPPORTED);
  EXPECT_STREQ(gapless_last_error(), "job 26: memory of GPU 0 and of GPU 1 in one call");
  EXPECT_EQ(driver().queries() - before, 3);
}

}  // namespace

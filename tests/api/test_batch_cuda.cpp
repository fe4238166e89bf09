// Batches across allocations of every kind, on a real GPU: what one call learns of an allocation is what the driver
// says of each pointer into it, and the bytes are right. Needs a GPU; uses all there are.
#include <sys/mman.h>

#include <cstring>
#include <functional>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "device/driver.hpp"
#include "random_type.hpp"

namespace {

using gapless::device::Location;
using gapless::tests::VirtualMemory;
using gapless::tests::why_no_gpu;

class BatchOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaGetDeviceCount(&gpu_count_));
    ASSERT_CUDA(cudaSetDevice(0));
    ASSERT_NE(gapless::device::runtime(), nullptr) << gapless::device::why_unavailable();
  }
  void TearDown() override {
    for (auto last = at_end_.rbegin(); last != at_end_.rend(); ++last) (*last)();
  }

  char* allocate(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, bytes));
    at_end_.push_back([=] { EXPECT_CUDA(cudaFree(memory)); });
    return static_cast<char*>(memory);
  }
  char* allocate_in_pool(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMallocAsync(&memory, bytes, nullptr));
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    at_end_.push_back([=] { EXPECT_CUDA(cudaFree(memory)); });
    return static_cast<char*>(memory);
  }
  char* allocate_managed(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMallocManaged(&memory, bytes));
    at_end_.push_back([=] { EXPECT_CUDA(cudaFree(memory)); });
    return static_cast<char*>(memory);
  }
  char* allocate_page_locked(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMallocHost(&memory, bytes));
    at_end_.push_back([=] { EXPECT_CUDA(cudaFreeHost(memory)); });
    return static_cast<char*>(memory);
  }
  /// Pages of the program's own, the middle half of which is page-locked.
  char* map_and_register(std::size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    char* const middle = static_cast<char*>(memory) + bytes / 4;
    EXPECT_CUDA(cudaHostRegister(middle, bytes / 2, cudaHostRegisterDefault));
    at_end_.push_back([=] {
      EXPECT_CUDA(cudaHostUnregister(middle));
      munmap(memory, bytes);
    });
    return static_cast<char*>(memory);
  }

  int gpu_count_ = 0;
  std::vector<std::function<void()>> at_end_;
  RandomTypes random_;
};

}  // namespace

TEST_F(BatchOnGpu, EveryPointerIsLocatedAsTheDriverLocatesIt) {
  struct Memory {
    const char* begin;
    std::size_t bytes;
  };
  std::vector<Memory> all;
  const VirtualMemory virtual_memory;  // the addresses behind it are mapped nowhere
  all.push_back({reinterpret_cast<const char*>(virtual_memory.begin()), VirtualMemory::size});
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    ASSERT_CUDA(cudaSetDevice(gpu));
    for (std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{3} << 20}) {
      all.push_back({allocate(bytes), bytes});
      all.push_back({allocate_in_pool(bytes), bytes});
      all.push_back({allocate_managed(bytes), bytes});
      all.push_back({allocate_page_locked(bytes), bytes});
    }
  }
  all.push_back({map_and_register(std::size_t{1} << 20), std::size_t{1} << 20});

  for (int call = 0; call < 300; ++call) {
    gapless::device::Locator locator;
    for (int i = 0; i < 60; ++i) {
      const Memory& memory = all[std::size_t(random_.between(0, std::int64_t(all.size()) - 1))];
      const std::int64_t last = std::int64_t(memory.bytes) - 1;
      const char* pointer = memory.begin + (i % 3 == 0 ? last : random_.between(0, last));
      const Location found = locator.locate(pointer), expected = gapless::device::locate(pointer);
      ASSERT_EQ(found.kind, expected.kind) << static_cast<const void*>(pointer);
      ASSERT_EQ(found.device, expected.device) << static_cast<const void*>(pointer);
    }
  }
}

TEST_F(BatchOnGpu, OnlyWholeAllocationsAreAnsweredForAtOnce) {
  const auto range_around = [](const void* pointer) {
    gapless::device::driver::AddressRange range;
    gapless::device::driver::locate(pointer, range);
    return range;
  };
  ASSERT_TRUE(gapless::device::in_use());
  for (std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{3} << 20}) {
    char* const memory = allocate(bytes);
    cudaIpcMemHandle_t handle;
    if (cudaIpcGetMemHandle(&handle, memory) != cudaSuccess) GTEST_SKIP() << "no interprocess handles here";
    const auto range = range_around(memory + bytes / 2);
    EXPECT_LE(range.begin, reinterpret_cast<std::uintptr_t>(memory));
    EXPECT_GE(range.begin + range.bytes, reinterpret_cast<std::uintptr_t>(memory) + bytes);
  }
  const VirtualMemory virtual_memory;
  EXPECT_EQ(range_around(virtual_memory.begin()).bytes, 0u);
  EXPECT_EQ(range_around(allocate_in_pool(4096)).bytes, 0u);
  EXPECT_EQ(range_around(allocate_managed(4096)).bytes, 0u);
  EXPECT_EQ(range_around(allocate_page_locked(4096)).bytes, 0u);
  EXPECT_EQ(range_around(map_and_register(1 << 16) + (1 << 15)).bytes, 0u);
}

TEST_F(BatchOnGpu, JobsOnManyAllocationsPackTheirBytes) {
  constexpr std::size_t bytes = 1 << 16, job_bytes = 124, packed_bytes = 64;
  const TypeHandle vector = parse("vector(16, 1, 2, int)");
  const std::vector<unsigned char> contents = random_.bytes(bytes);
  std::vector<char*> sources, destinations;
  for (int i = 0; i < 5; ++i) {
    sources.insert(sources.end(), {allocate(bytes), allocate_in_pool(bytes), allocate_managed(bytes)});
    destinations.insert(destinations.end(), {allocate(bytes), allocate_page_locked(bytes), allocate_managed(bytes)});
  }
  for (char* source : sources) ASSERT_CUDA(cudaMemcpy(source, contents.data(), bytes, cudaMemcpyDefault));

  for (int round = 0; round < 20; ++round) {
    std::vector<gapless_job> jobs;
    std::vector<std::size_t> offsets;
    for (std::size_t i = 0; i < 200; ++i) {
      offsets.push_back(std::size_t(random_.between(0, (bytes - job_bytes) / 4)) * 4);
      char* const source = sources[std::size_t(random_.between(0, std::int64_t(sources.size()) - 1))];
      char* const destination = destinations[i % destinations.size()] + i * packed_bytes;
      jobs.push_back({vector.get(), 1, source + offsets[i], 0, packed_bytes, destination, GAPLESS_PACK});
    }
    ASSERT_EQ(gapless_pack_batch(jobs.data(), jobs.size(), nullptr), GAPLESS_SUCCESS) << gapless_last_error();
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      unsigned char packed[packed_bytes];
      ASSERT_CUDA(cudaMemcpy(packed, jobs[i].packed, packed_bytes, cudaMemcpyDefault));
      for (std::size_t k = 0; k < packed_bytes; ++k) {
        ASSERT_EQ(packed[k], contents[offsets[i] + k / 4 * 8 + k % 4]) << "job " << i << ", byte " << k;
      }
    }
  }
}

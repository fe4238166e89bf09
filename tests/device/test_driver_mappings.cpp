// What host_pages and gpu_allocations rely on, asked of a real driver: it gets its addresses by mappings that are
// counted, gives up none without a change that is, and whatever it hands out is told from host memory, wherever host
// memory lay before. Each test runs in a process of its own.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <vector>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "device/driver_mappings.hpp"
#include "device/gpu_allocations.hpp"
#include "device/host_pages.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;

constexpr std::size_t page = 4096;

MemoryKind kind_of(const void* pointer) { return device::locate(pointer).kind; }

struct Memory {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

Memory map_host_array(std::size_t bytes) {
  void* const array = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (array == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(array), bytes};
}

/// Asks about up to 64 places of it, both ends among them, and says whether all are of the kind.
bool is_all(MemoryKind kind, Memory memory) {
  const std::size_t step = std::max<std::size_t>(page, memory.bytes / 64 / page * page);
  bool all = kind_of(memory.begin + memory.bytes - 1) == kind;
  for (std::size_t at = 0; at < memory.bytes; at += step) all = all && kind_of(memory.begin + at) == kind;
  return all;
}

TEST(UninitialisedDriver, IsNotAskedAndIsOnceTheProgramUsesIt) {
  if (!device::in_use()) GTEST_SKIP() << why_no_gpu();
  const Memory array = map_host_array(page);
  EXPECT_EQ(kind_of(array.begin), MemoryKind::host);
  EXPECT_TRUE(device::driver_mappings::have_no_releases_been_made());
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, page));
  EXPECT_EQ(kind_of(memory), MemoryKind::device);
  EXPECT_FALSE(device::driver_mappings::have_no_releases_been_made());
  ASSERT_CUDA(cudaFree(memory));
}

class DriverMappings : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_TRUE(device::in_use());
    ASSERT_CUDA(cudaFree(nullptr));
  }
};

TEST_F(DriverMappings, AreSeen) {
  EXPECT_GE(device::driver_mappings::count(), 1u) << "the driver's library imports no function that maps";
  const Memory array = map_host_array(page);
  EXPECT_EQ(kind_of(array.begin), MemoryKind::host);
  EXPECT_TRUE(device::driver_mappings::have_been_seen()) << "not even when it reserved addresses";
  EXPECT_EQ(kind_of(array.begin), MemoryKind::host);
  EXPECT_TRUE(device::host_pages::contains(array.begin));
}

TEST_F(DriverMappings, MoveTheCountWithEachNewRange) {
  const std::uint64_t before = device::driver_mappings::count();
  void *plain = nullptr, *managed = nullptr, *pinned = nullptr;
  constexpr std::size_t more_than_a_pool_holds = std::size_t{3} << 30;
  ASSERT_CUDA(cudaMalloc(&plain, more_than_a_pool_holds));
  const std::uint64_t after_plain = device::driver_mappings::count();
  ASSERT_CUDA(cudaMallocManaged(&managed, std::size_t{64} << 20));
  const std::uint64_t after_managed = device::driver_mappings::count();
  ASSERT_CUDA(cudaMallocHost(&pinned, std::size_t{64} << 20));
  const std::uint64_t after_pinned = device::driver_mappings::count();
  EXPECT_GT(after_plain, before);
  EXPECT_GT(after_managed, after_plain);
  EXPECT_GT(after_pinned, after_managed);
  RecordProperty("mappings", static_cast<int>(after_pinned));
  ASSERT_CUDA(cudaFree(plain));
  ASSERT_CUDA(cudaFree(managed));
  ASSERT_CUDA(cudaFreeHost(pinned));
}

TEST_F(DriverMappings, MoveTheChangesWhenARangeIsGivenUp) {
  void* memory = nullptr;
  constexpr std::size_t more_than_a_pool_holds = std::size_t{3} << 30;
  ASSERT_CUDA(cudaMalloc(&memory, more_than_a_pool_holds));
  ASSERT_EQ(kind_of(memory), MemoryKind::device);
  EXPECT_EQ(device::gpu_allocations::device_of(memory), 0);
  const std::uint64_t before = device::driver_mappings::changes();
  ASSERT_CUDA(cudaFree(memory));
  EXPECT_GT(device::driver_mappings::changes(), before);
  EXPECT_EQ(device::gpu_allocations::device_of(memory), -1);
}

TEST_F(DriverMappings, StandStillWhileMemoryIsUsed) {
  void *one = nullptr, *other = nullptr;
  ASSERT_CUDA(cudaMalloc(&one, 1 << 20));
  ASSERT_CUDA(cudaMalloc(&other, 1 << 20));
  const auto use = [&] {
    EXPECT_EQ(cudaMemcpyAsync(one, other, 1 << 20, cudaMemcpyDeviceToDevice, nullptr), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  };
  use();
  const std::uint64_t before = device::driver_mappings::changes();
  for (int i = 0; i < 100; ++i) use();
  EXPECT_EQ(device::driver_mappings::changes(), before);
  ASSERT_CUDA(cudaFree(one));
  ASSERT_CUDA(cudaFree(other));
}

TEST_F(DriverMappings, VirtualMemoryWhereAHostArrayLay) {
  constexpr std::size_t size = VirtualMemory::size;
  for (int round = 0; round < 20; ++round) {
    const Memory array = map_host_array(2 * size);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_all(MemoryKind::host, array));
    munmap(array.begin, array.bytes);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(array.begin) + size - 1) / size * size;
    const VirtualMemory memory(reinterpret_cast<void*>(aligned));
    EXPECT_TRUE(is_all(MemoryKind::device, {memory.begin(), size})) << round;
  }
}

TEST_F(DriverMappings, NothingTheDriverHandsOutIsTakenForHostMemory) {
  std::mt19937_64 random(test_seed());
  std::vector<Memory> host, gpu;
  const auto take = [&](std::vector<Memory>& from) {
    const std::size_t i = random() % from.size();
    std::swap(from[i], from.back());
    const Memory memory = from.back();
    from.pop_back();
    return memory;
  };
  for (int step = 0; step < 600; ++step) {
    const std::size_t bytes = (1 + random() % 15) << (8 + random() % 19);
    switch (random() % 4) {
      case 0:
        host.push_back(map_host_array(bytes));
        break;
      case 1:
        if (!host.empty()) {
          const Memory memory = take(host);
          munmap(memory.begin, memory.bytes);
        }
        break;
      case 2: {
        void* memory = nullptr;
        ASSERT_CUDA(random() % 2 == 0 ? cudaMalloc(&memory, bytes) : cudaMallocAsync(&memory, bytes, nullptr));
        gpu.push_back({static_cast<std::byte*>(memory), bytes});
        break;
      }
      default:
        if (!gpu.empty()) {
          const Memory memory = take(gpu);
          ASSERT_CUDA(random() % 2 == 0 ? cudaFree(memory.begin) : cudaFreeAsync(memory.begin, nullptr));
          kind_of(memory.begin);  // as MPI calls may ask that send nothing
        }
    }
    for (const Memory& memory : host) ASSERT_TRUE(is_all(MemoryKind::host, memory)) << "step " << step;
    for (const Memory& memory : gpu) {
      kind_of(memory.begin + memory.bytes);
      ASSERT_TRUE(is_all(MemoryKind::device, memory)) << "step " << step;
    }
  }
  for (const Memory& memory : gpu) ASSERT_CUDA(cudaFree(memory.begin));
  for (const Memory& memory : host) munmap(memory.begin, memory.bytes);
}

}  // namespace
}  // namespace gapless::tests

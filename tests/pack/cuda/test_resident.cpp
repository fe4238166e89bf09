// What a kernel that stays on the GPU must not do: compute with old data, overtake the program, or keep it waiting.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu_engine.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using device::Status;
using pack::Direction;
using pack::Job;
using pack::Reach;

class Resident : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("GAPLESS_RESIDENT", "1", 0); }

  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaSetDevice(0));
    ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), size));
    ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&packed_), size));
    runtime_ = device::runtime();
    engine_ = pack::gpu_engine();
    ASSERT_NE(runtime_, nullptr) << device::why_unavailable();
  }
  void TearDown() override {
    cudaFree(memory_);
    cudaFree(packed_);
  }

  Job pack_of(const layout::Layout& rows) const {
    return {&rows, {1, 0}, 0, rows.size, Direction::pack, memory_, packed_};
  }

  /// Packs 4 of every 8 bytes, after filling them with `value` by way of the default stream.
  void expect_packs(char value, bool waits) { expect_packs(*rows_, value, waits); }
  void expect_packs(const layout::Layout& rows, char value, bool waits) {
    ASSERT_CUDA(cudaMemsetAsync(memory_, value, size, cudaStreamLegacy));
    if (waits) {
      ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
    }
    const Job job = pack_of(rows);
    ASSERT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok) << runtime_->last_error();
    std::string found(static_cast<std::size_t>(rows.size), 0);
    ASSERT_CUDA(cudaMemcpy(found.data(), packed_, found.size(), cudaMemcpyDeviceToHost));
    ASSERT_EQ(found, std::string(found.size(), value));
  }

  /// Jobs that went through a resident kernel since the last call.
  std::uint64_t resident_jobs() {
    using Counter = std::uint64_t (*)();
    static const auto counter = reinterpret_cast<Counter>(dlsym(plugin(), "gapless_cuda_resident_jobs"));
    const std::uint64_t before = std::exchange(counted_, counter());
    return counted_ - before;
  }

  static void* plugin() {
    Dl_info found;
    const void* const a_function = *reinterpret_cast<void***>(device::runtime())[0];
    return dladdr(a_function, &found) != 0 ? dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }

  static constexpr std::size_t size = 1 << 17, large = 1 << 18;
  const layout::LayoutPointer rows_ = layout::repeat(layout::block(0, 4), 16000, 8);  // several words a thread
  const layout::LayoutPointer few_rows_ = layout::repeat(layout::block(0, 4), 100, 8);
  device::Runtime* runtime_ = nullptr;
  pack::GpuEngine* engine_ = nullptr;
  char *memory_ = nullptr, *packed_ = nullptr;
  std::uint64_t counted_ = 0;
};

TEST_F(Resident, DoesTheJobsItself) {
  resident_jobs();
  for (int i = 0; i < 50; ++i) ASSERT_NO_FATAL_FAILURE(expect_packs(static_cast<char>(i), true)) << i;
  EXPECT_EQ(resident_jobs(), 50u);
}

/// Rows of any width, as many as need one block, all of them, or several words a thread.
TEST_F(Resident, MovesRowsOfAnyWidthAndNumber) {
  resident_jobs();
  std::uint64_t jobs = 0;
  std::mt19937 random(static_cast<std::mt19937::result_type>(random_seed()));
  std::vector<char> memory(3 * large), packed(large), found(3 * large);
  char *gpu_memory = nullptr, *gpu_packed = nullptr;
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&gpu_memory), memory.size()));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&gpu_packed), packed.size()));
  for (const std::size_t width : {1, 2, 4, 7, 8, 16, 24, 100, 128}) {
    for (const std::size_t rows : {1, 31, 256, 257, 500, 1024, 2049, 4096, 8192, 20000, 32768}) {
      const std::size_t bytes = rows * width, stride = 2 * width + width % 2;
      if (rows * stride > memory.size() || bytes > large) continue;
      for (char& byte : memory) byte = static_cast<char>(random());
      for (char& byte : packed) byte = static_cast<char>(random());
      ASSERT_CUDA(cudaMemcpy(gpu_memory, memory.data(), memory.size(), cudaMemcpyHostToDevice));
      ASSERT_CUDA(cudaMemcpy(gpu_packed, packed.data(), packed.size(), cudaMemcpyHostToDevice));
      ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));  // copies from ordinary memory may return before they end
      const auto layout = layout::repeat(layout::block(0, static_cast<layout::Offset>(width)),
                                         static_cast<layout::Offset>(rows), static_cast<layout::Offset>(stride));
      const bool packs = random() % 2 == 0;
      const Job job{layout.get(), {1, 0},    0, layout->size, packs ? Direction::pack : Direction::unpack,
                    gpu_memory,   gpu_packed};
      ASSERT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok) << runtime_->last_error();
      ++jobs;
      for (std::size_t row = 0; row < rows; ++row) {
        char *const outside = packed.data() + row * width, *const inside = memory.data() + row * stride;
        packs ? std::memcpy(outside, inside, width) : std::memcpy(inside, outside, width);
      }
      ASSERT_CUDA(cudaMemcpy(found.data(), gpu_memory, memory.size(), cudaMemcpyDeviceToHost));
      ASSERT_EQ(std::memcmp(found.data(), memory.data(), memory.size()), 0) << rows << " rows of " << width << " B";
      ASSERT_CUDA(cudaMemcpy(found.data(), gpu_packed, packed.size(), cudaMemcpyDeviceToHost));
      ASSERT_EQ(std::memcmp(found.data(), packed.data(), packed.size()), 0) << rows << " rows of " << width << " B";
    }
  }
  EXPECT_GT(resident_jobs(), jobs / 2) << "of " << jobs;
  ASSERT_CUDA(cudaFree(gpu_memory));
  ASSERT_CUDA(cudaFree(gpu_packed));
}

/// From rows to rows, by one block, by all of them, and with several words a thread.
TEST_F(Resident, CopiesFromLayoutToLayout) {
  std::vector<char> source(size), destination(size), found(size);
  std::mt19937 random(static_cast<std::mt19937::result_type>(random_seed()));
  for (const layout::Offset width : {4, 8, 16, 48}) {
    for (const layout::Offset rows : {10, 100, 300, 1000}) {
      for (char& byte : source) byte = static_cast<char>(random());
      for (char& byte : destination) byte = static_cast<char>(random());
      ASSERT_CUDA(cudaMemcpy(memory_, source.data(), size, cudaMemcpyHostToDevice));
      ASSERT_CUDA(cudaMemcpy(packed_, destination.data(), size, cudaMemcpyHostToDevice));
      ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
      const layout::Offset from = width + 16, to = width + 32;
      const auto at_source = layout::repeat(layout::block(0, width), rows, from);
      const auto at_destination = layout::repeat(layout::block(0, width), rows, to);
      const pack::PairJob job{at_source.get(), {1, 0}, memory_, at_destination.get(), {1, 0}, packed_};
      resident_jobs();
      pack::Ticket ticket = engine_->submit({&job, 1}, 0);
      ASSERT_EQ(ticket.is_under_way() ? engine_->wait(ticket) : ticket.status, Status::ok) << runtime_->last_error();
      EXPECT_EQ(resident_jobs(), 1u) << rows << " rows of " << width << " B";
      for (layout::Offset row = 0; row < rows; ++row) {
        std::memcpy(destination.data() + row * to, source.data() + row * from, static_cast<std::size_t>(width));
      }
      ASSERT_CUDA(cudaMemcpy(found.data(), packed_, size, cudaMemcpyDeviceToHost));
      ASSERT_EQ(std::memcmp(found.data(), destination.data(), size), 0) << rows << " rows of " << width << " B";
    }
  }
}

TEST_F(Resident, LeavesToLaunchesWhatIsBehindTheDefaultStream) {
  ASSERT_NO_FATAL_FAILURE(expect_packs(0, true));  // preparing the first job may take longer than the stream is busy
  resident_jobs();
  ASSERT_CUDA(cudaLaunchHostFunc(
      cudaStreamLegacy, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  ASSERT_NO_FATAL_FAILURE(expect_packs(1, false));
  EXPECT_EQ(resident_jobs(), 0u);
}

/// Keeps a stream busy until it is told to end, or for 5 seconds.
void CUDART_CB wait_for_end(void* may_end) {
  const auto longest = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!static_cast<std::atomic<bool>*>(may_end)->load() && std::chrono::steady_clock::now() < longest) {
    std::this_thread::yield();
  }
}

/// With GAPLESS_RESIDENT=ready.
TEST_F(Resident, ReadyBuffersDoNotWaitForTheDefaultStream) {
  ASSERT_NO_FATAL_FAILURE(expect_packs(1, true));
  resident_jobs();
  std::atomic<bool> may_end{false};
  ASSERT_CUDA(cudaLaunchHostFunc(cudaStreamLegacy, wait_for_end, &may_end));
  const Job job = pack_of(*rows_);
  EXPECT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok) << runtime_->last_error();
  EXPECT_EQ(resident_jobs(), 1u);
  may_end = true;
  ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

/// Starts a kernel that ends in a fault, after which the context is of no use.
void start_fault() {
  constexpr const char* code = R"(
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry fault() { trap; }
  )";
  const auto load = device::cuda::driver_function<decltype(&cuModuleLoadData)>("cuModuleLoadData");
  const auto find = device::cuda::driver_function<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  const auto launch = device::cuda::driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  ASSERT_TRUE(load != nullptr && find != nullptr && launch != nullptr);
  CUmodule module = nullptr;
  CUfunction fault = nullptr;
  ASSERT_EQ(load(&module, code), CUDA_SUCCESS);
  ASSERT_EQ(find(&fault, module, "fault"), CUDA_SUCCESS);
  ASSERT_EQ(launch(fault, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, nullptr, nullptr), CUDA_SUCCESS);
}

/// What counts is that calls return, and say that they failed.
void expect_calls_to_fail_after_a_fault(pack::GpuEngine& engine, const Job& job) {
  ASSERT_EQ(engine.run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok);
  ASSERT_NO_FATAL_FAILURE(start_fault());
  Status status = Status::ok;
  for (int i = 0; i < 1000 && status == Status::ok; ++i) {
    status = engine.run_and_wait({&job, 1}, 0, Reach::this_gpu);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_EQ(status, Status::failed);
  EXPECT_EQ(engine.run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::failed);
  EXPECT_FALSE(std::string(device::runtime()->last_error()).empty());
}

/// With GAPLESS_RESIDENT=ready.
TEST_F(Resident, ReadyFailsAfterAFaultOfTheProgram) { expect_calls_to_fail_after_a_fault(*engine_, pack_of(*rows_)); }

TEST_F(Resident, FailsAfterAFaultOfTheProgram) { expect_calls_to_fail_after_a_fault(*engine_, pack_of(*rows_)); }

TEST_F(Resident, IsNotUsedByTheChildOfAFork) {
  ASSERT_NO_FATAL_FAILURE(expect_packs(1, true));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Job job = pack_of(*rows_);
    alarm(10);
    // CUDA is of no use in the child: what matters is that the call returns, and returns a failure.
    const Status status = engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu);
    _exit(status == Status::ok ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_NO_FATAL_FAILURE(expect_packs(2, true));
}

TEST_F(Resident, SeesWhatOthersWroteSinceItsLastJob) {
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(expect_packs(static_cast<char>(i), true)) << i;
}

TEST_F(Resident, DoesNotOvertakeTheDefaultStream) {
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(expect_packs(static_cast<char>(i), false)) << i;
}

TEST_F(Resident, StartsAgainAfterItHasRetired) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_packs(static_cast<char>(i), true)) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
}

/// All blocks help with the many rows; the kernel retires when it has not been needed for a while.
TEST_F(Resident, FewAndManyRowsInTurn) {
  resident_jobs();
  std::mt19937 random(static_cast<std::mt19937::result_type>(random_seed()));
  for (int i = 0; i < 100; ++i) {
    const auto& rows = random() % 2 == 0 ? *few_rows_ : *rows_;
    ASSERT_NO_FATAL_FAILURE(expect_packs(rows, static_cast<char>(i), true)) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
  }
  EXPECT_EQ(resident_jobs(), 100u);
}

TEST_F(Resident, LetsTheWholeGpuBeWaitedForAndMemoryBeFreed) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_packs(static_cast<char>(i), true)) << i;
    ASSERT_CUDA(cudaDeviceSynchronize());
    void* other = nullptr;
    ASSERT_CUDA(cudaMalloc(&other, 1 << 20));
    ASSERT_CUDA(cudaFree(other));
  }
}

TEST_F(Resident, AnotherThreadsWaitEndsWhileJobsKeepComing) {
  std::thread waiting([] {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  });
  const Job job = pack_of(*rows_);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok);
  waiting.join();
}

TEST_F(Resident, ServesManyThreadsAndHostMemory) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      char *memory = nullptr, *packed = nullptr;
      EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&memory), size), cudaSuccess);
      EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&packed), size), cudaSuccess);
      for (int i = 0; i < 500; ++i) {
        std::memset(memory, t * 50 + i % 50, size);
        const Job job{rows_.get(), {1, 0}, 0, rows_->size, Direction::pack, memory, packed};
        EXPECT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::beyond), Status::ok);
        const std::string expected(static_cast<std::size_t>(rows_->size), static_cast<char>(t * 50 + i % 50));
        if (std::memcmp(packed, expected.data(), expected.size()) != 0)
          ADD_FAILURE() << "thread " << t << ", job " << i;
      }
      cudaFreeHost(memory);
      cudaFreeHost(packed);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace gapless::tests

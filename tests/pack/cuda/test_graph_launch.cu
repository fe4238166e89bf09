// Kernels launched as graphs that are kept and changed: each launch must run its own kernel with its own parameters,
// whatever the graphs were before.
#include <gtest/gtest.h>

#include <random>

#include "cuda_test.hpp"
#include "pack/cuda/launch/graph_launch.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using pack::gpu::GraphLaunches;
using pack::gpu::KernelLaunch;
using pack::gpu::KernelParameter;

struct Large {
  std::uint32_t values[500];
};

__global__ void write_one(std::uint32_t* to, std::uint32_t value) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = value + blockIdx.x;
}

__global__ void write_many(std::uint32_t* to, const __grid_constant__ Large large) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 500) to[i] = large.values[i];
}

__global__ void write_late(std::uint32_t* to, std::uint32_t value, long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  *to = value;
}

template <class... Parameters>
CUfunction function_of(void (*kernel)(Parameters...)) {
  cudaFunction_t function = nullptr;
  EXPECT_EQ(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel)), cudaSuccess);
  return function;
}

class GraphLaunch : public ::testing::Test {
 protected:
  static constexpr std::size_t words = 4096;

  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaFree(nullptr));
    ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&memory_), words * sizeof *memory_));
    one_ = function_of(write_one);
    many_ = function_of(write_many);
  }
  void TearDown() override { cudaFreeHost(memory_); }

  void launch_and_wait(const KernelLaunch& launch) {
    ASSERT_CUDA(launches_.launch(launch, cudaStreamLegacy));
    ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  }
  void launch_one(std::uint32_t* to, std::uint32_t value, unsigned blocks, unsigned threads) {
    const KernelParameter parameters[] = {{&to, sizeof to}, {&value, sizeof value}};
    launch_and_wait({one_, blocks, threads, parameters});
  }
  /// Of which only the first `used` values matter.
  void launch_many(const Large& large, unsigned used) {
    const KernelParameter parameters[] = {{&memory_, sizeof memory_}, {&large, used * sizeof large.values[0]}};
    launch_and_wait({many_, 1, used, parameters});
  }

  std::uint32_t* memory_ = nullptr;
  CUfunction one_ = nullptr, many_ = nullptr;
  GraphLaunches launches_{0};
};

TEST_F(GraphLaunch, TheSameLaunchAgainChangesNothing) {
  for (int round = 0; round < 5; ++round) {
    memory_[0] = 0;
    launch_one(memory_, 7, 1, 1);
    EXPECT_EQ(memory_[0], 7u);
  }
  EXPECT_EQ(launches_.made(), 1u);
  EXPECT_EQ(launches_.changed(), 0u);
}

TEST_F(GraphLaunch, ANewGraphIsMadeOnlyUntilThereAreEnough) {
  for (std::uint32_t value = 1; value <= 100; ++value) {
    launch_one(memory_, value, 1, 1);
    EXPECT_EQ(memory_[0], value);
  }
  EXPECT_LE(launches_.made(), 16u);
  EXPECT_EQ(launches_.made() + launches_.changed(), 100u);
}

TEST_F(GraphLaunch, EachRunsItsOwnKernelWithItsOwnParameters) {
  std::mt19937_64 random(random_seed());
  Large large{};
  for (int round = 0; round < 500; ++round) {
    for (std::size_t i = 0; i < words; ++i) memory_[i] = ~0u;
    // Few different ones, so that many come again.
    const auto value = static_cast<std::uint32_t>(random() % 3);
    if (random() % 2 == 0) {
      const unsigned blocks = 1 + random() % 3, threads = 32 << random() % 2, at = random() % 2 * 1000;
      launch_one(memory_ + at, value, blocks, threads);
      for (unsigned i = 0; i < words; ++i) {
        const bool written = i >= at && i < at + blocks * threads;
        ASSERT_EQ(memory_[i], written ? value + (i - at) / threads : ~0u) << "round " << round << ", word " << i;
      }
    } else {
      const unsigned used = 100 + random() % 2 * 100;
      for (unsigned i = 0; i < 500; ++i) large.values[i] = i < used ? value + i : static_cast<std::uint32_t>(random());
      launch_many(large, used);
      for (unsigned i = 0; i < words; ++i) {
        ASSERT_EQ(memory_[i], i < used ? value + i : ~0u) << "round " << round << ", word " << i;
      }
    }
  }
  EXPECT_LT(launches_.made() + launches_.changed(), 500u) << "none came again";
}

TEST_F(GraphLaunch, ComesAfterWhatTheDefaultStreamHas) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    write_late<<<1, 1>>>(memory_, 1000 + round, 200'000);
    std::uint32_t value = round;
    const KernelParameter parameters[] = {{&memory_, sizeof memory_}, {&value, sizeof value}};
    ASSERT_CUDA(launches_.launch({one_, 1, 1, parameters}, cudaStreamLegacy));
    ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
    EXPECT_EQ(memory_[0], round);
  }
}

TEST_F(GraphLaunch, MakesGraphsWhileAStreamIsBeingCaptured) {
  cudaStream_t captured = nullptr, other = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  std::uint32_t value = 3;
  const KernelParameter parameters[] = {{&memory_, sizeof memory_}, {&value, sizeof value}};
  ASSERT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  const cudaError_t error = launches_.launch({one_, 1, 1, parameters}, other);
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(captured, &graph)) << "the capture was disturbed";
  if (graph != nullptr) cudaGraphDestroy(graph);
  ASSERT_CUDA(cudaStreamSynchronize(other));
  if (error == cudaSuccess) EXPECT_EQ(memory_[0], 3u);
  cudaStreamDestroy(captured);
  cudaStreamDestroy(other);
}

}  // namespace
}  // namespace gapless::tests

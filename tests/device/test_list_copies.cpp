// Lists that the GPU's copy engines move, on a real GPU: in order behind the program's work, and by kernels where the
// driver takes no such copies. That the bytes are right everywhere else is test_bus's.
#include <gtest/gtest.h>

#include <cstring>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

/// 60 runs from 20 000 to 20 059 bytes.
constexpr Offset run_count = 60, run_distance = 30'000;
Offset run_length(Offset i) { return 20'000 + i; }

class ListCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaSetDevice(0));
    runtime_ = device::runtime();
    ASSERT_NE(runtime_, nullptr) << device::why_unavailable();
    ASSERT_CUDA(cudaMalloc(&memory_, memory_bytes));
    ASSERT_CUDA(cudaMalloc(&source_, memory_bytes));
    ASSERT_CUDA(cudaMallocHost(&packed_, static_cast<std::size_t>(list_->size)));
    std::memset(packed_, 0, static_cast<std::size_t>(list_->size));
    std::vector<char> contents(memory_bytes);
    for (std::size_t i = 0; i < memory_bytes; ++i) contents[i] = byte_at(static_cast<Offset>(i));
    ASSERT_CUDA(cudaMemset(memory_, 0, memory_bytes));
    ASSERT_CUDA(cudaMemcpy(source_, contents.data(), memory_bytes, cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaDeviceSynchronize());
    runtime_->force_engine("dma");
  }
  void TearDown() override {
    if (runtime_ == nullptr) return;
    runtime_->force_engine("");
    EXPECT_CUDA(cudaGetLastError());
    EXPECT_CUDA(cudaFree(memory_));
    EXPECT_CUDA(cudaFree(source_));
    EXPECT_CUDA(cudaFreeHost(packed_));
  }

  Job job() const { return {list_.get(), {1, 0}, 0, list_->size, Direction::pack, memory_, packed_}; }

  /// A long chain in `stream`, the last of which writes what is packed.
  void keep_busy(cudaStream_t stream) {
    for (int i = 0; i < 200; ++i) ASSERT_CUDA(cudaMemsetAsync(memory_, i, memory_bytes, stream));
    ASSERT_CUDA(cudaMemcpyAsync(memory_, source_, memory_bytes, cudaMemcpyDeviceToDevice, stream));
  }

  void expect_packed() {
    const char* at = static_cast<const char*>(packed_);
    for (Offset i = 0; i < run_count; at += run_length(i++)) {
      for (Offset k = 0; k < run_length(i); ++k) ASSERT_EQ(at[k], byte_at(i * run_distance + k)) << i << ", " << k;
    }
  }

  device::Runtime* runtime_ = nullptr;

 private:
  static constexpr std::size_t memory_bytes = static_cast<std::size_t>(run_count * run_distance);

  static char byte_at(Offset offset) { return static_cast<char>(offset * 7 + offset / 251 + 1); }
  static LayoutPointer make_list() {
    std::vector<layout::Segment> runs;
    for (Offset i = 0; i < run_count; ++i) runs.push_back({i * run_distance, run_length(i)});
    return layout::segments(runs);
  }

  LayoutPointer list_ = make_list();
  void *memory_ = nullptr, *source_ = nullptr, *packed_ = nullptr;
};

TEST_F(ListCopies, WhatIsWaitedForComesAfterTheDefaultStreamsWork) {
  const Job packs = job();
  keep_busy(cudaStreamLegacy);
  ASSERT_EQ(runtime_->run_and_wait({&packs, 1}, 0, Reach::beyond), Status::ok) << runtime_->last_error();
  expect_packed();
}

TEST_F(ListCopies, AStreamsWorkComesBeforeAndAfter) {
  const Job packs = job();
  auto* const stream = static_cast<cudaStream_t>(runtime_->stream(0));
  keep_busy(stream);
  ASSERT_EQ(runtime_->run({&packs, 1}, 0, stream), Status::ok) << runtime_->last_error();
  ASSERT_CUDA(cudaMemsetAsync(packs.memory, 0, 1, stream)) << "too late to be packed";
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok) << runtime_->last_error();
  expect_packed();
}

TEST_F(ListCopies, TheDefaultStreamItselfGetsAKernel) {
  const Job packs = job();
  for (cudaStream_t legacy : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    keep_busy(legacy);
    ASSERT_EQ(runtime_->run({&packs, 1}, 0, legacy), Status::ok) << runtime_->last_error();
    ASSERT_EQ(runtime_->synchronize(0, legacy), Status::ok) << runtime_->last_error();
    expect_packed();
    std::memset(packs.packed, 0, static_cast<std::size_t>(packs.end));
  }
}

TEST_F(ListCopies, AGraphGetsAKernel) {
  const Job packs = job();
  CapturedGraph graph([&](cudaStream_t stream) {
    ASSERT_EQ(runtime_->run({&packs, 1}, 0, stream), Status::ok) << runtime_->last_error();
  });
  EXPECT_EQ(graph.node_count(), 1u);
  keep_busy(cudaStreamLegacy);
  ASSERT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  graph.replay();
  expect_packed();
}

TEST_F(ListCopies, WhatIsWaitedForLeavesACaptureAlone) {
  const Job packs = job();
  keep_busy(cudaStreamLegacy);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const CapturedGraph graph([&](cudaStream_t) {
    ASSERT_EQ(runtime_->run_and_wait({&packs, 1}, 0, Reach::beyond), Status::ok) << runtime_->last_error();
  });
  EXPECT_EQ(graph.node_count(), 0u);
  expect_packed();
}

}  // namespace
}  // namespace gapless::tests

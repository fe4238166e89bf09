// What only a real GPU can show: every kind of CUDA memory is told apart, captured work can be replayed, and the
// program's own CUDA state is left as it was.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using device::Status;
using pack::Direction;
using pack::Job;
using pack::Reach;

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaSetDevice(0));
    ASSERT_CUDA(cudaFree(nullptr));
    runtime_ = device::runtime();
    engine_ = pack::gpu_engine();
    ASSERT_NE(runtime_, nullptr) << device::why_unavailable();
  }

  device::Runtime* runtime_ = nullptr;
  pack::GpuEngine* engine_ = nullptr;
};

void expect_located(const void* pointer, MemoryKind kind) {
  EXPECT_EQ(device::locate(pointer).kind, kind);
  EXPECT_EQ(device::runtime()->locate(pointer).kind, kind) << "by the runtime";
}

TEST_F(Cuda, KindsOfMemoryAreToldApart) {
  void *plain = nullptr, *asynchronous = nullptr, *managed = nullptr, *pinned = nullptr;
  ASSERT_CUDA(cudaMalloc(&plain, 4096));
  ASSERT_CUDA(cudaMallocAsync(&asynchronous, 4096, nullptr));
  ASSERT_CUDA(cudaMallocManaged(&managed, 4096));
  ASSERT_CUDA(cudaMallocHost(&pinned, 4096));
  constexpr std::size_t large = 1 << 24;
  void* mapped = mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int local = 0;
  expect_located(plain, MemoryKind::device);
  expect_located(static_cast<char*>(plain) + 4095, MemoryKind::device);
  expect_located(asynchronous, MemoryKind::device);
  expect_located(managed, MemoryKind::managed);
  expect_located(pinned, MemoryKind::pinned);
  expect_located(mapped, MemoryKind::host);
  expect_located(&local, MemoryKind::host);
  EXPECT_EQ(device::locate(plain).device, 0);

  ASSERT_CUDA(cudaHostRegister(mapped, large, cudaHostRegisterDefault));
  EXPECT_EQ(runtime_->locate(mapped).kind, MemoryKind::pinned);
  EXPECT_NE(device::locate(mapped).kind, MemoryKind::device);
  ASSERT_CUDA(cudaHostUnregister(mapped));
  expect_located(mapped, MemoryKind::host);

  ASSERT_CUDA(cudaFree(plain));
  ASSERT_CUDA(cudaFreeAsync(asynchronous, nullptr));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  ASSERT_CUDA(cudaFree(managed));
  ASSERT_CUDA(cudaFreeHost(pinned));
  EXPECT_EQ(device::locate(plain).kind, MemoryKind::host) << "freed";
  EXPECT_EQ(device::locate(managed).kind, MemoryKind::host) << "freed";
  munmap(mapped, large);
}

TEST_F(Cuda, VirtualMemoryManagementIsDeviceMemory) {
  const VirtualMemory memory;
  expect_located(memory.begin() + 1000, MemoryKind::device);
}

TEST_F(Cuda, AThreadWithoutAContextGetsTheSameAnswers) {
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, 4096));
  const auto mapped = std::make_unique<char[]>(1 << 26);
  Location of_device, of_host;
  std::thread([&] {
    of_device = device::locate(memory);
    of_host = device::locate(mapped.get());
  }).join();
  EXPECT_EQ(of_device.kind, MemoryKind::device);
  EXPECT_EQ(of_host.kind, MemoryKind::host);
  ASSERT_CUDA(cudaFree(memory));
}

TEST_F(Cuda, ManagedMemoryPacksBothWays) {
  char *managed = nullptr, *packed = nullptr;
  ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&managed), 8000));
  ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&packed), 4000));
  for (int i = 0; i < 8000; ++i) managed[i] = static_cast<char>(i * 7 + i / 256);
  const auto rows = layout::repeat(layout::block(0, 4), 1000, 8);
  Job job{rows.get(), {1, 0}, 0, 4000, Direction::pack, managed, packed};
  void* stream = runtime_->stream(0);
  ASSERT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok) << runtime_->last_error();
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok) << runtime_->last_error();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(std::memcmp(packed + i * 4, managed + i * 8, 4), 0) << i;
  const std::vector<char> kept(managed, managed + 8000);
  std::memset(managed, 0, 8000);
  job.direction = Direction::unpack;
  ASSERT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok);
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok);
  for (int i = 0; i < 8000; ++i) ASSERT_EQ(managed[i], i % 8 < 4 ? kept[i] : 0) << i;
  ASSERT_CUDA(cudaFree(managed));
  ASSERT_CUDA(cudaFree(packed));
}

/// Pinned memory for `bytes` bytes that the GPU addresses directly, so that a test needs no copies.
std::shared_ptr<char> pinned_memory(std::size_t bytes) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMallocHost(&pointer, bytes), cudaSuccess);
  return {static_cast<char*>(pointer), [](char* memory) { cudaFreeHost(memory); }};
}

TEST_F(Cuda, CapturedWorkIsReplayedAfterItsLayoutIsGone) {
  const auto memory = pinned_memory(4096), packed = pinned_memory(64);
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed}) {
    // A fresh list, so that its description is uploaded during the capture.
    auto ragged =
        layout::segments(std::vector<layout::Segment>{{0, 8}, {16 + 8 * mode, 12}, {100, 4}, {200, 20}, {300, 20}});
    void* allocated = nullptr;
    const auto issue = [&](cudaStream_t stream) {
      const Job job{ragged.get(), {1, 0}, 0, 64, Direction::pack, memory.get(), packed.get()};
      EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok) << runtime_->last_error();
      EXPECT_EQ(runtime_->follow_default_stream(0, runtime_->stream(0)), Status::ok) << runtime_->last_error();
      EXPECT_EQ(device::locate(memory.get()).kind, MemoryKind::pinned);
      EXPECT_EQ(runtime_->allocate(MemoryKind::device, 0, 1 << 20, &allocated), Status::ok) << runtime_->last_error();
    };
    CapturedGraph graph(issue, mode);
    runtime_->release(MemoryKind::device, 0, allocated);
    const std::vector<layout::Segment> runs{{0, 8}, {16 + 8 * mode, 12}, {100, 4}, {200, 20}, {300, 20}};
    ragged.reset();
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 4096; ++i) memory.get()[i] = static_cast<char>(i * 13 + round);
      graph.replay();
      const char* at = packed.get();
      for (const auto& run : runs) {
        EXPECT_EQ(std::memcmp(at, memory.get() + run.offset, static_cast<std::size_t>(run.length)), 0);
        at += run.length;
      }
    }
  }
}

TEST_F(Cuda, CapturedBatchesAndCopiesAreReplayed) {
  const auto memory = pinned_memory(4096), packed = pinned_memory(1024), copied = pinned_memory(4096);
  // Fresh lists, so that their descriptions are uploaded during the capture, and gone before the replay.
  const std::vector<layout::Segment> runs{{0, 8}, {32, 12}, {100, 4}, {200, 20}, {300, 20}};
  auto ragged = layout::segments(runs);
  auto spread = layout::repeat(layout::block(0, 4), 16, 12);
  CapturedGraph graph([&](cudaStream_t stream) {
    std::vector<Job> jobs;
    for (int i = 0; i < 8; ++i) {
      jobs.push_back({ragged.get(), {1, 0}, 0, 64, Direction::pack, memory.get() + i * 400, packed.get() + i * 64});
    }
    EXPECT_EQ(engine_->run(jobs, 0, stream), Status::ok) << runtime_->last_error();
    const pack::PairJob copy{ragged.get(), {1, 0}, memory.get(), spread.get(), {1, 0}, copied.get()};
    EXPECT_EQ(engine_->copy(copy, 0, stream), Status::ok) << runtime_->last_error();
    const Job waits{spread.get(), {1, 0}, 0, 64, Direction::pack, memory.get(), packed.get() + 960};
    EXPECT_EQ(engine_->run_and_wait({&waits, 1}, 0, Reach::this_gpu), Status::ok) << runtime_->last_error();
  });
  ragged.reset();
  spread.reset();
  EXPECT_EQ(graph.node_count(), 2u) << "the batch and the copy";
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4096; ++i) memory.get()[i] = static_cast<char>(i * 13 + i / 256 + round);
    graph.replay();
    std::string expected;
    for (int i = 0; i < 8; ++i) {
      for (const auto& run : runs)
        expected.append(memory.get() + i * 400 + run.offset, static_cast<std::size_t>(run.length));
    }
    EXPECT_EQ(std::string(packed.get(), 512), expected);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(std::memcmp(copied.get() + i * 12, expected.data() + i * 4, 4), 0) << i;
  }
}

/// Byte i of large unpacks.
char large_byte(std::size_t i) { return static_cast<char>(i * 7 + i / 251); }

/// Runs `issue(job)` for an unpack from host memory that is long enough for chunks, and compares.
template <class Issue>
void expect_unpacked(const Issue& issue) {
  constexpr layout::Offset count = 60'000, length = 100, stride = 130;
  const auto rows = layout::repeat(layout::block(0, length), count, stride);
  const auto packed = pinned_memory(count * length), result = pinned_memory(count * stride);
  for (std::size_t i = 0; i < count * length; ++i) packed.get()[i] = large_byte(i);
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, count * stride));
  ASSERT_CUDA(cudaMemset(memory, 0, count * stride));
  ASSERT_CUDA(cudaDeviceSynchronize());
  issue(Job{rows.get(), {1, 0}, 0, rows->size, Direction::unpack, memory, packed.get()});
  ASSERT_CUDA(cudaMemcpy(result.get(), memory, count * stride, cudaMemcpyDeviceToHost));
  for (layout::Offset i = 0; i < count * stride; ++i) {
    const layout::Offset row = i / stride, column = i % stride;
    const char expected = column < length ? large_byte(static_cast<std::size_t>(row * length + column)) : '\0';
    ASSERT_EQ(result.get()[i], expected) << i;
  }
  ASSERT_CUDA(cudaFree(memory));
}

TEST_F(Cuda, InAGraphALargeUnpackIsOneKernel) {
  expect_unpacked([&](const Job& job) {
    CapturedGraph graph([&](cudaStream_t stream) {
      EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok) << runtime_->last_error();
    });
    EXPECT_EQ(graph.node_count(), 1u);
    graph.replay();
  });
}

TEST_F(Cuda, WhatIsWaitedForLeavesACaptureAlone) {
  const auto packed = pinned_memory(4096), waited = pinned_memory(4096);
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, 8192));
  ASSERT_CUDA(cudaMemset(memory, 5, 8192));
  const auto rows = layout::repeat(layout::block(0, 64), 64, 128);
  const Job captured{rows.get(), {1, 0}, 0, 4096, Direction::pack, memory, packed.get()};
  const Job waits{rows.get(), {1, 0}, 0, 4096, Direction::pack, memory, waited.get()};
  for (const unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
    for (const char* engine : {"kernel", "ahead", "dma"}) {
      SCOPED_TRACE(engine);
      std::memset(waited.get(), 0, 4096);
      const auto issue = [&](cudaStream_t stream) {
        EXPECT_EQ(engine_->run({&captured, 1}, 0, stream), Status::ok) << runtime_->last_error();
        engine_->force_engine(engine);
        EXPECT_EQ(engine_->run_and_wait({&waits, 1}, 0, Reach::beyond), Status::ok) << runtime_->last_error();
        engine_->force_engine("");
        EXPECT_EQ(std::string(waited.get(), 4096), std::string(4096, 5));
      };
      const CapturedGraph graph(issue, cudaStreamCaptureModeGlobal, flags);
      EXPECT_EQ(graph.node_count(), 1u) << "what is waited for is not in it";
    }
  }
  ASSERT_CUDA(cudaFree(memory));
}

TEST_F(Cuda, InACaptureALargeUnpackIsWaitedForToo) {
  expect_unpacked([&](const Job& job) {
    const auto issue = [&](cudaStream_t) {
      EXPECT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::from_beyond), Status::ok) << runtime_->last_error();
    };
    const CapturedGraph graph(issue, cudaStreamCaptureModeGlobal, cudaStreamNonBlocking);
    EXPECT_EQ(graph.node_count(), 0u);
  });
}

TEST_F(Cuda, ThreadsUnpackLargeJobsAtATime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 3; ++i) {
        expect_unpacked([this](const Job& job) {
          EXPECT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::from_beyond), Status::ok) << runtime_->last_error();
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Cuda, TheDefaultStreamIsFollowed) {
  // A long chain of copies on the default stream, the last of which writes what is packed.
  constexpr std::size_t large = std::size_t{256} << 20;
  char *from = nullptr, *to = nullptr;
  const auto packed = pinned_memory(4000);
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&from), large));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&to), large));
  ASSERT_CUDA(cudaMemset(from, 7, large));
  ASSERT_CUDA(cudaMemset(to, 0, large));
  std::memset(packed.get(), 0, 4000);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const auto rows = layout::repeat(layout::block(static_cast<layout::Offset>(large) - 8000, 4), 1000, 8);
  const Job job{rows.get(), {1, 0}, 0, 4000, Direction::pack, to, packed.get()};
  void* stream = runtime_->stream(0);
  for (int i = 0; i < 20; ++i) ASSERT_CUDA(cudaMemsetAsync(to, i, large, cudaStreamLegacy));
  ASSERT_CUDA(cudaMemcpyAsync(to, from, large, cudaMemcpyDeviceToDevice, cudaStreamLegacy));
  ASSERT_EQ(runtime_->follow_default_stream(0, stream), Status::ok) << runtime_->last_error();
  ASSERT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok) << runtime_->last_error();
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok);
  EXPECT_EQ(std::string(packed.get(), 4000), std::string(4000, 7));
  ASSERT_CUDA(cudaFree(from));
  ASSERT_CUDA(cudaFree(to));
}

TEST_F(Cuda, ManySparseRowsOfFewWordsAreExact) {
  // Tiles are run several a block, of a number that is no multiple, some with a second word for part of their threads;
  // the range begins and ends within rows.
  constexpr layout::Offset rows = 600'001, longest = 56, farthest = 72;
  std::vector<char> contents(rows * farthest);
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 2654435761U >> 13);
  char *memory = nullptr, *packed = nullptr;
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), contents.size()));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&packed), rows * longest));
  ASSERT_CUDA(cudaMemcpy(memory, contents.data(), contents.size(), cudaMemcpyHostToDevice));
  constexpr layout::Mode shapes[] = {{8, 64}, {20, 68}, {24, 68}, {28, 68}, {40, 72}, {48, 72}, {56, 72}};
  for (const auto [length, stride] : shapes) {
    SCOPED_TRACE(std::to_string(length) + " B every " + std::to_string(stride) + " B");
    const layout::Offset first = 4, last = rows * length - 2;
    ASSERT_CUDA(cudaMemset(packed, 0, rows * longest));
    const auto strided = layout::repeat(layout::block(0, length), rows, stride);
    const Job job{strided.get(), {1, 0}, first, last, Direction::pack, memory, packed + first};
    ASSERT_EQ(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu), Status::ok) << runtime_->last_error();
    std::vector<char> found(rows * longest), wanted(rows * longest);
    for (layout::Offset k = first; k < last; ++k) {
      wanted[static_cast<std::size_t>(k)] = contents[static_cast<std::size_t>(k / length * stride + k % length)];
    }
    ASSERT_CUDA(cudaMemcpy(found.data(), packed, found.size(), cudaMemcpyDeviceToHost));
    EXPECT_TRUE(found == wanted);
  }
  ASSERT_CUDA(cudaFree(memory));
  ASSERT_CUDA(cudaFree(packed));
}

TEST_F(Cuda, TheProgramsOwnStateIsLeftAlone) {
  int devices = 0, current = -1;
  ASSERT_CUDA(cudaGetDeviceCount(&devices));
  ASSERT_CUDA(cudaSetDevice(devices - 1));
  void* pointer = nullptr;
  EXPECT_EQ(runtime_->allocate(MemoryKind::device, 0, std::size_t{1} << 50, &pointer), Status::out_of_memory);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an error of ours must not be found by the program";
  EXPECT_EQ(runtime_->copy(nullptr, nullptr, 8, 0, runtime_->stream(0)), Status::failed);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_NE(runtime_->allocate(MemoryKind::device, 99, 64, &pointer), Status::ok) << "no such GPU";
  ASSERT_CUDA(cudaGetDevice(&current));
  EXPECT_EQ(current, devices - 1);
}

TEST_F(Cuda, MoreThan4GiBAreExact) {
  // 5 GiB of packed bytes in blocks of 5, which forces single bytes, into 8 GiB: both sides pass 2^32.
  constexpr layout::Offset count = layout::Offset{1} << 30;
  std::size_t free_bytes = 0, all_bytes = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
  if (free_bytes < (std::size_t{14} << 30))
    GTEST_SKIP() << "needs 14 GiB of GPU memory, " << (free_bytes >> 30) << " are free";
  char *memory = nullptr, *packed = nullptr;
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), count * 8));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&packed), count * 5));
  ASSERT_CUDA(cudaMemset(memory, 0, count * 8));
  ASSERT_CUDA(cudaMemset(packed, 0, count * 5));
  const auto rows = layout::repeat(layout::block(0, 5), count, 8);
  void* stream = runtime_->stream(0);
  for (const layout::Offset row : {layout::Offset{0}, count / 2 + 12345, count - 1}) {
    char mark[5] = {1, 2, 3, 4, static_cast<char>(row % 101)};
    ASSERT_CUDA(cudaMemcpy(memory + row * 8, mark, 5, cudaMemcpyHostToDevice));
    const Job job{rows.get(), {1, 0}, 0, rows->size, Direction::pack, memory, packed};
    ASSERT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok) << runtime_->last_error();
    ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok) << runtime_->last_error();
    char found[5] = {};
    ASSERT_CUDA(cudaMemcpy(found, packed + row * 5, 5, cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::memcmp(found, mark, 5), 0) << "row " << row;
  }
  ASSERT_CUDA(cudaFree(memory));
  ASSERT_CUDA(cudaFree(packed));
}

}  // namespace
}  // namespace gapless::tests

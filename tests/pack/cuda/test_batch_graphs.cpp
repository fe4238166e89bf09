// Large batches in CUDA graphs: one kernel, with a table that lives as long as the graph. Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::tests {
namespace {

using device::Status;
using pack::Direction;
using pack::Job;

/// Jobs on memory that CPU and GPU address: even ones pack rows, odd ones a ragged list.
class Jobs {
 public:
  static constexpr std::size_t span = 256, packed = 64;

  explicit Jobs(std::size_t count) : count_(count), memory_(pinned(count * span)), packed_(pinned(count * packed)) {
    rows_ = layout::repeat(layout::block(0, 4), 16, 12);
    ragged_ = layout::segments(runs_);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& layout = i % 2 == 0 ? rows_ : ragged_;
      jobs_.push_back(
          {layout.get(), {1, 0}, 0, packed, Direction::pack, memory_.get() + i * span, packed_.get() + i * packed});
    }
  }

  const std::vector<Job>& list() const { return jobs_; }
  void forget_layouts() {
    rows_.reset();
    ragged_.reset();
  }

  void refill(int round) {
    for (std::size_t i = 0; i < count_ * span; ++i) {
      memory_.get()[i] = static_cast<char>(i * 13 + i / 251 + static_cast<std::size_t>(round) * 5);
    }
    std::memset(packed_.get(), 0, count_ * packed);
  }
  void expect_packed() const {
    for (std::size_t i = 0; i < count_; ++i) {
      const char *from = memory_.get() + i * span, *to = packed_.get() + i * packed;
      if (i % 2 == 0) {
        for (int row = 0; row < 16; ++row) ASSERT_EQ(std::memcmp(to + row * 4, from + row * 12, 4), 0) << "job " << i;
        continue;
      }
      for (const layout::Segment& run : runs_) {
        ASSERT_EQ(std::memcmp(to, from + run.offset, static_cast<std::size_t>(run.length)), 0) << "job " << i;
        to += run.length;
      }
    }
  }

 private:
  static std::shared_ptr<char> pinned(std::size_t bytes) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMallocHost(&pointer, bytes), cudaSuccess);
    return {static_cast<char*>(pointer), [](char* memory) { cudaFreeHost(memory); }};
  }

  std::size_t count_;
  std::shared_ptr<char> memory_, packed_;
  const std::vector<layout::Segment> runs_{{0, 8}, {32, 12}, {100, 4}, {140, 20}, {200, 20}};
  layout::LayoutPointer rows_, ragged_;
  std::vector<Job> jobs_;
};

class BatchGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_CUDA(cudaSetDevice(0));
    runtime_ = device::runtime();
    engine_ = pack::gpu_engine();
    ASSERT_NE(runtime_, nullptr) << device::why_unavailable();
  }

  auto issuing(const Jobs& jobs) {
    return [&](cudaStream_t stream) {
      EXPECT_EQ(engine_->run(jobs.list(), 0, stream), Status::ok) << runtime_->last_error();
    };
  }
  void run_and_compare(Jobs& jobs, int round) {
    void* const stream = runtime_->stream(0);
    jobs.refill(round);
    ASSERT_EQ(engine_->run(jobs.list(), 0, stream), Status::ok) << runtime_->last_error();
    ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok) << runtime_->last_error();
    jobs.expect_packed();
  }

  device::Runtime* runtime_ = nullptr;
  pack::GpuEngine* engine_ = nullptr;
};

TEST_F(BatchGraphs, AreOneKernelWhoseTableNobodyElseGets) {
  for (const std::size_t count : {257, 1000, 5000}) {
    Jobs jobs(count);
    CapturedGraph graph(issuing(jobs));
    EXPECT_EQ(graph.node_count(), 1u) << count << " jobs";
    graph.keep_only_what_is_launched();
    jobs.forget_layouts();
    for (int round = 0; round < 3; ++round) {
      // As many others as use all memory for tables, and more.
      for (int i = 0; i < 6; ++i) {
        Jobs others(400);
        ASSERT_NO_FATAL_FAILURE(run_and_compare(others, i));
      }
      jobs.refill(round);
      graph.replay(2);
      ASSERT_NO_FATAL_FAILURE(jobs.expect_packed()) << count << " jobs, round " << round;
    }
  }
}

TEST_F(BatchGraphs, GiveTheirMemoryBack) {
  const Jobs jobs(5000);
  std::size_t free_before = 0, free_after = 0, all = 0;
  for (int i = 0; i < 220; ++i) {
    CapturedGraph(issuing(jobs)).keep_only_what_is_launched();
    // What was there before the first is not counted, and some graphs may stay the driver's.
    if (i == 20) {
      ASSERT_CUDA(cudaMemGetInfo(&free_before, &all));
    }
  }
  ASSERT_CUDA(cudaMemGetInfo(&free_after, &all));
  constexpr std::size_t of_200_tables = std::size_t{60} << 20;
  EXPECT_LT(free_before - std::min(free_before, free_after), of_200_tables / 2);
}

}  // namespace
}  // namespace gapless::tests

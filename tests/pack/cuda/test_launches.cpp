// What the launches of a call complete, and what they say of it. No kernel is started.
#include <gtest/gtest.h>

#include <vector>

#include "layout/algebra/canonical.hpp"
#include "noted_launches.hpp"
#include "pack/cuda/launches.hpp"
#include "pack/gpu/batch/issue.hpp"

namespace gapless::pack::gpu {
namespace {

std::vector<Completion> completed;  ///< by each launch

}  // namespace

cudaError_t launched(const Completion& completion) noexcept {
  completed.push_back(completion);
  return cudaSuccess;
}

namespace {

class LaunchesTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { completed.clear(); }

  /// That the last launch, and no other, completes what the call is to complete, and that the call says so.
  void expect_said(const Launches& launches) const {
    ASSERT_FALSE(completed.empty());
    EXPECT_TRUE(launches.is_under_way());
    EXPECT_EQ(launches.completes(), GetParam());
    for (const Completion& completion : completed) {
      EXPECT_EQ(completion.flag, &completion == &completed.back() ? completion_.flag : nullptr);
    }
  }

  void* address(std::size_t bytes) { return reinterpret_cast<void*>((std::uintptr_t{1} << 40) + bytes); }
  std::vector<Job> jobs(std::size_t count) {
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back({rows_.get(), {1, 0}, 0, 64, Direction::pack, address(i << 12), address(i << 12 | 1 << 11)});
    }
    return jobs;
  }
  std::vector<PairJob> pair_jobs(std::size_t count) {
    std::vector<PairJob> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back({rows_.get(), {1, 0}, address(i << 12), spread_.get(), {1, 0}, address(i << 12 | 1 << 11)});
    }
    return jobs;
  }
  template <class Jobs>
  void expect_issued(const Jobs& jobs) {
    Launches launches(memory_, 0, Queue(nullptr), completion_);
    completed.clear();
    ASSERT_EQ(issue(planner_, jobs, 0, launches), device::Status::ok);
    expect_said(launches);
  }

  std::uint32_t flag_ = 0, arrived_ = 0;
  const Completion completion_ = GetParam() ? Completion{&arrived_, &flag_} : Completion{};
  const layout::LayoutPointer rows_ = layout::repeat(layout::block(0, 4), 16, 12),
                              spread_ = layout::repeat(layout::block(0, 8), 8, 24);
  LaunchMemory memory_{1 << 20};
  Planner planner_{memory_.descriptors};
};

TEST_P(LaunchesTest, OfJobs) {
  for (const std::size_t count : {1, 2, 256}) {
    SCOPED_TRACE(count);
    ASSERT_NO_FATAL_FAILURE(expect_issued(std::span<const Job>(jobs(count))));
  }
}

TEST_P(LaunchesTest, OfCopiesBetweenLayouts) {
  for (const std::size_t count : {1, 2, 70}) {
    SCOPED_TRACE(count);
    ASSERT_NO_FATAL_FAILURE(expect_issued(std::span<const PairJob>(pair_jobs(count))));
  }
}

INSTANTIATE_TEST_SUITE_P(Completion, LaunchesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "IsWanted" : "IsNotWanted"; });

}  // namespace
}  // namespace gapless::pack::gpu

// Which engine is chosen on an idle GPU, on either side of the boundaries, and what is learnt beside a busy program: on
// a GPU whose clock is a few numbers.
#include <gtest/gtest.h>

#include "layout/algebra/canonical.hpp"
#include "pack/gpu/route/route.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;

constexpr std::int64_t us = 1000;

Movement rows(Traffic traffic, std::uint64_t bytes, std::uint64_t row, int copies = 1) {
  return {traffic, bytes / row * row, bytes / row, copies};
}

TEST(Engine, KernelsWithinAGpu) {
  for (const std::uint64_t row : {8, 4096}) {
    EXPECT_EQ(choose_engine(rows(Traffic::within_gpu, 1 << 20, row), {}), Engine::kernel);
    EXPECT_EQ(choose_issued_engine(rows(Traffic::within_gpu, 1 << 20, row)), Engine::kernel);
  }
}

TEST(Engine, CopiesOverTheBusForLongRows) {
  for (const Traffic traffic : {Traffic::to_host, Traffic::from_host}) {
    EXPECT_EQ(choose_engine(rows(traffic, 16 << 20, 4096), {}), Engine::copies);
    EXPECT_EQ(choose_engine(rows(traffic, 16 << 10, 4096), {}), Engine::kernel) << "kernels start sooner";
    EXPECT_EQ(choose_engine(rows(traffic, 1 << 20, 8), {}), Engine::kernel) << "a row takes a copy engine a nanosecond";
    EXPECT_EQ(choose_engine(rows(traffic, 1 << 20, 4096, 8), {}), Engine::kernel) << "too many to start";
    EXPECT_EQ(choose_engine(rows(traffic, 1 << 20, 4096, 0), {}), Engine::kernel) << "there are none";
    EXPECT_EQ(choose_issued_engine(rows(traffic, 16 << 20, 4096)), Engine::copies);
    EXPECT_EQ(choose_issued_engine(rows(traffic, 2 << 20, 4096)), Engine::copies)
        << "as good, and need no multiprocessor";
    EXPECT_EQ(choose_issued_engine(rows(traffic, 64 << 10, 4096)), Engine::kernel) << "kernels follow each other fast";
  }
}

TEST(Engine, RowsThatSplitSectorsAreForKernels) {
  for (const Traffic traffic : {Traffic::to_host, Traffic::from_host}) {
    EXPECT_EQ(choose_engine(rows(traffic, 16 << 20, 256), {}), Engine::copies);
    EXPECT_EQ(choose_engine(rows(traffic, 16 << 20, 250), {}), Engine::kernel);
    EXPECT_EQ(choose_issued_engine(rows(traffic, 16 << 20, 250)), Engine::kernel);
  }
}

TEST(Engine, ChunksAreForShortRows) {
  Movement movement = rows(Traffic::from_host, 16 << 20, 128);
  movement.in_chunks = true;
  EXPECT_EQ(choose_engine(movement, {}), Engine::kernel);
  EXPECT_EQ(choose_issued_engine(movement), Engine::kernel);
  movement.rows /= 32;
  EXPECT_EQ(choose_engine(movement, {}), Engine::copies);
  EXPECT_EQ(choose_issued_engine(movement), Engine::copies);
}

TEST(Engine, SectionsAreForKernelsBehindWhichTheNextIsIssued) {
  for (const Traffic traffic : {Traffic::to_host, Traffic::from_host}) {
    Movement movement = rows(traffic, 2 << 20, 4096);
    EXPECT_EQ(choose_engine(movement, {}), Engine::copies);
    movement.is_section = true;
    EXPECT_EQ(choose_engine(movement, {}), Engine::kernel);
    constexpr Delays busy{20 * us, 20 * us, 0};
    EXPECT_EQ(choose_engine(movement, busy), Engine::copies) << "multiprocessors are not to be had";
  }
}

TEST(Engine, WhatIsForcedWherePossible) {
  const Movement within = rows(Traffic::within_gpu, 4096, 64), none = rows(Traffic::to_host, 4096, 64, 0);
  EXPECT_EQ(choose_engine(within, {}, Engine::copies), Engine::copies);
  EXPECT_EQ(choose_engine(within, {}, Engine::high_priority), Engine::high_priority);
  EXPECT_EQ(choose_engine(none, {}, Engine::copies), Engine::kernel);
  EXPECT_EQ(choose_engine(rows(Traffic::to_host, 4096, 4096), {}, Engine::kernel), Engine::kernel);
  EXPECT_EQ(choose_issued_engine(within, Engine::copies), Engine::copies);
  EXPECT_EQ(choose_issued_engine(within, Engine::high_priority), Engine::kernel) << "the stream is the caller's";
  EXPECT_EQ(engine_named("dma"), Engine::copies);
  EXPECT_EQ(engine_named("ahead"), Engine::high_priority);
  EXPECT_EQ(engine_named("kernel"), Engine::kernel);
  EXPECT_FALSE(engine_named("copies"));
}

/// A GPU on which each engine takes what is expected, times a pace, and waits for what it has to.
class FakeGpu {
 public:
  std::int64_t wait[engine_count] = {};  ///< for what others do
  std::int64_t wait_for_stream = 0;      ///< for the program's own work in the stream
  double pace = 1;
  int chosen[engine_count] = {};
  int asked = 0;

  Engine run(const Movement& movement) {
    const Engine engine = choose_engine(movement, contention_.delays(movement));
    Before before = Before::unknown;
    if (contention_.should_ask(engine, movement)) {
      before = wait_for_stream > 0 ? Before::busy : Before::idle;
      ++asked;
    }
    const auto expected = static_cast<double>(expected_ns(engine, movement));
    const auto i = static_cast<std::size_t>(engine);
    contention_.note(engine, movement, static_cast<std::int64_t>(expected * pace) + wait[i] + wait_for_stream, before);
    ++chosen[i];
    return engine;
  }
  void run(const Movement& movement, int times) {
    for (int i = 0; i < times; ++i) run(movement);
  }
  int times(Engine engine) const { return chosen[static_cast<std::size_t>(engine)]; }
  std::int64_t& waiting(Engine engine) { return wait[static_cast<std::size_t>(engine)]; }
  void forget_counts() { asked = chosen[0] = chosen[1] = chosen[2] = 0; }

 private:
  ContentionEstimator contention_;
};

const Movement packs_in_gpu = rows(Traffic::within_gpu, 2 << 20, 8, 0);
const Movement short_rows = rows(Traffic::to_host, 2 << 20, 8), long_rows = rows(Traffic::to_host, 2 << 20, 4096);

/// As measured beside a kernel of 500 us in many short blocks.
void fill_multiprocessors(FakeGpu& gpu) {
  gpu.waiting(Engine::kernel) = 500 * us;
  gpu.waiting(Engine::high_priority) = 13 * us;
}

TEST(Contention, TwoLateRunsAndKernelsGoAhead) {
  for (const Movement& movement : {packs_in_gpu, short_rows}) {
    FakeGpu gpu;
    fill_multiprocessors(gpu);
    gpu.run(movement, 100);
    EXPECT_EQ(gpu.times(Engine::kernel), 2);
    EXPECT_EQ(gpu.times(Engine::high_priority), 98);
  }
}

TEST(Contention, KernelsAreTriedSeldomWhileTheBurdenLasts) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 10'000);
  EXPECT_GE(gpu.times(Engine::kernel), 5);
  EXPECT_LE(gpu.times(Engine::kernel), 20);
  EXPECT_EQ(gpu.times(Engine::copies), 0);
}

TEST(Contention, KernelsComeBackWhenTheBurdenEnds) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 100);
  gpu.waiting(Engine::kernel) = gpu.waiting(Engine::high_priority) = 0;
  gpu.run(packs_in_gpu, 2000);
  gpu.forget_counts();
  gpu.run(packs_in_gpu, 1000);
  EXPECT_EQ(gpu.times(Engine::kernel), 1000);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Contention, BusyMultiprocessorsAreNothingToCopies) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(long_rows, 10'000);
  EXPECT_EQ(gpu.times(Engine::copies), 10'000);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Contention, CopiesBehindTheProgramsOwnGiveWayToKernels) {
  FakeGpu gpu;
  gpu.waiting(Engine::copies) = 600 * us;
  gpu.waiting(Engine::kernel) = gpu.waiting(Engine::high_priority) = 14 * us;
  gpu.run(long_rows, 250);
  EXPECT_EQ(gpu.times(Engine::copies), 2);
  EXPECT_EQ(gpu.times(Engine::kernel), 248);
  gpu.waiting(Engine::copies) = 0;
  gpu.run(long_rows, 2000);
  gpu.forget_counts();
  gpu.run(long_rows, 100);
  EXPECT_EQ(gpu.times(Engine::copies), 100);
}

TEST(Contention, WhereAllAreLateTheLeastLateIsTaken) {
  FakeGpu gpu;
  gpu.waiting(Engine::kernel) = 1000 * us;
  gpu.waiting(Engine::high_priority) = 900 * us;
  gpu.run(short_rows, 1000);
  EXPECT_GE(gpu.times(Engine::copies), 950) << "slow, but in time";
}

TEST(Contention, WhenOneBecomesLateTheOthersGetATrial) {
  FakeGpu gpu;
  gpu.waiting(Engine::copies) = 5000 * us;
  gpu.run(long_rows, 50);
  EXPECT_EQ(gpu.times(Engine::copies), 2);
  gpu.waiting(Engine::copies) = 0;
  fill_multiprocessors(gpu);
  gpu.forget_counts();
  gpu.run(long_rows, 50);
  EXPECT_EQ(gpu.times(Engine::kernel), 2);
  EXPECT_EQ(gpu.times(Engine::copies), 48);
}

TEST(Contention, NoiseOfTwoIsNone) {
  FakeGpu gpu;
  for (int i = 0; i < 1000; ++i) {
    gpu.pace = i % 3 == 0 ? 2 : 1;
    for (const Movement& movement : {packs_in_gpu, short_rows}) EXPECT_EQ(gpu.run(movement), Engine::kernel);
    EXPECT_EQ(gpu.run(long_rows), Engine::copies);
  }
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Contention, OneLateRunIsNone) {
  FakeGpu gpu;
  for (int i = 0; i < 1000; ++i) {
    gpu.waiting(Engine::kernel) = i % 10 == 0 ? 500 * us : 0;
    EXPECT_EQ(gpu.run(packs_in_gpu), Engine::kernel);
  }
}

TEST(Contention, WaitingForTheProgramsOwnWorkIsNotLate) {
  FakeGpu gpu;
  gpu.wait_for_stream = 500 * us;
  gpu.run(packs_in_gpu, 10'000);
  EXPECT_EQ(gpu.times(Engine::kernel), 10'000);
  EXPECT_LE(gpu.asked, 14) << "and the stream is asked less and less often";
}

TEST(Contention, ASlowerMachineIsLateOnlyUntilThatIsKnown) {
  FakeGpu gpu;
  gpu.pace = 4;
  gpu.run(short_rows, 2000);
  EXPECT_EQ(gpu.times(Engine::copies), 0) << "they are as much slower";
  gpu.forget_counts();
  gpu.run(short_rows, 100);
  EXPECT_EQ(gpu.times(Engine::kernel), 100);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Contention, KindsOfMovementsAreApart) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 10);
  EXPECT_EQ(gpu.run(packs_in_gpu), Engine::high_priority);
  gpu.waiting(Engine::kernel) = 0;
  EXPECT_EQ(gpu.run(rows(Traffic::within_gpu, 4096, 8, 0)), Engine::kernel) << "smaller";
  EXPECT_EQ(gpu.run(short_rows), Engine::kernel) << "another way";
}

TEST(Router, RoutesByReachAndNumbers) {
  const auto long_row = layout::repeat(layout::block(0, 4096), 1024, 8192);
  const auto far_apart = layout::repeat(layout::block(0, 8), 1 << 19, 512);
  const auto job = [](const layout::LayoutPointer& layout, pack::Direction direction, layout::Mode outer = {1, 0}) {
    return pack::Job{layout.get(), outer, 0, layout->size * outer.count, direction, nullptr, nullptr};
  };
  const Router router{std::nullopt};
  const auto waited = [&](const pack::Job& wanted, pack::Reach reach) {
    return router.route_waited({&wanted, 1}, 0, reach);
  };
  const pack::Job packs = job(long_row, pack::Direction::pack), unpacks = job(long_row, pack::Direction::unpack);
  EXPECT_EQ(waited(packs, pack::Reach::beyond).engine, Engine::copies);
  EXPECT_EQ(waited(packs, pack::Reach::this_gpu).engine, Engine::kernel);
  EXPECT_EQ(waited(unpacks, pack::Reach::from_beyond).engine, Engine::copies);
  EXPECT_EQ(waited(unpacks, pack::Reach::this_gpu).engine, Engine::kernel);
  EXPECT_EQ(waited(job(far_apart, pack::Direction::pack), pack::Reach::beyond).engine, Engine::kernel);
  EXPECT_EQ(router.route_waited({&packs, 1}, 0, pack::Reach::beyond, true).engine, Engine::kernel) << "a section";
  const pack::Job two[] = {packs, packs};
  EXPECT_EQ(router.route_waited(two, 0, pack::Reach::beyond).engine, Engine::kernel) << "one launch for all";
  const device::Location pinned{device::MemoryKind::pinned, 0}, on_gpu{device::MemoryKind::device, 0};
  EXPECT_EQ(router.route_issued(packs, pinned).engine, Engine::copies);
  EXPECT_EQ(router.route_issued(packs, on_gpu).engine, Engine::kernel);
  EXPECT_TRUE(router.has_choice(packs));
  EXPECT_FALSE(router.has_choice(job(layout::block(0, 4096), pack::Direction::pack)));
  EXPECT_TRUE(Router{Engine::copies}.has_choice(job(layout::block(0, 4096), pack::Direction::pack)));
}

pack::Job list_job(const layout::LayoutPointer& list, pack::Direction direction) {
  return {list.get(), {1, 0}, 0, list->size, direction, nullptr, nullptr};
}

TEST(Router, FewLongRunsOfAListAreCopiedSingly) {
  const Router router{std::nullopt};
  for (const layout::Offset count : {most_copies, most_copies + 1}) {
    std::vector<layout::Segment> runs;
    for (layout::Offset i = 0; i < count; ++i) runs.push_back({i << 23, (4 << 20) - i});
    const auto list = layout::segments(runs);
    const bool are_few = count == most_copies;
    for (const auto direction : {pack::Direction::pack, pack::Direction::unpack}) {
      const pack::Job job = list_job(list, direction);
      const auto reach = direction == pack::Direction::pack ? pack::Reach::beyond : pack::Reach::from_beyond;
      const Route route = router.route_waited({&job, 1}, 0, reach);
      EXPECT_EQ(route.engine, are_few ? Engine::copies : Engine::kernel);
      EXPECT_EQ(route.movement.copies, are_few ? count : 0);
      EXPECT_EQ(router.route_waited({&job, 1}, 0, pack::Reach::this_gpu).engine, Engine::kernel);
    }
  }
}

}  // namespace
}  // namespace gapless::tests

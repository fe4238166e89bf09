// Which engine is chosen on an idle GPU, on either side of the boundaries, and what is learnt beside a busy program: on
// a GPU whose clock is a few numbers.
#include <gtest/gtest.h>

#include "layout/canonical.hpp"
#include "pack/cuda/route.hpp"

namespace gapless::tests {
namespace {

using namespace pack::cuda;

constexpr std::int64_t us = 1000;

Movement rows(Traffic traffic, std::uint64_t bytes, std::uint64_t row, int copies = 1) {
  return {traffic, bytes / row * row, bytes / row, copies};
}

Movement runs(Traffic traffic, int count, std::uint64_t length) {
  Movement movement = rows(traffic, static_cast<std::uint64_t>(count) * length, length, count);
  movement.by_runs = true;
  return movement;
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

TEST(Engine, CopiesOfRunsWhereTheyAreFewAndLong) {
  for (const Traffic traffic : {Traffic::to_host, Traffic::from_host}) {
    EXPECT_EQ(choose_engine(runs(traffic, 4, 1 << 20), {}), Engine::copies);
    EXPECT_EQ(choose_engine(runs(traffic, 32, 64 << 10), {}), Engine::kernel);
    EXPECT_EQ(choose_engine(runs(traffic, 512, 4096), {}), Engine::kernel);
    EXPECT_EQ(choose_engine(runs(traffic, 0, 4096), {}, Engine::copies), Engine::kernel) << "there are none";
    EXPECT_EQ(choose_engine(runs(traffic, 512, 16), {}, Engine::copies), Engine::copies) << "forced";
    EXPECT_EQ(choose_issued_engine(runs(traffic, 32, 1 << 20)), Engine::copies);
    EXPECT_EQ(choose_issued_engine(runs(traffic, 512, 64 << 10)), Engine::kernel) << "the calls take the CPU too long";
  }
}

TEST(Engine, RunsTakeTheCallsAndTheCopiesThatDoNotCoincide) {
  const auto grows_by = [](const Movement& less, const Movement& more) {
    return expected_ns(Engine::copies, more) - expected_ns(Engine::copies, less);
  };
  for (const Traffic traffic : {Traffic::to_host, Traffic::from_host}) {
    EXPECT_NEAR(grows_by(runs(traffic, 100, 256 << 10), runs(traffic, 200, 256 << 10)), 100 * 4750, 5000) << "copies";
  }
  EXPECT_NEAR(grows_by(runs(Traffic::to_host, 100, 64), runs(Traffic::to_host, 200, 64)), 100 * 420, 100) << "calls";
  EXPECT_NEAR(grows_by(runs(Traffic::from_host, 100, 64), runs(Traffic::from_host, 200, 64)), 100 * 1000, 1000);
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

TEST(Engine, WhatIsForcedWherePossible) {
  const Movement within = rows(Traffic::within_gpu, 4096, 64), none = rows(Traffic::to_host, 4096, 64, 0);
  EXPECT_EQ(choose_engine(within, {}, Engine::copies), Engine::copies);
  EXPECT_EQ(choose_engine(within, {}, Engine::ahead), Engine::ahead);
  EXPECT_EQ(choose_engine(none, {}, Engine::copies), Engine::kernel);
  EXPECT_EQ(choose_engine(rows(Traffic::to_host, 4096, 4096), {}, Engine::kernel), Engine::kernel);
  EXPECT_EQ(choose_issued_engine(within, Engine::copies), Engine::copies);
  EXPECT_EQ(choose_issued_engine(within, Engine::ahead), Engine::kernel) << "the stream is the caller's";
  EXPECT_EQ(engine_named("dma"), Engine::copies);
  EXPECT_EQ(engine_named("ahead"), Engine::ahead);
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
    const Engine engine = choose_engine(movement, punctuality_.delays(movement));
    Before before = Before::unknown;
    if (punctuality_.should_ask(engine, movement)) {
      before = wait_for_stream > 0 ? Before::busy : Before::idle;
      ++asked;
    }
    const auto expected = static_cast<double>(expected_ns(engine, movement));
    const auto i = static_cast<std::size_t>(engine);
    punctuality_.note(engine, movement, static_cast<std::int64_t>(expected * pace) + wait[i] + wait_for_stream, before);
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
  Punctuality punctuality_;
};

const Movement packs_in_gpu = rows(Traffic::within_gpu, 2 << 20, 8, 0);
const Movement short_rows = rows(Traffic::to_host, 2 << 20, 8), long_rows = rows(Traffic::to_host, 2 << 20, 4096);

const Movement list = runs(Traffic::to_host, 100, 4096);

/// As measured beside a kernel of 500 us in many short blocks.
void fill_multiprocessors(FakeGpu& gpu) {
  gpu.waiting(Engine::kernel) = 500 * us;
  gpu.waiting(Engine::ahead) = 13 * us;
}

TEST(Punctuality, TwoLateRunsAndKernelsGoAhead) {
  for (const Movement& movement : {packs_in_gpu, short_rows}) {
    FakeGpu gpu;
    fill_multiprocessors(gpu);
    gpu.run(movement, 100);
    EXPECT_EQ(gpu.times(Engine::kernel), 2);
    EXPECT_EQ(gpu.times(Engine::ahead), 98);
  }
}

TEST(Punctuality, KernelsAreTriedSeldomWhileTheBurdenLasts) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 10'000);
  EXPECT_GE(gpu.times(Engine::kernel), 5);
  EXPECT_LE(gpu.times(Engine::kernel), 20);
  EXPECT_EQ(gpu.times(Engine::copies), 0);
}

TEST(Punctuality, KernelsComeBackWhenTheBurdenEnds) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 100);
  gpu.waiting(Engine::kernel) = gpu.waiting(Engine::ahead) = 0;
  gpu.run(packs_in_gpu, 2000);
  gpu.forget_counts();
  gpu.run(packs_in_gpu, 1000);
  EXPECT_EQ(gpu.times(Engine::kernel), 1000);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Punctuality, BusyMultiprocessorsAreNothingToCopies) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(long_rows, 10'000);
  EXPECT_EQ(gpu.times(Engine::copies), 10'000);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Punctuality, CopiesBehindTheProgramsOwnGiveWayToKernels) {
  FakeGpu gpu;
  gpu.waiting(Engine::copies) = 600 * us;
  gpu.waiting(Engine::kernel) = gpu.waiting(Engine::ahead) = 14 * us;
  gpu.run(long_rows, 250);
  EXPECT_EQ(gpu.times(Engine::copies), 2);
  EXPECT_EQ(gpu.times(Engine::kernel), 248);
  gpu.waiting(Engine::copies) = 0;
  gpu.run(long_rows, 2000);
  gpu.forget_counts();
  gpu.run(long_rows, 100);
  EXPECT_EQ(gpu.times(Engine::copies), 100);
}

TEST(Punctuality, WhereAllAreLateTheLeastLateIsTaken) {
  FakeGpu gpu;
  gpu.waiting(Engine::kernel) = 1000 * us;
  gpu.waiting(Engine::ahead) = 900 * us;
  gpu.run(short_rows, 1000);
  EXPECT_GE(gpu.times(Engine::copies), 950) << "slow, but in time";
}

TEST(Punctuality, ListsOfLongRunsNeedNoMultiprocessors) {
  FakeGpu gpu;
  gpu.run(list, 10);
  EXPECT_EQ(gpu.times(Engine::kernel), 10);
  gpu.waiting(Engine::kernel) = 1000 * us;
  gpu.waiting(Engine::ahead) = 900 * us;
  gpu.run(list, 1000);
  EXPECT_GE(gpu.times(Engine::copies), 980);
}

TEST(Punctuality, WhenOneBecomesLateTheOthersGetATrial) {
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

TEST(Punctuality, NoiseOfTwoIsNone) {
  FakeGpu gpu;
  for (int i = 0; i < 1000; ++i) {
    gpu.pace = i % 3 == 0 ? 2 : 1;
    for (const Movement& movement : {packs_in_gpu, short_rows}) EXPECT_EQ(gpu.run(movement), Engine::kernel);
    EXPECT_EQ(gpu.run(long_rows), Engine::copies);
  }
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Punctuality, OneLateRunIsNone) {
  FakeGpu gpu;
  for (int i = 0; i < 1000; ++i) {
    gpu.waiting(Engine::kernel) = i % 10 == 0 ? 500 * us : 0;
    EXPECT_EQ(gpu.run(packs_in_gpu), Engine::kernel);
  }
}

TEST(Punctuality, WaitingForTheProgramsOwnWorkIsNotLate) {
  FakeGpu gpu;
  gpu.wait_for_stream = 500 * us;
  gpu.run(packs_in_gpu, 10'000);
  EXPECT_EQ(gpu.times(Engine::kernel), 10'000);
  EXPECT_LE(gpu.asked, 14) << "and the stream is asked less and less often";
}

TEST(Punctuality, ASlowerMachineIsLateOnlyUntilThatIsKnown) {
  FakeGpu gpu;
  gpu.pace = 4;
  gpu.run(short_rows, 2000);
  EXPECT_EQ(gpu.times(Engine::copies), 0) << "they are as much slower";
  gpu.forget_counts();
  gpu.run(short_rows, 100);
  EXPECT_EQ(gpu.times(Engine::kernel), 100);
  EXPECT_EQ(gpu.asked, 0);
}

TEST(Punctuality, KindsOfMovementsAreApart) {
  FakeGpu gpu;
  fill_multiprocessors(gpu);
  gpu.run(packs_in_gpu, 10);
  EXPECT_EQ(gpu.run(packs_in_gpu), Engine::ahead);
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
  const auto waited = [&](const pack::Job& wanted, device::Reach reach) {
    return router.route_waited({&wanted, 1}, 0, reach);
  };
  const pack::Job packs = job(long_row, pack::Direction::pack), unpacks = job(long_row, pack::Direction::unpack);
  EXPECT_EQ(waited(packs, device::Reach::beyond).engine, Engine::copies);
  EXPECT_EQ(waited(packs, device::Reach::this_gpu).engine, Engine::kernel);
  EXPECT_EQ(waited(unpacks, device::Reach::from_beyond).engine, Engine::copies);
  EXPECT_EQ(waited(unpacks, device::Reach::this_gpu).engine, Engine::kernel);
  EXPECT_EQ(waited(job(far_apart, pack::Direction::pack), device::Reach::beyond).engine, Engine::kernel);
  const pack::Job two[] = {packs, packs};
  EXPECT_EQ(router.route_waited(two, 0, device::Reach::beyond).engine, Engine::kernel) << "one launch for all";
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

/// `count` runs of many lengths, upwards.
std::vector<layout::Segment> long_runs(layout::Offset count, layout::Offset length) {
  std::vector<layout::Segment> list;
  for (layout::Offset i = 0; i < count; ++i) list.push_back({i * length * 2, length - i});
  return list;
}

TEST(Router, ListsAreCopiedByRuns) {
  const Router idle{std::nullopt};
  auto segments = long_runs(12, 2 << 20);
  const auto list = layout::segments(segments);
  std::swap(segments[3], segments[9]);
  const auto shuffled = layout::segments(segments);
  const device::Location pinned{device::MemoryKind::pinned, 0};
  for (const auto direction : {pack::Direction::pack, pack::Direction::unpack}) {
    const bool packs = direction == pack::Direction::pack;
    const pack::Job job = list_job(list, direction), in_disorder = list_job(shuffled, direction);
    const auto reach = packs ? device::Reach::beyond : device::Reach::from_beyond;
    for (const Route& route : {idle.route_waited({&job, 1}, 0, reach), idle.route_issued(job, pinned)}) {
      EXPECT_EQ(route.engine, Engine::copies);
      EXPECT_TRUE(route.movement.by_runs);
      EXPECT_EQ(route.movement.copies, 12);
      ASSERT_NE(route.runs, nullptr);
      EXPECT_EQ(route.runs->count, 12U);
      EXPECT_EQ(route.runs->unpack, !packs);
      EXPECT_EQ(route.copies.count, 0) << "too many to copy singly";
    }
    EXPECT_EQ(idle.route_waited({&job, 1}, 0, device::Reach::this_gpu).engine, Engine::kernel);
    EXPECT_EQ(idle.route_issued(in_disorder, pinned).engine, packs ? Engine::copies : Engine::kernel)
        << "unpacking could need an order";
  }
}

TEST(Router, FewRunsAreCopiedSinglyWhereTheyNeedAnOrder) {
  const Router router{Engine::copies};
  const auto upwards = layout::segments(long_runs(5, 4096));
  const auto around = layout::segments(std::vector<layout::Segment>{{0, 4000}, {9000, 100}, {5000, 200}});
  const pack::Job ordered = list_job(upwards, pack::Direction::unpack),
                  other = list_job(around, pack::Direction::unpack);
  const Route by_runs = router.route_waited({&ordered, 1}, 0, device::Reach::from_beyond);
  ASSERT_NE(by_runs.runs, nullptr);
  EXPECT_EQ(by_runs.copies.count, 5) << "for streams that refuse runs";
  const Route singly = router.route_waited({&other, 1}, 0, device::Reach::from_beyond);
  EXPECT_EQ(singly.engine, Engine::copies);
  EXPECT_EQ(singly.runs, nullptr);
  EXPECT_EQ(singly.movement.copies, 3);
  EXPECT_FALSE(singly.movement.by_runs);
}

TEST(Router, ListsOfTooManyRunsAreForKernels) {
  const Router router{Engine::copies};
  for (const layout::Offset count : {most_runs, most_runs + 1}) {
    const auto list = layout::segments(long_runs(count, 4096));
    const pack::Job job = list_job(list, pack::Direction::pack);
    EXPECT_EQ(router.route_waited({&job, 1}, 0, device::Reach::beyond).engine,
              count == most_runs ? Engine::copies : Engine::kernel);
  }
  // A sum is estimated by its parts, and refused once they are listed.
  const auto rows = layout::repeat(layout::block(0, 64), 900, 100);
  const auto sum = layout::concatenate(std::vector{rows, layout::repeat(layout::block(1 << 20, 72), 900, 100)});
  const pack::Job job = list_job(sum, pack::Direction::pack);
  EXPECT_LE(estimated_runs(job), most_runs);
  EXPECT_EQ(router.route_waited({&job, 1}, 0, device::Reach::beyond).engine, Engine::kernel);
}

}  // namespace
}  // namespace gapless::tests

// Many jobs in one call, and calls that wait: the same bytes as one job after the other, from plain lists of offsets.
#include "batch_mix.hpp"

namespace gapless::tests {
namespace {

class BatchTest : public RuntimeTest {};

TEST_P(BatchTest, AnyMixOfJobs) {
  RandomLayouts random(random_seed());
  for (int round = 0; round < 30; ++round) {
    Mix mix(*runtime_, random);
    for (Offset wanted = random.number(2, 80); wanted > 0; --wanted) mix.add();
    if (round % 2 == 0) {
      expect_ok(engine_->run(mix.jobs(), 0, stream_));
      expect_ok(runtime_->synchronize(0, stream_));
    } else {
      expect_ok(engine_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
    }
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "round " << round << ", " << mix.jobs().size() << " jobs";
  }
}

TEST_P(BatchTest, TheSameJobsAgainAndOthersLikeThem) {
  constexpr std::size_t each = 64;
  RandomLayouts random(random_seed());
  Memory memory(*runtime_, MemoryKind::device, 8 * 400), packed(*runtime_, MemoryKind::device, 8 * each);
  for (int round = 0; round < 24; ++round) {
    // New layouts, which may lie where the last ones lay, in every fourth round; in the others the same jobs, of which
    // one differs in odd rounds.
    static std::vector<LayoutPointer> layouts;
    if (round % 4 == 0) layouts.clear();
    while (layouts.size() < 8) layouts.push_back(layout::repeat(layout::block(0, 4), 16, 8 + 4 * random.number(0, 4)));
    const auto contents = random_bytes(random, 8 * 400);
    memory.fill(contents);
    std::vector<Job> jobs;
    std::vector<char> expected;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t from = i * 400 + (i == 5 && round % 2 == 1 ? 4 : 0);
      jobs.push_back(
          {layouts[i].get(), {1, 0}, 0, each, Direction::pack, memory.pointer() + from, packed.pointer() + i * each});
      const auto stride = static_cast<std::size_t>(layouts[i]->modes[0].stride);
      for (std::size_t row = 0; row < 16; ++row) {
        expected.insert(expected.end(), &contents[from + row * stride], &contents[from + row * stride] + 4);
      }
    }
    expect_ok(engine_->run_and_wait(jobs, 0, Reach::this_gpu));
    ASSERT_EQ(packed.contents(), expected) << "round " << round;
  }
}

TEST_P(BatchTest, TheSameSingleJobAgainAndAnotherLayoutInItsPlace) {
  constexpr std::size_t rows = 16, bytes = 4 * rows;
  RandomLayouts random(random_seed());
  Memory memory(*runtime_, MemoryKind::device, 400), packed(*runtime_, MemoryKind::device, bytes);
  LayoutPointer layout;
  for (int round = 0; round < 24; ++round) {
    if (round % 3 == 0) {
      layout.reset();  // so that the next one may lie where it lay
      layout = layout::repeat(layout::block(0, 4), rows, 8 + 4 * random.number(0, 4));
    }
    const auto stride = static_cast<std::size_t>(layout->modes[0].stride);
    const bool packs = random.number(0, 1) == 0;
    auto inside = random_bytes(random, 400), outside = random_bytes(random, bytes);
    memory.fill(inside);
    packed.fill(outside);
    const Job job{layout.get(),     {1, 0},          0, bytes, packs ? Direction::pack : Direction::unpack,
                  memory.pointer(), packed.pointer()};
    expect_ok(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu));
    for (std::size_t i = 0; i < bytes; ++i) {
      char &in = inside[i / 4 * stride + i % 4], &out = outside[i];
      (packs ? out : in) = packs ? in : out;
    }
    ASSERT_EQ(memory.contents(), inside) << "round " << round;
    ASSERT_EQ(packed.contents(), outside) << "round " << round;
  }
}

TEST_P(BatchTest, MoreJobsThanOneLaunchHolds) {
  RandomLayouts random(random_seed());
  Mix mix(*runtime_, random);
  Sample rows{layout::repeat(layout::block(0, 4), 3, 8), {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19}};
  for (int i = 0; i < 1000; ++i) mix.add(rows, 0, 1);
  ASSERT_GT(mix.jobs().size(), 900u);
  expect_ok(engine_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
  mix.expect_done();
}

TEST_P(BatchTest, ContiguousPiecesOfAnyLengthAndAlignment) {
  RandomLayouts random(random_seed());
  Mix mix(*runtime_, random);
  for (const Offset length : {1, 2, 3, 7, 8, 15, 16, 17, 100, 1000, 4095, 4096, 4097, 65536, 100001}) {
    Sample row{layout::block(0, length), std::vector<Offset>(static_cast<std::size_t>(length))};
    std::iota(row.map.begin(), row.map.end(), Offset{0});
    mix.add(row, 0, 1);
  }
  expect_ok(engine_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
  mix.expect_done();
}

TEST_P(BatchTest, OneJobAtATimeIsDoneOnReturn) {
  RandomLayouts random(random_seed());
  for (int round = 0; round < 20; ++round) {
    Mix mix(*runtime_, random);
    for (int i = 0; i < 20; ++i) mix.add();
    for (const Job& job : mix.jobs()) expect_ok(engine_->run_and_wait({&job, 1}, 0, Reach::this_gpu));
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "round " << round;
  }
}

/// Of several jobs, which together are too long for their end to be polled for.
TEST_P(BatchTest, ManyMegabytesAreDoneOnReturn) {
  constexpr Offset length = 512, rows = 2048, stride = 2 * length, jobs_count = 12, each = length * rows;
  const auto layout = layout::repeat(layout::block(0, length), rows, stride);
  Memory memory(*runtime_, MemoryKind::device, jobs_count * rows * stride),
      packed(*runtime_, MemoryKind::pinned, jobs_count * each);
  std::vector<Job> jobs;
  for (Offset i = 0; i < jobs_count; ++i) {
    jobs.push_back({layout.get(),
                    {1, 0},
                    0,
                    each,
                    Direction::pack,
                    memory.pointer() + i * rows * stride,
                    packed.pointer() + i * each});
  }
  for (const char value : {'a', 'b', 'c'}) {
    memory.fill(std::vector<char>(jobs_count * rows * stride, value));
    Job row = jobs.front();
    row.end = length;
    expect_ok(engine_->run_and_wait({&row, 1}, 0, Reach::beyond));
    expect_ok(engine_->run_and_wait(jobs, 0, Reach::beyond));
    // Without asking the GPU for anything, which would wait for it.
    EXPECT_EQ(packed.pointer()[jobs_count * each - 1], value);
    EXPECT_EQ(std::count(packed.pointer(), packed.pointer() + jobs_count * each, value), jobs_count * each);
  }
}

TEST_P(BatchTest, NothingToDoIsDoneAtOnce) {
  const auto rows = layout::repeat(layout::block(0, 4), 10, 8);
  const Job nothing{rows.get(), {1, 0}, 7, 7, Direction::pack, nullptr, nullptr};
  expect_ok(engine_->run_and_wait({}, 0, Reach::this_gpu));
  expect_ok(engine_->run_and_wait({&nothing, 1}, 0, Reach::this_gpu));
  const Job twice[] = {nothing, nothing};
  expect_ok(engine_->run_and_wait(twice, 0, Reach::this_gpu));
}

GAPLESS_FOR_EVERY_PLUGIN(BatchTest);

}  // namespace
}  // namespace gapless::tests

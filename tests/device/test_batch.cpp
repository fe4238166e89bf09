// Many jobs in one call, and calls that wait: the same bytes as one job after the other, from plain lists of offsets.
#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

/// Jobs of one batch with their share of memory and of the packed arena, and what either must hold afterwards.
class Mix {
 public:
  static constexpr std::size_t arena = 1 << 20;

  Mix(Runtime& runtime, RandomLayouts& random)
      : random_(random),
        memory_(runtime, MemoryKind::device, arena),
        packed_(runtime, MemoryKind::device, arena),
        memory_bytes_(random_bytes(random, arena)),
        packed_bytes_(random_bytes(random, arena)) {
    memory_.fill(memory_bytes_);
    packed_.fill(packed_bytes_);
  }

  /// Adds any job that there is still room for.
  void add() {
    const bool overlapping = random_.number(0, 9) == 0;
    add(random_.next(overlapping), overlapping ? random_.number(-16, 16) : 0, random_.number(1, 3));
  }

  /// An extent of 0 stands for one at which repetitions keep clear of each other.
  void add(Sample sample, Offset extent, Offset count) {
    if (extent == 0) extent = (sample.high() - sample.low() + 15) / 16 * 16;
    const auto map = repeated_map(sample.map, count, extent);
    const auto [low, high] = std::minmax_element(map.begin(), map.end());
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = random_.number(0, 3) == 0 ? random_.number(0, size) : 0;
    const Offset end = random_.number(0, 3) == 0 ? random_.number(begin, size) : size;
    const Offset origin = (next_memory_ - *low + 15) / 16 * 16 + random_.number(0, 3) / 3 * random_.number(0, 31);
    const Offset at = next_packed_ + random_.number(0, 3) / 3 * random_.number(0, 31);
    if (origin + *high + 64 > static_cast<Offset>(arena) || at + size + 64 > static_cast<Offset>(arena)) return;
    next_memory_ = origin + *high + 1;
    next_packed_ = (at + end - begin + 15) / 16 * 16;
    const auto direction = random_.number(0, 1) == 0 ? Direction::pack : Direction::unpack;
    for (Offset k = begin; k < end; ++k) {
      char &inside = memory_bytes_[origin + map[k]], &outside = packed_bytes_[at + k - begin];
      (direction == Direction::pack ? outside : inside) = direction == Direction::pack ? inside : outside;
    }
    layouts_.push_back(sample.layout);
    jobs_.push_back({sample.layout.get(),
                     {count, extent},
                     begin,
                     end,
                     direction,
                     memory_.pointer() + origin,
                     packed_.pointer() + at});
  }

  const std::vector<Job>& jobs() const { return jobs_; }

  void expect_done() {
    ASSERT_EQ(memory_.contents(), memory_bytes_);
    ASSERT_EQ(packed_.contents(), packed_bytes_);
  }

 private:
  RandomLayouts& random_;
  Memory memory_, packed_;
  std::vector<char> memory_bytes_, packed_bytes_;
  Offset next_memory_ = 64, next_packed_ = 64;
  std::vector<LayoutPointer> layouts_;
  std::vector<Job> jobs_;
};

class BatchTest : public RuntimeTest {};

TEST_P(BatchTest, AnyMixOfJobs) {
  RandomLayouts random(test_seed());
  for (int round = 0; round < 30; ++round) {
    Mix mix(*runtime_, random);
    for (Offset wanted = random.number(2, 80); wanted > 0; --wanted) mix.add();
    if (round % 2 == 0) {
      expect_ok(runtime_->run(mix.jobs(), 0, stream_));
      expect_ok(runtime_->synchronize(0, stream_));
    } else {
      expect_ok(runtime_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
    }
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "round " << round << ", " << mix.jobs().size() << " jobs";
  }
}

TEST_P(BatchTest, TheSameJobsAgainAndOthersLikeThem) {
  constexpr std::size_t each = 64;
  RandomLayouts random(test_seed());
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
    expect_ok(runtime_->run_and_wait(jobs, 0, Reach::this_gpu));
    ASSERT_EQ(packed.contents(), expected) << "round " << round;
  }
}

TEST_P(BatchTest, TheSameSingleJobAgainAndAnotherLayoutInItsPlace) {
  constexpr std::size_t rows = 16, bytes = 4 * rows;
  RandomLayouts random(test_seed());
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
    expect_ok(runtime_->run_and_wait({&job, 1}, 0, Reach::this_gpu));
    for (std::size_t i = 0; i < bytes; ++i) {
      char &in = inside[i / 4 * stride + i % 4], &out = outside[i];
      (packs ? out : in) = packs ? in : out;
    }
    ASSERT_EQ(memory.contents(), inside) << "round " << round;
    ASSERT_EQ(packed.contents(), outside) << "round " << round;
  }
}

TEST_P(BatchTest, MoreJobsThanOneLaunchHolds) {
  RandomLayouts random(test_seed());
  Mix mix(*runtime_, random);
  Sample rows{layout::repeat(layout::block(0, 4), 3, 8), {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19}};
  for (int i = 0; i < 1000; ++i) mix.add(rows, 0, 1);
  ASSERT_GT(mix.jobs().size(), 900u);
  expect_ok(runtime_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
  mix.expect_done();
}

TEST_P(BatchTest, ContiguousPiecesOfAnyLengthAndAlignment) {
  RandomLayouts random(test_seed());
  Mix mix(*runtime_, random);
  for (const Offset length : {1, 2, 3, 7, 8, 15, 16, 17, 100, 1000, 4095, 4096, 4097, 65536, 100001}) {
    Sample row{layout::block(0, length), std::vector<Offset>(static_cast<std::size_t>(length))};
    std::iota(row.map.begin(), row.map.end(), Offset{0});
    mix.add(row, 0, 1);
  }
  expect_ok(runtime_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
  mix.expect_done();
}

TEST_P(BatchTest, OneJobAtATimeIsDoneOnReturn) {
  RandomLayouts random(test_seed());
  for (int round = 0; round < 20; ++round) {
    Mix mix(*runtime_, random);
    for (int i = 0; i < 20; ++i) mix.add();
    for (const Job& job : mix.jobs()) expect_ok(runtime_->run_and_wait({&job, 1}, 0, Reach::this_gpu));
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "round " << round;
  }
}

TEST_P(BatchTest, NothingToDoIsDoneAtOnce) {
  const auto rows = layout::repeat(layout::block(0, 4), 10, 8);
  const Job nothing{rows.get(), {1, 0}, 7, 7, Direction::pack, nullptr, nullptr};
  expect_ok(runtime_->run_and_wait({}, 0, Reach::this_gpu));
  expect_ok(runtime_->run_and_wait({&nothing, 1}, 0, Reach::this_gpu));
  const Job twice[] = {nothing, nothing};
  expect_ok(runtime_->run_and_wait(twice, 0, Reach::this_gpu));
}

GAPLESS_FOR_EVERY_PLUGIN(BatchTest);

}  // namespace
}  // namespace gapless::tests

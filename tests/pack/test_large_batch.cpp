// Batches of more jobs than a kernel's parameters have room for: the bytes, and on the simulated GPU what it takes.
#include <thread>

#include "batch_mix.hpp"
#include "pack/gpu/batch/table_pool.hpp"

namespace gapless::tests {

namespace gpu = pack::gpu;

namespace {

/// A few bytes in a few rows, or none at all.
Sample few_rows(RandomLayouts& random) {
  const Offset length = random.number(1, 24), rows = random.number(1, 5), stride = length + random.number(0, 9);
  Sample sample{layout::repeat(layout::block(0, length), rows, stride), {}};
  for (Offset k = 0; k < length * rows; ++k) sample.map.push_back(k / length * stride + k % length);
  return sample;
}

/// Adds jobs until there are so many: most are small, some are anything.
void add_jobs(Mix& mix, RandomLayouts& random, std::size_t wanted) {
  while (mix.jobs().size() < wanted) random.number(0, 7) == 0 ? mix.add() : mix.add(few_rows(random), 0, 1);
}

class LargeBatchTest : public RuntimeTest {};

TEST_P(LargeBatchTest, OfAnyJobsWithPackedBytesInAnyMemory) {
  RandomLayouts random(random_seed());
  std::vector<Place> places{{MemoryKind::device, 0}, {MemoryKind::pinned, 0}};
  if (runtime_->device_count() > 1 && runtime_->enable_peer(0, 1) == Status::ok) {
    places.push_back({MemoryKind::device, 1});
  }
  for (const std::size_t wanted : {257, 1000, 5000}) {
    std::vector<std::unique_ptr<Mix>> mixes;
    std::vector<Job> jobs;
    for (const Place& place : places) {
      mixes.push_back(std::make_unique<Mix>(*runtime_, random, std::size_t{16} << 20, place));
      add_jobs(*mixes.back(), random, wanted / places.size() + 1);
      jobs.insert(jobs.end(), mixes.back()->jobs().begin(), mixes.back()->jobs().end());
    }
    std::shuffle(jobs.begin(), jobs.end(), std::mt19937_64(random.bits()));
    ASSERT_GE(jobs.size(), wanted);
    for (const bool waits : {false, true}) {
      if (waits) {
        expect_ok(engine_->run_and_wait(jobs, 0, Reach::beyond));
      } else {
        expect_ok(engine_->run(jobs, 0, stream_));
        expect_ok(runtime_->synchronize(0, stream_));
      }
      for (const auto& mix : mixes) {
        ASSERT_NO_FATAL_FAILURE(mix->expect_done()) << jobs.size() << " jobs, " << (waits ? "waited for" : "issued");
        mix->refill();
      }
    }
  }
}

TEST_P(LargeBatchTest, ManyBeforeTheFirstIsDone) {
  RandomLayouts random(random_seed());
  std::vector<std::unique_ptr<Mix>> mixes;
  for (int i = 0; i < 10; ++i) {
    mixes.push_back(std::make_unique<Mix>(*runtime_, random));
    add_jobs(*mixes.back(), random, 300);
  }
  for (const auto& mix : mixes) expect_ok(engine_->run(mix->jobs(), 0, stream_));
  expect_ok(runtime_->synchronize(0, stream_));
  for (const auto& mix : mixes) ASSERT_NO_FATAL_FAILURE(mix->expect_done());
}

TEST_P(LargeBatchTest, TheSameInTwoStreams) {
  RandomLayouts random(random_seed());
  Mix mix(*runtime_, random);
  add_jobs(mix, random, 300);
  void* other = nullptr;
  std::thread([&] { other = runtime_->stream(0); }).join();
  ASSERT_NE(other, stream_);
  for (int round = 0; round < 3; ++round) {
    mix.refill();
    for (void* const stream : {other, stream_, other}) expect_ok(engine_->run(mix.jobs(), 0, stream));
    for (void* const stream : {other, stream_}) expect_ok(runtime_->synchronize(0, stream));
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "round " << round;
  }
}

TEST_P(LargeBatchTest, OfSeveralThreads) {
  const std::uint64_t seed = random_seed();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, seed, t] {
      RandomLayouts random(seed + t);
      Mix mix(*runtime_, random);
      add_jobs(mix, random, 300);
      for (int round = 0; round < 5; ++round) {
        mix.refill();
        void* const stream = runtime_->stream(0);
        expect_ok(engine_->run(mix.jobs(), 0, stream));
        expect_ok(runtime_->synchronize(0, stream));
        ASSERT_NO_FATAL_FAILURE(mix.expect_done());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

GAPLESS_FOR_EVERY_PLUGIN(LargeBatchTest);

/// Counts what the simulated GPU is asked for.
class LargeBatchCounts : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    library_ = dlopen(plugin_path(GetParam()).c_str(), RTLD_NOW);
    ASSERT_NE(library_, nullptr);
    reset();
  }

  long count(const char* what) { return function<long(const char*)>("simulated_device_count")(what); }
  void reset() { function<void()>("simulated_device_reset_counts")(); }
  void fail(const char* operation, long successes, long failures) {
    ASSERT_EQ((function<int(const char*, long, long)>("simulated_device_fail")(operation, successes, failures)), 0);
  }
  void expect_counts(long launches, long table_uploads) {
    EXPECT_EQ(count("launches"), launches);
    EXPECT_EQ(count("table_uploads"), table_uploads);
    reset();
  }

  /// A batch of so many jobs of 12 bytes.
  std::unique_ptr<Mix> small_jobs(int jobs) {
    const Sample rows{layout::repeat(layout::block(0, 4), 3, 8), {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19}};
    auto mix = std::make_unique<Mix>(*runtime_, random_);
    mix->whole = true;
    for (int i = 0; i < jobs; ++i) mix->add(rows, 0, 1);
    EXPECT_EQ(mix->jobs().size(), static_cast<std::size_t>(jobs));
    return mix;
  }
  void issue(const Mix& mix, int device = 0) { expect_ok(engine_->run(mix.jobs(), device, runtime_->stream(device))); }
  void finish(int device = 0) { expect_ok(runtime_->synchronize(device, runtime_->stream(device))); }
  void run_and_compare(Mix& mix, int device = 0) {
    mix.refill();
    issue(mix, device);
    finish(device);
    ASSERT_NO_FATAL_FAILURE(mix.expect_done());
  }

  RandomLayouts random_{random_seed()};

 private:
  template <class Signature>
  Signature* function(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

TEST_P(LargeBatchCounts, OneUploadAndOneLaunchWhereParametersAreTooSmall) {
  for (const int jobs : {2, 256}) {
    run_and_compare(*small_jobs(jobs));
    expect_counts(1, 0);
  }
  for (const int jobs : {257, 1000, 5000}) {
    run_and_compare(*small_jobs(jobs));
    expect_counts(1, 1);
  }
}

TEST_P(LargeBatchCounts, TheSameJobsFindTheirTableAgain) {
  const auto there = small_jobs(300), back = small_jobs(400);
  for (int step = 0; step < 3; ++step) {
    run_and_compare(*there);
    expect_counts(1, step == 0 ? 1 : 0);
    run_and_compare(*back);
    expect_counts(1, step == 0 ? 1 : 0);
  }
  for (int i = 0; i < gpu::TablePool::blocks_per_device; ++i) run_and_compare(*small_jobs(300));
  reset();
  run_and_compare(*there);
  expect_counts(1, 1);
}

TEST_P(LargeBatchCounts, WithoutMemoryAsManyLaunchesAsItTakes) {
  const auto mix = small_jobs(1000);
  fail("allocate", 0, -1);
  run_and_compare(*mix, 1);  // a GPU on which no table has been allocated
  expect_counts(4, 0);
  run_and_compare(*mix, 1);
  expect_counts(4, 0);
  fail("allocate", 0, 0);
}

TEST_P(LargeBatchCounts, NobodyWaitsForABlock) {
  constexpr int blocks = gpu::TablePool::blocks_per_device;
  std::vector<std::unique_ptr<Mix>> mixes;
  for (int i = 0; i < blocks + 2; ++i) mixes.push_back(small_jobs(1000));
  for (const auto& mix : mixes) issue(*mix);
  expect_counts(blocks + 2 * 4, blocks);
  finish();
  for (const auto& mix : mixes) ASSERT_NO_FATAL_FAILURE(mix->expect_done());
  run_and_compare(*mixes.back());
  expect_counts(1, 1);
}

TEST_P(LargeBatchCounts, AnotherStreamFollowsTheOneThatBroughtTheTable) {
  const auto mix = small_jobs(300);
  void* other = nullptr;
  std::thread([&] { other = runtime_->stream(0); }).join();
  issue(*mix);
  expect_ok(engine_->run(mix->jobs(), 0, other));
  expect_counts(2, 1);
  expect_ok(runtime_->synchronize(0, other));
  ASSERT_NO_FATAL_FAILURE(mix->expect_done());
  finish();
}

TEST_P(LargeBatchCounts, MoreThanATableHoldsIsMoreTables) {
  const auto mix = small_jobs(25000);
  run_and_compare(*mix);
  expect_counts(2, 2);
}

INSTANTIATE_TEST_SUITE_P(Plugin, LargeBatchCounts, ::testing::Values("simulated-device"),
                         [](const auto&) { return "simulated"; });

}  // namespace
}  // namespace gapless::tests

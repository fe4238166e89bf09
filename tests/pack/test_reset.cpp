// Programs reset GPUs between calls (cudaDeviceReset, or the end of a library that does): whatever was kept on the GPU
// is gone, and the next call works all the same. By every way that bytes are moved, with layouts that were used before.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "batch_mix.hpp"

namespace gapless::tests {
namespace {

/// `count` rows of `length` bytes, `stride` apart.
Sample rows(Offset length, Offset count, Offset stride) {
  Sample sample{layout::repeat(layout::block(0, length), count, stride), {}};
  for (Offset k = 0; k < length * count; ++k) sample.map.push_back(k / length * stride + k % length);
  return sample;
}

/// Runs so long that copy engines take them, of many lengths.
Sample long_runs(RandomLayouts& random) {
  std::vector<layout::Segment> list;
  Sample sample;
  for (Offset i = 0, at = 0; i < 10; ++i) {
    list.push_back({at, random.number(10'000, 20'000)});
    for (Offset k = 0; k < list.back().length; ++k) sample.map.push_back(at + k);
    at += list.back().length + random.number(1, 1000);
  }
  sample.layout = layout::segments(list);
  return sample;
}

/// A thread that does what it is told to, one thing after the other.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() {
    post({});
    thread_.join();
  }
  /// Returns when it is done.
  void run(const std::function<void()>& task) {
    post(task);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_posted_; });
  }

 private:
  void post(const std::function<void()>& task) {
    const std::lock_guard lock(mutex_);
    task_ = task;
    is_posted_ = true;
    changed_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_posted_; });
      if (!task_) return;
      task_();
      is_posted_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool is_posted_ = false;
  std::thread thread_;
};

class ResetTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    RandomLayouts random(seed_);
    samples_ = {rows(4, 500, 12), rows(100, 60, 128), rows(16, 1, 16), long_runs(random)};
    for (int i = 0; i < 12; ++i) samples_.push_back(random.next(false));
  }
  void TearDown() override {
    if (runtime_ != nullptr) engine_->force_engine("");
  }

  /// As the program does it, by no function of the plugin's interface.
  static void reset(int device = 0) {
    if (std::string(GetParam()) == "cuda") {
      call("libcuda.so.1", "cuDevicePrimaryCtxReset_v2", device);
    } else {
      call(plugin_path(GetParam()).c_str(), "simulated_device_reset", device);
    }
  }

  /// Jobs one by one and in batches, waited for and not, by every engine, with packed bytes in either memory.
  void expect_every_way_works() {
    RandomLayouts random(seed_);
    for (const char* engine : {"", "kernel", "ahead", "dma"}) {
      engine_->force_engine(engine);
      for (const MemoryKind packed : {MemoryKind::device, MemoryKind::pinned}) {
        SCOPED_TRACE(std::string("engine \"") + engine + "\", packed in memory of kind " +
                     std::to_string(static_cast<int>(packed)));
        Mix mix(*runtime_, random, std::size_t{1} << 20, {packed, 0});
        for (const Sample& sample : samples_) mix.add(sample, 0, 1);
        ASSERT_NO_FATAL_FAILURE(expect_jobs_work(mix));
      }
    }
    engine_->force_engine("");
    ASSERT_NO_FATAL_FAILURE(expect_a_large_batch_works(random));
    ASSERT_NO_FATAL_FAILURE(expect_chunks_work(random));
    ASSERT_NO_FATAL_FAILURE(expect_copies_between_layouts_work(random));
  }

  /// One small job that is waited for, which a resident kernel takes if there is one.
  void expect_one_job_works() {
    RandomLayouts random(seed_);
    Mix mix(*runtime_, random, std::size_t{1} << 16);
    mix.whole = true;
    mix.add(samples_.front(), 0, 1);
    expect_ok(engine_->run_and_wait(mix.jobs(), 0, Reach::this_gpu));
    mix.expect_done();
  }

  const std::uint64_t seed_ = random_seed();
  std::vector<Sample> samples_;

 private:
  static void call(const char* library, const char* function, int device) {
    void* const opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(opened, nullptr) << library;
    const auto found = reinterpret_cast<int (*)(int)>(dlsym(opened, function));
    ASSERT_NE(found, nullptr) << function;
    found(device);
  }

  void issue(std::span<const Job> jobs) {
    void* const stream = runtime_->stream(0);
    expect_ok(engine_->run(jobs, 0, stream));
    expect_ok(runtime_->synchronize(0, stream));
  }

  void expect_jobs_work(Mix& mix) {
    const std::vector<Job>& jobs = mix.jobs();
    for (const Job& job : jobs) expect_ok(engine_->run_and_wait({&job, 1}, 0, Reach::beyond));
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "one by one, waited for";
    mix.refill();
    for (const Job& job : jobs) issue({&job, 1});
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "one by one, issued";
    mix.refill();
    expect_ok(engine_->run_and_wait(jobs, 0, Reach::beyond));
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "together, waited for";
    mix.refill();
    issue(jobs);
    ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "together, issued";
  }

  /// More jobs than parameters hold.
  void expect_a_large_batch_works(RandomLayouts& random) {
    Mix mix(*runtime_, random, std::size_t{4} << 20);
    while (mix.jobs().size() < 300) mix.add(rows(random.number(1, 20), random.number(1, 5), 32), 0, 1);
    for (int i = 0; i < 2; ++i) {
      issue(mix.jobs());
      ASSERT_NO_FATAL_FAILURE(mix.expect_done()) << "a large batch";
      mix.refill();
    }
  }

  /// An unpack so large that it goes through GPU memory.
  void expect_chunks_work(RandomLayouts& random) {
    const Sample sample = rows(100, 54000, 130);
    Memory memory(*runtime_, MemoryKind::device, static_cast<std::size_t>(sample.high())),
        packed(*runtime_, MemoryKind::pinned, sample.map.size());
    std::vector<char> inside(static_cast<std::size_t>(sample.high()));
    const std::vector<char> outside = random_bytes(random, sample.map.size());
    memory.fill(inside);
    packed.fill(outside);
    const Job job{sample.layout.get(), {1, 0},          0, sample.layout->size, Direction::unpack,
                  memory.pointer(),    packed.pointer()};
    expect_ok(engine_->run_and_wait({&job, 1}, 0, Reach::from_beyond));
    for (std::size_t k = 0; k < outside.size(); ++k) inside[static_cast<std::size_t>(sample.map[k])] = outside[k];
    ASSERT_TRUE(memory.contents() == inside) << "an unpack in chunks";
  }

  void expect_copies_between_layouts_work(RandomLayouts& random) {
    for (const Sample& sample : samples_) {
      const Offset size = sample.layout->size, origin = -sample.low();
      const LayoutPointer row = layout::block(0, size);
      Memory source(*runtime_, MemoryKind::device, static_cast<std::size_t>(sample.high() + origin)),
          destination(*runtime_, MemoryKind::device, static_cast<std::size_t>(size));
      const std::vector<char> bytes = random_bytes(random, static_cast<std::size_t>(sample.high() + origin));
      source.fill(bytes);
      const pack::PairJob job{sample.layout.get(), {1, 0}, source.pointer() + origin,
                              row.get(),           {1, 0}, destination.pointer()};
      void* const stream = runtime_->stream(0);
      expect_ok(engine_->copy(job, 0, stream));
      expect_ok(runtime_->synchronize(0, stream));
      std::vector<char> expected;
      for (const Offset offset : sample.map) expected.push_back(bytes[static_cast<std::size_t>(origin + offset)]);
      ASSERT_TRUE(destination.contents() == expected) << "a copy between layouts";
    }
  }
};

TEST_P(ResetTest, EveryWayWorksAfterEach) {
  for (int resets = 0; resets < 4; ++resets) {
    SCOPED_TRACE(std::to_string(resets) + " resets");
    ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
    reset();
  }
}

TEST_P(ResetTest, SeveralWithoutACallBetween) {
  ASSERT_NO_FATAL_FAILURE(expect_one_job_works());
  for (int resets = 0; resets < 3; ++resets) reset();
  ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
}

TEST_P(ResetTest, AnotherThreadGoesOnAsWell) {
  Worker worker;
  const auto work = [this] { expect_every_way_works(); };
  for (int resets = 0; resets < 2; ++resets) {
    ASSERT_NO_FATAL_FAILURE(expect_one_job_works());
    worker.run(work);
    reset();
  }
  worker.run(work);
  ASSERT_NO_FATAL_FAILURE(expect_one_job_works());
}

TEST_P(ResetTest, ThreadsThatBeginAfterItInheritNothing) {
  const auto work = [this] { expect_every_way_works(); };
  for (int resets = 0; resets < 2; ++resets) {
    std::thread(work).join();
    reset();
  }
  std::thread(work).join();
}

TEST_P(ResetTest, OneThatIsMadeByAThreadThatEndsIsNoticedByTheOthers) {
  ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
  std::thread([this] {
    expect_one_job_works();
    reset();
  }).join();
  ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
}

TEST_P(ResetTest, ManyThreadsNoticeItAtOnce) {
  for (int resets = 0; resets < 5; ++resets) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([this] { expect_one_job_works(); });
    for (auto& thread : threads) thread.join();
    reset();
  }
}

TEST_P(ResetTest, TheContextIsAnotherOneAndTheOldOneGone) {
  const std::uint64_t before = runtime_->context(0);
  EXPECT_NE(before, 0u);
  EXPECT_EQ(runtime_->context(0), before);
  EXPECT_TRUE(runtime_->has_context(before));
  for (int device = 1; device < runtime_->device_count(); ++device) EXPECT_NE(runtime_->context(device), before);
  reset();
  EXPECT_FALSE(runtime_->has_context(before));
  const std::uint64_t after = runtime_->context(0);
  EXPECT_NE(after, before);
  EXPECT_TRUE(runtime_->has_context(after));
  EXPECT_FALSE(runtime_->has_context(before));
}

TEST_P(ResetTest, LayoutsThatEndAfterItReleaseNothing) {
  RandomLayouts random(seed_);
  for (int resets = 0; resets < 3; ++resets) {
    samples_.clear();
    for (int i = 0; i < 20; ++i) samples_.push_back(random.next(false));
    ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
    reset();
  }
}

/// What another library or the program keeps there survives that what we forgot is forgotten.
TEST_P(ResetTest, MemoryOfTheNewContextIsLeftAlone) {
  RandomLayouts random(seed_);
  ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
  reset();
  Memory memory(*runtime_, MemoryKind::device, std::size_t{32} << 20);
  const std::vector<char> bytes = random_bytes(random, std::size_t{32} << 20);
  memory.fill(bytes);
  ASSERT_NO_FATAL_FAILURE(expect_every_way_works());
  EXPECT_TRUE(memory.contents() == bytes);
}

/// Kernels of GPU 0 write to the memory of GPU 1, which has to be allowed again when either was reset.
TEST_P(ResetTest, OfEitherOfTwoGpusLeavesThemReachable) {
  if (runtime_->device_count() < 2 || runtime_->enable_peer(0, 1) != Status::ok) {
    GTEST_SKIP() << "needs two GPUs that reach each other";
  }
  const Sample& sample = samples_.front();
  const LayoutPointer row = layout::block(0, sample.layout->size);
  RandomLayouts random(seed_);
  for (const int next_reset : {0, 1, 1, 0}) {
    {
      Memory source(*runtime_, MemoryKind::device, static_cast<std::size_t>(sample.high()), 0),
          destination(*runtime_, MemoryKind::device, sample.map.size(), 1);
      const std::vector<char> bytes = random_bytes(random, static_cast<std::size_t>(sample.high()));
      source.fill(bytes);
      expect_ok(runtime_->enable_peer(0, 1));
      void* const stream = runtime_->stream(0);
      const pack::PairJob job{sample.layout.get(), {1, 0}, source.pointer(), row.get(), {1, 0}, destination.pointer()};
      expect_ok(engine_->copy(job, 0, stream));
      expect_ok(runtime_->synchronize(0, stream));
      std::vector<char> expected;
      for (const Offset offset : sample.map) expected.push_back(bytes[static_cast<std::size_t>(offset)]);
      ASSERT_TRUE(destination.contents() == expected);
    }
    reset(next_reset);
  }
}

/// With GAPLESS_RESIDENT, of which the kernel is there for a millisecond after a job.
TEST_P(ResetTest, OfAResidentKernelStartsAnother) {
  const auto jobs = reinterpret_cast<std::uint64_t (*)()>(
      dlsym(dlopen(plugin_path(GetParam()).c_str(), RTLD_NOW | RTLD_NOLOAD), "gapless_cuda_resident_jobs"));
  const char* const wanted = std::getenv("GAPLESS_RESIDENT");
  const std::uint64_t before = jobs != nullptr ? jobs() : 0;
  constexpr int resets = 8;
  for (int i = 0; i < resets; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_one_job_works());
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(4));  // it has gone by then
    reset();
  }
  if (jobs != nullptr && wanted != nullptr) {
    EXPECT_EQ(jobs() - before, resets);
  }
}

GAPLESS_FOR_EVERY_PLUGIN(ResetTest);

}  // namespace
}  // namespace gapless::tests

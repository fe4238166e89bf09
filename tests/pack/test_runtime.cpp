// One set of tests for every plugin: the simulated GPU always, a real one where there is one. Device memory is filled
// and read through the plugin alone, and expected contents come from plain lists of offsets.
#include <unistd.h>

#include <functional>
#include <thread>

#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

TEST_P(RuntimeTest, TellsItsMemoryApart) {
  const Memory device_memory(*runtime_, MemoryKind::device, 1000), pinned(*runtime_, MemoryKind::pinned, 1000);
  int local = 0;
  const auto heap = std::make_unique<int>(0);
  EXPECT_EQ(runtime_->locate(device_memory.pointer()).kind, MemoryKind::device);
  EXPECT_EQ(runtime_->locate(device_memory.pointer() + 999).kind, MemoryKind::device);
  EXPECT_EQ(runtime_->locate(device_memory.pointer()).device, 0);
  EXPECT_EQ(runtime_->locate(pinned.pointer()).kind, MemoryKind::pinned);
  EXPECT_EQ(runtime_->locate(&local).kind, MemoryKind::host);
  EXPECT_EQ(runtime_->locate(heap.get()).kind, MemoryKind::host);
  EXPECT_EQ(runtime_->locate(reinterpret_cast<const void*>(&plugin_path)).kind, MemoryKind::host);
  EXPECT_FALSE(runtime_->describe(0).empty());
}

TEST_P(RuntimeTest, RandomLayoutsInAnyMemory) {
  constexpr std::size_t arena = 1 << 18;
  int run = 0;
  RandomLayouts random(random_seed());
  for (const auto memory_kind : {MemoryKind::device, MemoryKind::pinned}) {
    for (const auto packed_kind : {MemoryKind::device, MemoryKind::pinned}) {
      Memory memory(*runtime_, memory_kind, arena), packed(*runtime_, packed_kind, arena);
      for (int i = 0; i < 60; ++i) {
        const bool overlapping = i % 5 == 0;
        const Sample sample = random.next(overlapping);
        const Offset span = sample.high() - sample.low();
        const Offset extent = overlapping ? random.number(-16, 16) : (span + 15) / 16 * 16;
        const Offset count = random.number(1, 3);
        const auto map = repeated_map(sample.map, count, extent);
        const auto [low, high] = std::minmax_element(map.begin(), map.end());
        const Offset shift = (i % 3 == 0 ? random.number(0, 31) : 0);
        if (*high - *low + 200 > static_cast<Offset>(arena) || map.size() + 200 > arena) continue;
        const Offset origin = (64 - *low + 15) / 16 * 16 + shift;
        const auto size = static_cast<Offset>(map.size());
        const Offset begin = i % 2 == 0 ? 0 : random.number(0, size),
                     end = i % 2 == 0 ? size : random.number(begin, size);
        const Offset at = random.number(0, 2) * random.number(0, 31);
        auto memory_bytes = random_bytes(random, arena), packed_bytes = random_bytes(random, arena);
        for (const auto direction : {Direction::pack, Direction::unpack}) {
          memory.fill(memory_bytes);
          packed.fill(packed_bytes);
          const Job job{sample.layout.get(),       {count, extent},      begin, end, direction,
                        memory.pointer() + origin, packed.pointer() + at};
          expect_ok(engine_->run({&job, 1}, 0, stream_));
          expect_ok(runtime_->synchronize(0, stream_));
          for (Offset k = begin; k < end; ++k) {
            char &inside = memory_bytes[origin + map[k]], &outside = packed_bytes[at + k - begin];
            (direction == Direction::pack ? outside : inside) = direction == Direction::pack ? inside : outside;
          }
          if (HasFailure()) return;
          ASSERT_EQ(memory.contents(), memory_bytes) << "sample " << i;
          ASSERT_EQ(packed.contents(), packed_bytes) << "sample " << i;
          packed_bytes = random_bytes(random, arena);
          ++run;
        }
      }
    }
  }
  EXPECT_GT(run, 240) << "of 480; the rest had layouts too large for the arena";
}

TEST_P(RuntimeTest, ABatchRunsAllItsJobs) {
  constexpr int jobs_count = 26;
  const auto rows = layout::repeat(layout::block(0, 12), 100, 20);
  Memory memory(*runtime_, MemoryKind::device, jobs_count * 2048),
      packed(*runtime_, MemoryKind::device, jobs_count * 1200);
  RandomLayouts random(random_seed());
  const auto bytes = random_bytes(random, jobs_count * 2048);
  memory.fill(bytes);
  std::vector<Job> jobs;
  for (int i = 0; i < jobs_count; ++i) {
    jobs.push_back(
        {rows.get(), {1, 0}, 0, 1200, Direction::pack, memory.pointer() + i * 2048, packed.pointer() + i * 1200});
  }
  expect_ok(engine_->run(jobs, 0, stream_));
  expect_ok(runtime_->synchronize(0, stream_));
  const auto result = packed.contents();
  for (int i = 0; i < jobs_count; ++i) {
    for (int row = 0; row < 100; ++row) {
      ASSERT_EQ(std::memcmp(&result[i * 1200 + row * 12], &bytes[i * 2048 + row * 20], 12), 0) << i << ", " << row;
    }
  }
}

TEST_P(RuntimeTest, ManyRaggedRunsAcrossTilesAndRepetitions) {
  // More runs than a tile stages, so that windows, and tiles that straddle repetitions, are needed.
  RandomLayouts random(random_seed());
  std::vector<layout::Segment> runs;
  Offset at = 0;
  for (int i = 0; i < 5000; ++i) {
    const Offset length = random.number(1, 9) * 4;
    runs.push_back({at, length});
    at += length + random.number(1, 5) * 4;
  }
  const auto ragged = layout::segments(runs);
  ASSERT_EQ(ragged->core, layout::Core::segments);
  const Offset count = 3, extent = at + 8;
  Memory memory(*runtime_, MemoryKind::device, extent * count),
      packed(*runtime_, MemoryKind::device, ragged->size * count);
  const auto bytes = random_bytes(random, extent * count);
  memory.fill(bytes);
  const Job job{ragged.get(),     {count, extent}, 0, ragged->size * count, Direction::pack,
                memory.pointer(), packed.pointer()};
  expect_ok(engine_->run({&job, 1}, 0, stream_));
  expect_ok(runtime_->synchronize(0, stream_));
  std::vector<char> expected;
  for (Offset r = 0; r < count; ++r) {
    for (const auto& run : runs) {
      expected.insert(expected.end(), &bytes[r * extent + run.offset], &bytes[r * extent + run.offset] + run.length);
    }
  }
  EXPECT_EQ(packed.contents(), expected);
}

TEST_P(RuntimeTest, EmptyRangesDoNothing) {
  const auto rows = layout::repeat(layout::block(0, 4), 10, 8);
  const auto nothing = layout::empty();
  const Job jobs[] = {{rows.get(), {1, 0}, 7, 7, Direction::pack, nullptr, nullptr},
                      {rows.get(), {0, 80}, 0, 0, Direction::unpack, nullptr, nullptr},
                      {nothing.get(), {5, 0}, 0, 0, Direction::pack, nullptr, nullptr}};
  expect_ok(engine_->run(jobs, 0, stream_));
  expect_ok(engine_->run({}, 0, stream_));
  expect_ok(runtime_->synchronize(0, stream_));
}

TEST_P(RuntimeTest, ThreadsHaveStreamsOfTheirOwn) {
  const auto rows = layout::repeat(layout::block(0, 4), 1000, 8);
  std::vector<void*> streams(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      streams[t] = runtime_->stream(0);
      Memory memory(*runtime_, MemoryKind::device, 8000), packed(*runtime_, MemoryKind::device, 4000);
      for (int i = 0; i < 20; ++i) {
        std::vector<char> bytes(8000, static_cast<char>(t * 20 + i));
        memory.fill(bytes);
        const Job job{rows.get(), {1, 0}, 0, 4000, Direction::pack, memory.pointer(), packed.pointer()};
        expect_ok(engine_->run({&job, 1}, 0, streams[t]));
        expect_ok(runtime_->synchronize(0, streams[t]));
        EXPECT_EQ(packed.contents(), std::vector<char>(4000, static_cast<char>(t * 20 + i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(streams.begin(), streams.end());
  EXPECT_EQ(std::unique(streams.begin(), streams.end()), streams.end());
}

/// Runs something when its thread's objects are destroyed, later than all that are younger.
struct AtEndOfThread {
  std::function<void()> run;
  ~AtEndOfThread() {
    if (run) run();
  }
};

TEST_P(RuntimeTest, ServesThreadsWhoseObjectsHaveEnded) {
  const auto rows = layout::repeat(layout::block(0, 4), 1000, 8), packed_rows = layout::block(0, 4000);
  Memory memory(*runtime_, MemoryKind::device, 8000), packed(*runtime_, MemoryKind::device, 4000);
  const Job whole{rows.get(), {1, 0}, 0, 4000, Direction::pack, memory.pointer(), packed.pointer()};
  const Job halves[] = {{rows.get(), {1, 0}, 0, 2000, Direction::pack, memory.pointer(), packed.pointer()},
                        {rows.get(), {1, 0}, 2000, 4000, Direction::pack, memory.pointer(), packed.pointer() + 2000}};
  const pack::PairJob copy{rows.get(), {1, 0}, memory.pointer(), packed_rows.get(), {1, 0}, packed.pointer()};
  char value = 'a';
  const auto expect_moved = [&](const auto& move) {
    memory.fill(std::vector<char>(8000, ++value));
    expect_ok(move());
    expect_ok(runtime_->synchronize(0, runtime_->stream(0)));
    EXPECT_EQ(packed.contents(), std::vector<char>(4000, value));
  };
  const auto move_every_way = [&] {
    expect_moved([&] { return engine_->run({&whole, 1}, 0, runtime_->stream(0)); });
    expect_moved([&] { return engine_->run(halves, 0, runtime_->stream(0)); });
    expect_moved([&] { return engine_->run_and_wait({&whole, 1}, 0, Reach::this_gpu); });
    expect_moved([&] { return engine_->copy(copy, 0, runtime_->stream(0)); });
  };
  std::thread([&] {
    thread_local AtEndOfThread last;
    last.run = move_every_way;
    move_every_way();
  }).join();
}

TEST_P(RuntimeTest, EveryDeviceWorks) {
  const auto rows = layout::repeat(layout::block(0, 4), 1000, 8);
  for (int device = 0; device < runtime_->device_count(); ++device) {
    Memory memory(*runtime_, MemoryKind::device, 8000, device), packed(*runtime_, MemoryKind::device, 4000, device);
    EXPECT_EQ(runtime_->locate(memory.pointer()).device, device);
    memory.fill(std::vector<char>(8000, 'x'));
    const Job job{rows.get(), {1, 0}, 0, 4000, Direction::pack, memory.pointer(), packed.pointer()};
    void* stream = runtime_->stream(device);
    expect_ok(runtime_->follow_default_stream(device, stream));
    expect_ok(engine_->run({&job, 1}, device, stream));
    expect_ok(runtime_->synchronize(device, stream));
    EXPECT_EQ(packed.contents(), std::vector<char>(4000, 'x'));
  }
}

TEST_P(RuntimeTest, WhatCannotBeDoneIsSaid) {
  void* pointer = &pointer;
  EXPECT_EQ(runtime_->allocate(MemoryKind::managed, 0, 64, &pointer), Status::unsupported);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_STRNE(runtime_->last_error(), "");
  EXPECT_EQ(runtime_->allocate(MemoryKind::device, 0, std::size_t{1} << 50, &pointer), Status::out_of_memory);
  EXPECT_STRNE(runtime_->last_error(), "");
}

// Which machines have dma-bufs is not known beforehand; whatever the answer is, it is a whole one.
TEST_P(RuntimeTest, OtherDevicesGetADescriptorOrNone) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const Memory memory(*runtime_, MemoryKind::device, page);
  int descriptor = 0;
  const Status status = runtime_->export_to_devices(memory.pointer(), page, 0, &descriptor);
  if (status == Status::ok) {
    EXPECT_EQ(::close(descriptor), 0);
  } else {
    EXPECT_EQ(status, Status::unsupported);
    EXPECT_EQ(descriptor, -1);
  }
  expect_ok(runtime_->flush_writes_of_devices(0));
}

TEST_P(RuntimeTest, AnotherInterfaceVersionIsRefused) {
  void* library = dlopen(plugin_path(GetParam()).c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto open = reinterpret_cast<decltype(&gapless_device_open)>(dlsym(library, "gapless_device_open"));
  EXPECT_EQ(open(gapless_device_interface_version + 1), nullptr);
  EXPECT_EQ(open(gapless_device_interface_version), runtime_);
}

GAPLESS_FOR_EVERY_PLUGIN(RuntimeTest);

}  // namespace
}  // namespace gapless::tests

// What only the simulated GPU can show: strays fault, work waits, failures come when asked for, and everything is
// counted.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/device.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu_engine.hpp"
#include "simulated_device.h"

namespace gapless::tests {
namespace {

using device::MemoryKind;
using device::Status;
using pack::Direction;
using pack::Job;

// The process's environment names the simulated GPU (CMakeLists.txt), so this tests how core finds and uses a plugin
// too.
class SimulatedDevice : public ::testing::Test {
 protected:
  static void* symbol(const char* name) {
    static void* const library = dlopen(std::getenv("GAPLESS_DEVICE_PLUGIN"), RTLD_NOW);
    void* const address = library != nullptr ? dlsym(library, name) : nullptr;
    EXPECT_NE(address, nullptr) << name;
    return address;
  }
#define SIMULATED(function) reinterpret_cast<decltype(&function)>(symbol(#function))
  decltype(&simulated_device_malloc) malloc_ = SIMULATED(simulated_device_malloc);
  decltype(&simulated_device_free) free_ = SIMULATED(simulated_device_free);
  decltype(&simulated_device_write) write_ = SIMULATED(simulated_device_write);
  decltype(&simulated_device_read) read_ = SIMULATED(simulated_device_read);
  decltype(&simulated_device_count) count_ = SIMULATED(simulated_device_count);
  decltype(&simulated_device_reset_counts) reset_ = SIMULATED(simulated_device_reset_counts);
  decltype(&simulated_device_bytes_in_use) in_use_ = SIMULATED(simulated_device_bytes_in_use);
  decltype(&simulated_device_fail) fail_ = SIMULATED(simulated_device_fail);
#undef SIMULATED
  device::Runtime* runtime_ = device::runtime();
  pack::GpuEngine* engine_ = pack::gpu_engine();
};

TEST_F(SimulatedDevice, CoreAsksThePlugin) {
  ASSERT_NE(runtime_, nullptr) << device::why_unavailable();
  EXPECT_STREQ(runtime_->name(), "simulated");
  EXPECT_EQ(device::why_unavailable(), "");
  EXPECT_TRUE(device::in_use());
  void* memory = malloc_(1, 100);
  EXPECT_EQ(device::locate(memory).kind, MemoryKind::device);
  EXPECT_EQ(device::locate(memory).device, 1);
  free_(memory);
  EXPECT_EQ(device::locate(memory).kind, MemoryKind::host);
}

TEST_F(SimulatedDevice, HostMemoryIsRecognisedWithoutAsking) {
  static int data = 1;
  int local = 0;
  std::string small(10, 'x');
  const auto heap = std::make_unique<char[]>(1000);
  device::locate(&local);
  reset_();
  for (const void* pointer : {static_cast<const void*>(&data), static_cast<const void*>(&local),
                              static_cast<const void*>(small.data()), static_cast<const void*>(heap.get())}) {
    EXPECT_EQ(device::locate(pointer).kind, MemoryKind::host);
  }
  EXPECT_EQ(device::locate(nullptr).kind, MemoryKind::host);
  EXPECT_EQ(count_("locates"), 0);
  void* memory = malloc_(0, 100);
  EXPECT_EQ(device::locate(memory).kind, MemoryKind::device);
  EXPECT_EQ(count_("locates"), 1);
  free_(memory);
}

TEST_F(SimulatedDevice, TheHostCannotTouchDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* memory = static_cast<volatile char*>(malloc_(0, 100));
  EXPECT_EXIT(memory[0] = 1, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT((void)memory[99], ::testing::KilledBySignal(SIGSEGV), "");
  free_(const_cast<char*>(memory));
}

TEST_F(SimulatedDevice, WorkWaitsForSynchronisation) {
  void* memory = malloc_(0, 16);
  void* pinned = nullptr;
  void* stream = runtime_->stream(0);
  ASSERT_EQ(runtime_->allocate(MemoryKind::pinned, 0, 16, &pinned), Status::ok);
  std::memset(pinned, 1, 16);
  ASSERT_EQ(write_(memory, "0123456789abcdef", 16), 0);
  ASSERT_EQ(runtime_->copy(pinned, memory, 16, 0, stream), Status::ok);
  EXPECT_EQ(static_cast<char*>(pinned)[0], 1);
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok);
  EXPECT_EQ(std::memcmp(pinned, "0123456789abcdef", 16), 0);
  runtime_->release(MemoryKind::pinned, 0, pinned);
  free_(memory);
}

TEST_F(SimulatedDevice, StrayKernelsAreReported) {
  const auto rows = layout::repeat(layout::block(0, 4), 10, 8);
  void* memory = malloc_(0, 76);  // exactly what the layout spans
  void* packed = malloc_(0, 40);
  void* stream = runtime_->stream(0);
  const auto run = [&](void* from, void* to, const layout::LayoutPointer& layout) {
    const Job job{layout.get(), {1, 0}, 0, 40, Direction::pack, from, to};
    EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok);
    return runtime_->synchronize(0, stream);
  };
  EXPECT_EQ(run(memory, packed, rows), Status::ok);
  EXPECT_EQ(run(memory, packed, layout::shift(rows, 4)), Status::failed) << "past the end";
  EXPECT_STRNE(runtime_->last_error(), "");
  EXPECT_EQ(run(memory, packed, layout::shift(rows, -4)), Status::failed) << "before the start";
  char pageable[40];
  EXPECT_EQ(run(memory, pageable, rows), Status::failed) << "host memory the GPU cannot address";
  EXPECT_EQ(run(memory, packed, rows), Status::ok) << "and the stream is well again";
  free_(memory);
  free_(packed);
}

TEST_F(SimulatedDevice, FailuresComeWhenAskedFor) {
  void* stream = runtime_->stream(0);
  void* pointer = nullptr;
  ASSERT_EQ(fail_("allocate", 1, 1), 0);
  ASSERT_EQ(runtime_->allocate(MemoryKind::device, 0, 64, &pointer), Status::ok);
  void* second = nullptr;
  EXPECT_EQ(runtime_->allocate(MemoryKind::device, 0, 64, &second), Status::out_of_memory);
  EXPECT_EQ(second, nullptr);
  ASSERT_EQ(fail_("copy", 0, 1), 0);
  EXPECT_EQ(runtime_->copy(pointer, pointer, 8, 0, stream), Status::failed);
  EXPECT_STREQ(runtime_->last_error(), "simulated failure of copy");
  ASSERT_EQ(fail_("synchronize", 0, 1), 0);
  EXPECT_EQ(runtime_->synchronize(0, stream), Status::failed);
  ASSERT_EQ(fail_("stream", 0, 1), 0);
  EXPECT_EQ(runtime_->stream(0), nullptr);
  const auto ragged = layout::segments(std::vector<layout::Segment>{{0, 4}, {8, 12}, {40, 4}});
  const Job job{ragged.get(), {1, 0}, 0, 8, Direction::pack, pointer, static_cast<char*>(pointer) + 48};
  ASSERT_EQ(fail_("run", 0, 1), 0);
  EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::failed);
  ASSERT_EQ(fail_("upload", 0, 1), 0);
  EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::out_of_memory);
  EXPECT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok);
  EXPECT_EQ(runtime_->synchronize(0, stream), Status::ok);
  EXPECT_EQ(fail_("nonsense", 0, 1), -1);
  runtime_->release(MemoryKind::device, 0, pointer);
}

TEST_F(SimulatedDevice, EverythingIsCountedAndLayoutsAreUploadedOnce) {
  const auto rows = layout::repeat(layout::block(0, 4), 10, 8);
  const auto ragged = layout::segments(std::vector<layout::Segment>{{0, 4}, {8, 12}, {40, 24}});
  void* memory = malloc_(0, 256);
  void* packed = malloc_(0, 256);
  void* stream = runtime_->stream(0);
  const std::size_t before = in_use_();
  void* pinned = nullptr;
  reset_();
  ASSERT_EQ(runtime_->allocate(MemoryKind::pinned, 0, 64, &pinned), Status::ok);
  EXPECT_EQ(in_use_(), before + 64);
  const Job strided{rows.get(), {1, 0}, 0, 40, Direction::pack, memory, packed};
  const Job listed{ragged.get(), {1, 0}, 0, 40, Direction::pack, memory, packed};
  const auto block = layout::block(0, 32);
  const Job contiguous{block.get(), {1, 0}, 0, 32, Direction::pack, memory, packed};
  for (int i = 0; i < 5; ++i) {
    for (const Job& job : {strided, listed, contiguous}) {
      ASSERT_EQ(engine_->run({&job, 1}, 0, stream), Status::ok);
    }
  }
  ASSERT_EQ(runtime_->synchronize(0, stream), Status::ok);
  EXPECT_EQ(count_("launches"), 10);
  EXPECT_EQ(count_("copies"), 5);
  EXPECT_EQ(count_("uploads"), 1);
  EXPECT_EQ(count_("synchronisations"), 1);
  EXPECT_EQ(count_("allocations"), 1);
  EXPECT_EQ(count_("nonsense"), -1);
  runtime_->release(MemoryKind::pinned, 0, pinned);
  EXPECT_EQ(in_use_(), before);
  char bytes[8];
  EXPECT_EQ(read_(bytes, static_cast<char*>(memory) + 250, 8), -1);
  free_(memory);
  free_(packed);
}

}  // namespace
}  // namespace gapless::tests

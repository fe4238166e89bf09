// What threads have cached of jobs, batches and copies between layouts is found by all that it depends on: the layout,
// be it a new one at the address of one that is gone, its repetitions, the range, the addresses, the GPU, the context.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "layout/algebra/canonical.hpp"
#include "pack/gpu/batch/issue.hpp"
#include "pack/gpu/batch/pair_batch.hpp"
#include "random_layout.hpp"
#include "seed.hpp"
#include "sequential_kernels.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;
using device::Status;
using layout::Layout;
using layout::Mode;
using pack::Direction;
using pack::Job;
using pack::PairJob;

constexpr Offset packed_bytes = 64;  ///< of each layout

/// Descriptors in ordinary memory, and the GPU that each is for.
class DeviceDescriptors final : public DescriptorMemory {
 public:
  Upload upload(int device, const void* bytes, std::size_t count) noexcept override {
    void* const copy = std::malloc(count);
    std::memcpy(copy, bytes, count);
    devices_[copy] = device;
    return {copy, nullptr};
  }
  void release(int, const Upload& upload, std::size_t) noexcept override {
    devices_.erase(upload.bytes);
    std::free(upload.bytes);
  }
  int device_of(const Descriptor& descriptor) const { return devices_.at(descriptor.bytes()); }

 private:
  std::unordered_map<const void*, int> devices_;
};

/// What a process has of one GPU's context.
struct Context {
  std::shared_ptr<DeviceDescriptors> memory = std::make_shared<DeviceDescriptors>();
  DescriptorCache cache{memory, 1 << 20};
  Planner planner{cache};
};

/// Runs launches at once, and looks whether their descriptors are there and the GPU's.
class Sink final : public LaunchSink, public PairSink {
 public:
  Sink(const Context& context, int device) : context_(context), device_(device) {}

  Status launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool) override {
    expect_own(descriptor);
    EXPECT_TRUE(descriptor || !std::visit([](const auto& any) { return needs_descriptor(any); }, work));
    std::visit([this](const auto& any) { run(any); }, work);
    return Status::ok;
  }
  Status launch(const BatchPart& part, bool) override {
    for (const auto& descriptor : part.batch().descriptors()) expect_own(descriptor);
    part.visit_parameters({}, [&](const auto& parameters, std::size_t) {
      for (std::uint32_t tile = 0; tile < part.tiles(); ++tile) {
        const BatchTile found = find_tile(parameters, tile);
        run_fused_tile(found.tag, parameters.works + found.position, found.tile, block_);
      }
    });
    return Status::ok;
  }
  std::optional<Status> launch_from_table(const Batch&, bool) override { return std::nullopt; }

  Status launch(const PlannedPair& planned, bool) override {
    expect_own(planned.source);
    expect_own(planned.destination);
    std::visit([this](const auto& any) { run(any); }, planned.launch);
    return Status::ok;
  }
  Status launch(const PairBatch& batch, bool) override {
    for (std::uint32_t tile = 0; tile < batch.tiles(); ++tile) run_pair_batch_tile(batch, tile, block_);
    return Status::ok;
  }

 private:
  void expect_own(const std::shared_ptr<Descriptor>& descriptor) const {
    if (descriptor) {
      EXPECT_EQ(context_.memory->device_of(*descriptor), device_);
    }
  }

  template <class Work>
  static bool needs_descriptor(const Work& work) {
    if constexpr (requires { work.tree; }) return true;
    if constexpr (requires { work.nest; }) return work.nest.table_level >= 0;
    return false;
  }

  static void run(std::monostate) {}
  static void run(const ContiguousWork& work) {
    auto* const memory = reinterpret_cast<char*>(work.memory);
    auto* const packed = reinterpret_cast<char*>(work.packed);
    std::memcpy(work.unpack ? memory : packed, work.unpack ? packed : memory, work.bytes);
  }
  template <class Places>
  void run(const PairWork<Places>& work) const {
    visit_word(work.word_shift, [&](auto word) {
      for (std::uint64_t tile = 0; tile < work.tiles(); ++tile) run_pair_tile<decltype(word)>(work, tile, block_);
    });
  }
  void run(const OrderedPairWork& work) const { run_pair_tile(work, block_); }
  template <class Work>
  void run(const Work& work) const {
    SequentialKernels<DirectSpace>{space_}(work);
  }

  const Context& context_;
  int device_;
  DirectSpace space_;
  SequentialBlock<DirectSpace> block_{space_};
};

/// A layout of packed_bytes bytes at an address that other layouts had before it, and where its bytes lie.
class Slot {
 public:
  void put(const Sample& sample) {
    layout_.reset();
    layout_ = LayoutPointer(new (storage_) Layout(*sample.layout), [](const Layout* layout) { layout->~Layout(); });
    map_ = sample.map;
  }
  const Layout* layout() const { return layout_.get(); }
  std::vector<Offset> map(Mode outer) const { return repeated_map(map_, outer.count, outer.stride); }

 private:
  alignas(Layout) std::byte storage_[sizeof(Layout)];
  LayoutPointer layout_;
  std::vector<Offset> map_;
};

class Caches : public ::testing::Test {
 protected:
  static constexpr Offset memory_bytes = 4096, origin = 512;
  static constexpr int places = 3, steps = 6000;

  Caches() {
    for (Slot& slot : slots_) slot.put(sample());
  }

  /// Blocks in a row or in two, or runs.
  Sample sample() {
    const Offset length = Offset{4} << random_.number(0, 2), rows = packed_bytes / length;
    const Offset stride = length + 4 * random_.number(1, 4);
    std::vector<layout::Segment> runs;
    for (Offset i = 0; i < rows; ++i) {
      const Offset shift = random_.number(0, 1) * 4;
      runs.push_back({i * stride + shift, length});
    }
    const bool is_list = random_.number(0, 1) == 0;
    Sample sample{is_list ? layout::segments(runs) : layout::repeat(layout::block(0, length), rows, stride), {}};
    for (Offset k = 0; k < packed_bytes; ++k) {
      sample.map.push_back(is_list ? runs[k / length].offset + k % length : k / length * stride + k % length);
    }
    return sample;
  }

  /// Another layout in some slot, now and then.
  void change() {
    if (random_.number(0, 3) == 0) slots_[random_.number(0, slots_.size() - 1)].put(sample());
  }
  const Slot& slot() { return slots_[random_.number(0, slots_.size() - 1)]; }
  Mode outer(Offset count) { return {count, 480 + 4 * random_.number(0, 1)}; }

  void refill() {
    for (char& byte : memory_) byte = static_cast<char>(random_.bits());
    for (char& byte : packed_) byte = static_cast<char>(random_.bits());
    expected_memory_ = memory_;
    expected_packed_ = packed_;
  }
  void expect_right(int step) const {
    ASSERT_TRUE(memory_ == expected_memory_) << "step " << step;
    ASSERT_TRUE(packed_ == expected_packed_) << "step " << step;
  }

  /// All of a job but its addresses and the layout that is in its slot.
  struct Description {
    std::size_t slot;
    Mode outer;
    Offset begin;
    Direction direction;
  };

  Description description() {
    const auto slot = static_cast<std::size_t>(random_.number(0, slots_.size() - 1));
    const auto direction = random_.number(0, 1) == 0 ? Direction::pack : Direction::unpack;
    return {slot, outer(random_.number(1, 3)), 4 * random_.number(0, 1), direction};
  }

  /// In its own place of both memories.
  Job job(const Description& described, Offset place) {
    const auto& [slot, repetitions, begin, direction] = described;
    const Offset size = packed_bytes * repetitions.count;
    const Offset memory = place * memory_bytes + origin, packed = place * memory_bytes;
    const auto map = slots_[slot].map(repetitions);
    for (Offset k = begin; k < size; ++k) {
      char &inside = expected_memory_[memory + map[k]], &outside = expected_packed_[packed + k - begin];
      (direction == Direction::pack ? outside : inside) = direction == Direction::pack ? inside : outside;
    }
    return {slots_[slot].layout(),  repetitions, begin, size, direction, memory_.data() + memory,
            packed_.data() + packed};
  }

  RandomLayouts random_{random_seed()};
  std::array<Context, 2> contexts_;
  std::array<Slot, 3> slots_;
  std::vector<char> memory_ = std::vector<char>(places * memory_bytes), packed_ = memory_;
  std::vector<char> expected_memory_, expected_packed_;
};

TEST_F(Caches, OfJobsAndBatches) {
  std::vector<Description> described;
  for (int step = 0; step < steps; ++step) {
    change();
    refill();
    Context& context = contexts_[random_.number(0, 1)];
    const int device = static_cast<int>(random_.number(0, 1));
    // Mostly the same jobs again, of other layouts now and then.
    if (random_.number(0, 4) == 0) described.clear();
    if (described.empty()) {
      for (Offset count = random_.number(1, places); count > 0; --count) described.push_back(description());
    } else if (random_.number(0, 2) == 0) {
      described[random_.number(0, described.size() - 1)] = description();
    }
    std::vector<Job> jobs;
    for (std::size_t place = 0; place < described.size(); ++place) {
      jobs.push_back(job(described[place], static_cast<Offset>(place)));
    }
    Sink sink(context, device);
    ASSERT_EQ(issue(context.planner, jobs, device, sink), Status::ok);
    ASSERT_NO_FATAL_FAILURE(expect_right(step));
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(Caches, OfCopiesBetweenLayouts) {
  for (int step = 0; step < steps; ++step) {
    change();
    refill();
    Context& context = contexts_[random_.number(0, 1)];
    const int device = static_cast<int>(random_.number(0, 1));
    const Slot &from = slot(), &to = slot();
    const Offset count = random_.number(1, 3);
    const Mode source = outer(count), destination = outer(count);
    const auto source_map = from.map(source), destination_map = to.map(destination);
    for (std::size_t k = 0; k < source_map.size(); ++k) {
      expected_packed_[origin + destination_map[k]] = memory_[origin + source_map[k]];
    }
    const PairJob job{from.layout(), source,      memory_.data() + origin,
                      to.layout(),   destination, packed_.data() + origin};
    Sink sink(context, device);
    ASSERT_EQ(issue(context.planner, {&job, 1}, device, sink), Status::ok);
    ASSERT_NO_FATAL_FAILURE(expect_right(step));
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace gapless::tests

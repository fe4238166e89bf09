// Segments of long messages: bytes that arrive or find room piece by piece, and no more page-locked memory than there
// is.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "layout/datatype/datatype.hpp"
#include "model/gpu.hpp"
#include "simulated_gpu.hpp"
#include "transfer/segments.hpp"

namespace gapless::tests {
namespace {

using device::MemoryKind;
using layout::Offset;
using pack::Direction;
using transfer::Result;
using transfer::Segments;
using Bytes = std::vector<unsigned char>;

constexpr Offset block = 96, gap = 32, blocks = 70'000;
constexpr Offset packed_size = block * blocks;  // several segments, and a part of one

class SegmentsOfVector : public ::testing::Test {
 protected:
  SegmentsOfVector() : memory_(static_cast<std::size_t>(type_.extent())), packed_(packed_size) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<unsigned char>(i * 2654435761u >> 23);
    for (std::size_t i = 0; i < packed_.size(); ++i) packed_[i] = static_cast<unsigned char>(i * 40503u >> 7);
    on_gpu_ = gpu_.allocate(0, memory_.size());
    EXPECT_EQ(gpu_.write(on_gpu_, memory_.data(), memory_.size()), 0);
  }
  ~SegmentsOfVector() override {
    gpu_.fail("run", 0, 0);
    gpu_.fail("allocate", 0, 0);
    gpu_.fail("synchronize", 0, 0);
    transfer::drain_pools();
    gpu_.release(on_gpu_);
  }

  pack::Job job(Direction direction, Offset begin = 0, Offset end = packed_size) {
    return {type_.layout.get(), {1, type_.extent()}, begin, end, direction, on_gpu_, packed_.data() + begin};
  }
  static std::size_t place_of(Offset k) { return static_cast<std::size_t>(k / block * (block + gap) + k % block); }
  /// Packed bytes [begin, end) are those of the memory, and no other byte has changed.
  void expect_packed(Offset begin, Offset end) {
    const Bytes before = before_;
    for (Offset k = 0; k < packed_size; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const unsigned char wanted = k >= begin && k < end ? memory_[place_of(k)] : before[i];
      ASSERT_EQ(packed_[i], wanted) << k;
    }
  }
  void expect_unpacked(Offset begin, Offset end) {
    Bytes wanted = memory_, found(memory_.size());
    for (Offset k = begin; k < end; ++k) wanted[place_of(k)] = packed_[static_cast<std::size_t>(k)];
    ASSERT_EQ(gpu_.read(found.data(), on_gpu_, found.size()), 0);
    ASSERT_TRUE(found == wanted);
  }

  const SimulatedGpu gpu_;
  const layout::Datatype type_ = layout::vector(blocks, block, block + gap, layout::named(1, 1));
  Bytes memory_, packed_;
  Bytes before_ = Bytes(packed_size, 0);
  void* on_gpu_ = nullptr;
};

TEST_F(SegmentsOfVector, MoveAllThatIsAllowed) {
  for (const auto& [begin, end] : {std::pair<Offset, Offset>{0, packed_size}, {1001, packed_size - 77}, {5, 6}}) {
    before_ = packed_;
    Segments segments;
    ASSERT_EQ(segments.begin(job(Direction::pack, begin, end), 0), Result::ok);
    segments.allow(end);
    ASSERT_EQ(segments.wait(), Result::ok);
    EXPECT_EQ(segments.moved(), end);
    expect_packed(begin, end);
    ASSERT_EQ(segments.begin(job(Direction::unpack, begin, end), 0), Result::ok);
    segments.allow(end);
    ASSERT_EQ(segments.wait(), Result::ok);
    expect_unpacked(begin, end);
  }
}

TEST_F(SegmentsOfVector, UnpackWhatHasArrivedMeanwhile) {
  const Bytes arriving = packed_;
  std::fill(packed_.begin(), packed_.end(), 0);
  Segments segments;
  ASSERT_EQ(segments.begin(job(Direction::unpack), 0), Result::ok);
  Offset arrived = 0;
  Result result = Result::under_way;
  for (int looks = 0; result == Result::under_way; ++looks) {
    ASSERT_LT(looks, 100'000);
    const Offset next = std::min<Offset>(packed_size, arrived + 300'001);
    std::copy(arriving.begin() + arrived, arriving.begin() + next, packed_.begin() + arrived);
    arrived = next;
    segments.allow(arrived);
    result = segments.advance();
    ASSERT_LE(segments.moved(), arrived);
    if (arrived == packed_size / 2) {
      ASSERT_EQ(segments.wait(), Result::under_way);
    }
  }
  EXPECT_EQ(result, Result::ok);
  expect_unpacked(0, packed_size);
}

TEST_F(SegmentsOfVector, WaitEndsWhereNothingMoreIsAllowed) {
  before_ = packed_;
  Segments segments;
  ASSERT_EQ(segments.begin(job(Direction::pack), 0), Result::ok);
  ASSERT_EQ(segments.wait(), Result::under_way);
  EXPECT_EQ(segments.moved(), 0);
  segments.allow(packed_size / 2);
  ASSERT_EQ(segments.wait(), Result::under_way);
  EXPECT_GT(segments.moved(), packed_size / 4);
  EXPECT_LE(segments.moved(), packed_size / 2);
  expect_packed(0, segments.moved());
  segments.allow(packed_size);
  ASSERT_EQ(segments.wait(), Result::ok);
  expect_packed(0, packed_size);
}

TEST_F(SegmentsOfVector, OneSegmentIsEnough) {
  transfer::drain_pools();
  before_ = packed_;
  gpu_.fail("allocate", 1, -1);
  Segments segments;
  ASSERT_EQ(segments.begin(job(Direction::pack), 0), Result::ok);
  segments.allow(packed_size);
  ASSERT_EQ(segments.wait(), Result::ok);
  expect_packed(0, packed_size);
}

TEST_F(SegmentsOfVector, NoneIsNoMemory) {
  transfer::drain_pools();
  gpu_.fail("allocate", 0, -1);
  EXPECT_FALSE(Segments::are_to_be_had(0, packed_size));
  Segments segments;
  EXPECT_EQ(segments.begin(job(Direction::pack), 0), Result::out_of_memory);
}

TEST_F(SegmentsOfVector, TakeNoMemoryOnceTheyAreKnown) {
  for (const int round : {0, 1}) {
    gpu_.reset_counts();
    Segments segments;
    ASSERT_EQ(segments.begin(job(Direction::pack), 0), Result::ok);
    segments.allow(packed_size);
    ASSERT_EQ(segments.wait(), Result::ok);
    const auto of_a_segment = static_cast<Offset>(model::gpu_tuning.segment_bytes);
    EXPECT_EQ(gpu_.count("launches") + gpu_.count("copies"), (packed_size + of_a_segment - 1) / of_a_segment);
    EXPECT_EQ(gpu_.count("synchronisations"), 0);
    if (round == 1) {
      EXPECT_EQ(gpu_.count("allocations"), 0);
    }
  }
}

TEST_F(SegmentsOfVector, FailuresEndTheMovement) {
  for (const char* operation : {"run", "synchronize"}) {
    for (const Direction direction : {Direction::pack, Direction::unpack}) {
      for (const long successes : {0, 3}) {
        Segments segments;
        ASSERT_EQ(segments.begin(job(direction), 0), Result::ok);
        segments.allow(packed_size);
        gpu_.fail(operation, successes, 1);
        EXPECT_EQ(segments.wait(), Result::device_failed) << operation << " after " << successes;
        gpu_.fail(operation, 0, 0);
      }
    }
  }
}

TEST_F(SegmentsOfVector, AbandonedOnesAreWaitedFor) {
  {
    Segments segments;
    ASSERT_EQ(segments.begin(job(Direction::unpack), 0), Result::ok);
    segments.allow(packed_size);
    ASSERT_EQ(segments.advance(), Result::under_way);
  }
  transfer::drain_pools();  // of memory that no kernel reads any more
  Bytes found(memory_.size());
  EXPECT_EQ(gpu_.read(found.data(), on_gpu_, found.size()), 0);
}

}  // namespace
}  // namespace gapless::tests

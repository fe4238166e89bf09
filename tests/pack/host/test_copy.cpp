// Copies from one layout to another against type maps: in packed order, whatever lies upon what, and without memory
// from the heap where two jobs do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "case.hpp"
#include "pack/host/engine.hpp"

namespace {
std::size_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace gapless::pack::testing {
namespace {

TEST(Copy, OfBytes) {
  Random random(random_seed());
  for (Offset count = 0; count < 700; ++count) {
    const Offset start = guard + pick(random, 0, 63), from = pick(random, 0, 63);
    const Bytes source = random_bytes(random, static_cast<std::size_t>(from + count));
    const Bytes before = random_bytes(random, static_cast<std::size_t>(start + count + guard));
    Bytes expected = before;
    std::copy_n(source.begin() + from, count, expected.begin() + start);
    for (const std::string_view name : host::implementations()) {
      ASSERT_TRUE(host::select_implementation(name));
      Bytes result = before;
      host::copy_bytes(result.data() + start, source.data() + from, static_cast<std::size_t>(count));
      ASSERT_EQ(result, expected) << count << " bytes by " << name << ", seed " << random_seed();
    }
  }
}

/// Copies with every implementation, and compares with a plain loop over both type maps.
void check_copy(const Case& source, const Case& destination, Random& random) {
  ASSERT_EQ(source.size(), destination.size());
  Offset low = 0, high = 0, to_low = 0, to_high = 0;
  for (Offset k = 0; k < source.size(); ++k) {
    low = std::min(low, source.where(k));
    high = std::max(high, source.where(k) + 1);
    to_low = std::min(to_low, destination.where(k));
    to_high = std::max(to_high, destination.where(k) + 1);
  }
  const Bytes memory = random_bytes(random, static_cast<std::size_t>(high - low));
  const Bytes before = random_bytes(random, static_cast<std::size_t>(to_high - to_low + 2 * guard));
  Bytes expected = before;
  for (Offset k = 0; k < source.size(); ++k) {
    expected[static_cast<std::size_t>(guard - to_low + destination.where(k))] =
        memory[static_cast<std::size_t>(source.where(k) - low)];
  }
  for (const std::string_view name : host::implementations()) {
    ASSERT_TRUE(host::select_implementation(name));
    Bytes result = before;
    host::copy(*source.sample.layout, source.outer, memory.data() - low, *destination.sample.layout, destination.outer,
               result.data() + guard - to_low);
    ASSERT_EQ(result, expected) << name;
  }
}

TEST(Copy, AgreesWithPackingThenUnpacking) {
  Random random(random_seed());
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    const Sample from = random_sample(random, static_cast<int>(i % 4), pick(random, 1, 400));
    const Offset count = pick(random, 1, 5);
    const Mode from_outer{count, random_stride(random, reach(from))};
    const Offset size = static_cast<Offset>(from.map.size()) * count;
    // A destination of the same size: half of them cut at the same places, half elsewhere.
    const Sample element = i % 2 ? block(3, static_cast<Offset>(from.map.size())) : block(3, 1);
    const Sample to =
        repeat(element, size / static_cast<Offset>(element.map.size()), random_stride(random, reach(element)));
    ASSERT_NO_FATAL_FAILURE(check_copy({from, from_outer, {}, 0, 0}, {to, {1, 0}, {}, 0, 0}, random));
  }
}

/// Runs of `bytes` bytes in all; some lie upon others if `overlaps`.
Sample ragged(Random& random, Offset bytes, Offset longest, bool overlaps) {
  std::vector<layout::Segment> runs;
  for (Offset at = pick(random, -50, 50); bytes > 0;) {
    const Offset length = std::min(pick(random, 1, longest), bytes);
    runs.push_back({at, length});
    bytes -= length;
    at += overlaps && pick(random, 0, 3) == 0 ? pick(random, -100, 100) : length + pick(random, 1, 9);
  }
  return segments(runs);
}

TEST(Copy, BetweenListsInPieces) {
  Random random(random_seed());
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    const Offset bytes = i % 3 == 0 ? pick(random, 1, 300) : pick(random, 16'000, 50'000);
    const Offset longest = i % 4 == 0 ? 20'000 : 60;
    const Sample from = ragged(random, bytes, longest, true), to = ragged(random, bytes, 40, i % 2 == 0);
    ASSERT_NO_FATAL_FAILURE(check_copy({from, {1, 0}, {}, 0, 0}, {to, {1, 0}, {}, 0, 0}, random));
    const Sample row = block(5, bytes);
    ASSERT_NO_FATAL_FAILURE(check_copy({from, {1, 0}, {}, 0, 0}, {row, {1, 0}, {}, 0, 0}, random));
    ASSERT_NO_FATAL_FAILURE(check_copy({row, {1, 0}, {}, 0, 0}, {to, {1, 0}, {}, 0, 0}, random));
    const Mode bytewise{bytes, 1};
    ASSERT_NO_FATAL_FAILURE(check_copy({from, {1, 0}, {}, 0, 0}, {block(0, 1), bytewise, {}, 0, 0}, random));
    ASSERT_NO_FATAL_FAILURE(check_copy({block(0, 1), {bytes, 2}, {}, 0, 0}, {to, {1, 0}, {}, 0, 0}, random));
  }
}

TEST(Copy, AllocatesNothingButForTwoStridedSides) {
  Random random(random_seed());
  const Sample list = ragged(random, 40'000, 60, false), other = ragged(random, 40'000, 60, false);
  const Sample row = block(0, 40'000), rows = repeat(block(0, 8), 5000, 12), planes = repeat(block(0, 4), 10'000, 9);
  const auto allocations_of = [](const Sample& from, const Sample& to) {
    Bytes memory(static_cast<std::size_t>(200 + reach(from))), result(static_cast<std::size_t>(200 + reach(to)));
    const std::size_t before = allocations;
    host::copy(*from.layout, {1, 0}, memory.data() + 100, *to.layout, {1, 0}, result.data() + 100);
    return allocations - before;
  };
  EXPECT_GT(allocations_of(rows, planes), 0u) << "nothing is counted";
  for (const Sample* sample : {&list, &row, &rows}) {
    EXPECT_EQ(allocations_of(*sample, row), 0u);
    EXPECT_EQ(allocations_of(row, *sample), 0u);
    EXPECT_EQ(allocations_of(list, *sample), 0u);
    EXPECT_EQ(allocations_of(*sample, other), 0u);
  }
}

TEST(Copy, OfNothingTouchesNothing) {
  const auto none = layout::empty();
  host::copy(*none, {3, 8}, nullptr, *none, {1, 0}, nullptr);
  const auto some = layout::block(0, 8);
  host::copy(*some, {0, 8}, nullptr, *some, {0, 16}, nullptr);
}

}  // namespace
}  // namespace gapless::pack::testing

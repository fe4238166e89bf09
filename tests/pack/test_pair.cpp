// Copies between two layouts, on every plugin, against plain lists of offsets.
#include <deque>
#include <vector>

#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

using pack::PairJob;

/// One side of a copy: `count` repetitions of a sample in memory of its own.
struct Side {
  Sample sample;
  Offset count, extent, origin;
  std::vector<Offset> map;
  std::vector<char> bytes;
  Memory memory;

  Side(Runtime& runtime, RandomLayouts& random, Sample drawn, Offset repetitions, bool overlapping, int device)
      : sample(std::move(drawn)),
        count(repetitions),
        extent(overlapping ? random.number(-16, 16) : (sample.high() - sample.low() + 15) / 16 * 16),
        map(repeated_map(sample.map, count, extent)),
        memory(runtime, MemoryKind::device, span() + 128, device) {
    const auto [low, high] = std::minmax_element(map.begin(), map.end());
    origin = (48 - *low + 15) / 16 * 16 + random.number(0, 3) / 3 * random.number(0, 31);
    bytes = random_bytes(random, static_cast<std::size_t>(span() + 128));
    memory.fill(bytes);
  }

  std::size_t span() const {
    const auto [low, high] = std::minmax_element(map.begin(), map.end());
    return static_cast<std::size_t>(*high - *low + 1);
  }
  char* pointer() const { return memory.pointer() + origin; }
};

class PairTest : public RuntimeTest {
 protected:
  void copy(Side& source, Side& destination, int device = 0) {
    const PairJob job{source.sample.layout.get(),      {source.count, source.extent},           source.pointer(),
                      destination.sample.layout.get(), {destination.count, destination.extent}, destination.pointer()};
    void* stream = runtime_->stream(device);
    expect_ok(engine_->copy(job, device, stream));
    expect_ok(runtime_->synchronize(device, stream));
    for (std::size_t k = 0; k < source.map.size(); ++k) {
      destination.bytes[destination.origin + destination.map[k]] = source.bytes[source.origin + source.map[k]];
    }
    ASSERT_EQ(destination.memory.contents(), destination.bytes);
    ASSERT_EQ(source.memory.contents(), source.bytes);
  }
};

Sample row(Offset length) {
  Sample sample{layout::block(0, length), std::vector<Offset>(static_cast<std::size_t>(length))};
  std::iota(sample.map.begin(), sample.map.end(), Offset{0});
  return sample;
}

/// `count` rows of `length` bytes, `stride` apart.
Sample rows(Offset length, Offset count, Offset stride) {
  Sample sample{layout::repeat(layout::block(0, length), count, stride), {}};
  for (Offset i = 0; i < count; ++i) {
    for (Offset k = 0; k < length; ++k) sample.map.push_back(i * stride + k);
  }
  return sample;
}

TEST_P(PairTest, RandomLayoutsOfOneSize) {
  RandomLayouts random(random_seed());
  int copies = 0;
  for (int i = 0; i < 400; ++i) {
    const bool overlapping = i % 7 == 0;
    const Sample one = random.next(overlapping), other = random.next(i % 11 == 0);
    const auto a = static_cast<Offset>(one.map.size()), b = static_cast<Offset>(other.map.size());
    const Offset both = std::lcm(a, b);
    if (both > 60000) continue;
    Side source(*runtime_, random, one, both / a, overlapping, 0),
        destination(*runtime_, random, other, both / b, i % 11 == 0, 0);
    ASSERT_NO_FATAL_FAILURE(copy(source, destination)) << "pair " << i;
    ++copies;
  }
  EXPECT_GT(copies, 50);
}

TEST_P(PairTest, RowsOfAnyLengthsThatRefineEachOtherOrNot) {
  RandomLayouts random(random_seed());
  for (const auto& [source_length, destination_length] :
       {std::pair<Offset, Offset>{4, 8}, {16, 16}, {12, 8}, {8, 12}, {1, 60}, {120, 120}, {20, 24}}) {
    Side source(*runtime_, random, rows(source_length, 1200 / source_length, source_length + 8), 7, false, 0);
    Side destination(*runtime_, random, rows(destination_length, 1200 / destination_length, destination_length + 16), 7,
                     false, 0);
    ASSERT_NO_FATAL_FAILURE(copy(source, destination)) << source_length << " to " << destination_length;
    Side packed(*runtime_, random, row(8400), 1, false, 0);
    ASSERT_NO_FATAL_FAILURE(copy(source, packed)) << source_length;
    ASSERT_NO_FATAL_FAILURE(copy(packed, destination)) << destination_length;
    Side again(*runtime_, random, row(8400), 1, false, 0);
    ASSERT_NO_FATAL_FAILURE(copy(packed, again));
  }
}

TEST_P(PairTest, TransposesWithoutABuffer) {
  RandomLayouts random(random_seed());
  constexpr Offset n = 60, m = 44;
  Sample columns{layout::repeat(layout::repeat(layout::block(0, 4), n, m * 4), m, 4), {}};
  for (Offset column = 0; column < m; ++column) {
    for (Offset r = 0; r < n; ++r) {
      for (Offset k = 0; k < 4; ++k) columns.map.push_back(r * m * 4 + column * 4 + k);
    }
  }
  Side source(*runtime_, random, columns, 1, false, 0),
      destination(*runtime_, random, rows(n * 4, m, n * 4 + 16), 1, false, 0);
  ASSERT_NO_FATAL_FAILURE(copy(source, destination));
}

/// More than one launch takes: rows of any length and alignment, and rows of rows, among them.
TEST_P(PairTest, ManyAtOnce) {
  RandomLayouts random(random_seed());
  std::deque<Side> sources, destinations;
  std::vector<PairJob> jobs;
  for (int i = 0; i < 70; ++i) {
    const Offset length = i % 3 == 0 ? random.number(1, 5000) : 4 * random.number(1, 12), count = random.number(1, 40);
    const Sample from = i % 3 == 0 ? row(length) : rows(length, count, length + 8);
    const Sample into = i % 3 == 0 ? row(length) : rows(length, count, length + 4 * random.number(1, 9));
    const Side& source = sources.emplace_back(*runtime_, random, from, 1, false, 0);
    const Side& destination = destinations.emplace_back(*runtime_, random, into, 1, false, 0);
    jobs.push_back({source.sample.layout.get(),
                    {1, 0},
                    source.pointer(),
                    destination.sample.layout.get(),
                    {1, 0},
                    destination.pointer()});
  }
  pack::Ticket ticket = engine_->submit(jobs, 0);
  expect_ok(ticket.is_under_way() ? engine_->wait(ticket) : ticket.status);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Side& source = sources[i];
    Side& destination = destinations[i];
    for (std::size_t k = 0; k < source.map.size(); ++k)
      destination.bytes[destination.origin + destination.map[k]] = source.bytes[source.origin + source.map[k]];
    ASSERT_EQ(destination.memory.contents(), destination.bytes) << "copy " << i;
  }
}

TEST_P(PairTest, NothingIsCopiedAndNothingTouched) {
  const auto nothing = layout::empty();
  expect_ok(engine_->copy(PairJob{nothing.get(), {3, 0}, nullptr, nothing.get(), {1, 0}, nullptr}, 0, stream_));
  const auto some = layout::repeat(layout::block(0, 4), 10, 8);
  expect_ok(engine_->copy(PairJob{some.get(), {0, 80}, nullptr, nothing.get(), {1, 0}, nullptr}, 0, stream_));
}

TEST_P(PairTest, IntoAPeersMemory) {
  expect_ok(runtime_->enable_peer(0, 0));
  if (runtime_->device_count() < 2) GTEST_SKIP() << "needs two GPUs";
  const Status status = runtime_->enable_peer(0, 1);
  if (status == Status::unsupported) GTEST_SKIP() << runtime_->last_error();
  expect_ok(status);
  expect_ok(runtime_->enable_peer(0, 1));
  RandomLayouts random(random_seed());
  Side source(*runtime_, random, rows(12, 100, 20), 3, false, 0),
      destination(*runtime_, random, rows(36, 100, 48), 1, false, 1);
  ASSERT_NO_FATAL_FAILURE(copy(source, destination));
  expect_ok(runtime_->enable_peer(1, 0));
  ASSERT_NO_FATAL_FAILURE(copy(source, destination, 1)) << "pulled";
}

GAPLESS_FOR_EVERY_PLUGIN(PairTest);

}  // namespace
}  // namespace gapless::tests

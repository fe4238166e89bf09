// Packed bytes in host memory, on every plugin: long rows and lists of few long runs, which copy engines move, and
// large unpacks, which go in chunks. Expected contents come from plain loops.
#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

struct Runs {
  LayoutPointer layout;
  std::vector<Offset> places;  ///< where each packed byte lies
  Offset span = 0;             ///< bytes of memory

  void add(Offset offset, Offset length) {
    for (Offset i = 0; i < length; ++i) places.push_back(offset + i);
    span = std::max(span, offset + length);
  }
  Offset size() const { return static_cast<Offset>(places.size()); }
};

Runs rows(Offset count, Offset length, Offset stride) {
  Runs rows{layout::repeat(layout::block(0, length), count, stride), {}};
  for (Offset i = 0; i < count; ++i) rows.add(i * stride, length);
  return rows;
}

/// Of many lengths and gaps, upwards or downwards.
Runs ragged(Offset count, Offset shortest, Offset longest, bool backwards = false) {
  RandomLayouts random(random_seed());
  std::vector<layout::Segment> list;
  for (Offset i = 0, at = 0; i < count; ++i) {
    list.push_back({at, random.number(shortest, longest)});
    at += list.back().length + random.number(1, longest);
  }
  if (backwards) std::reverse(list.begin(), list.end());
  Runs runs{layout::segments(list), {}};
  for (const layout::Segment& run : list) runs.add(run.offset, run.length);
  return runs;
}

class Bus : public RuntimeTest {
 protected:
  /// Moves [begin, end) each way between GPU and host memory, waiting or not, and compares all memory.
  void expect_right(const Runs& runs, Offset begin, Offset end) {
    SCOPED_TRACE(std::to_string(runs.size()) + " B, from " + std::to_string(begin) + " to " + std::to_string(end));
    const auto span = static_cast<std::size_t>(runs.span), size = runs.places.size();
    Memory memory(*runtime_, MemoryKind::device, span);
    Memory packed(*runtime_, MemoryKind::pinned, size);
    RandomLayouts random(random_seed());
    for (const auto direction : {Direction::pack, Direction::unpack}) {
      for (const bool waits : {false, true}) {
        auto memory_bytes = random_bytes(random, span), packed_bytes = random_bytes(random, size);
        memory.fill(memory_bytes);
        packed.fill(packed_bytes);
        run({runs.layout.get(), {1, 0}, begin, end, direction, memory.pointer(), packed.pointer()}, waits);
        for (Offset k = begin; k < end; ++k) {
          char &inside = memory_bytes[static_cast<std::size_t>(runs.places[static_cast<std::size_t>(k)])],
               &outside = packed_bytes[static_cast<std::size_t>(k - begin)];
          (direction == Direction::pack ? outside : inside) = direction == Direction::pack ? inside : outside;
        }
        ASSERT_TRUE(memory.contents() == memory_bytes) << "memory, direction " << int(direction) << ", waits " << waits;
        ASSERT_TRUE(packed.contents() == packed_bytes) << "packed, direction " << int(direction) << ", waits " << waits;
      }
    }
  }

 private:
  void run(const Job& job, bool waits) {
    if (waits) {
      expect_ok(
          engine_->run_and_wait({&job, 1}, 0, job.direction == Direction::pack ? Reach::beyond : Reach::from_beyond));
    } else {
      expect_ok(engine_->run({&job, 1}, 0, stream_));
      expect_ok(runtime_->synchronize(0, stream_));
    }
  }
};

TEST_P(Bus, LongRows) {
  const Runs long_rows = rows(600, 4096, 8192);
  expect_right(long_rows, 0, long_rows.size());
  expect_right(long_rows, 1, long_rows.size() - 1);
  expect_right(long_rows, 4096 * 5 + 7, 4096 * 500);
  expect_right(long_rows, 100, 4000);
}

TEST_P(Bus, ManyShortRows) {
  const Runs short_rows = rows(20000, 8, 24);
  expect_right(short_rows, 0, short_rows.size());
}

TEST_P(Bus, RaggedRows) {
  const Runs few = ragged(7, 40'000, 80'000), many = ragged(250, 1, 9000), too_many = ragged(1500, 1, 600);
  expect_right(few, 0, few.size());
  expect_right(few, 12'345, few.size() - 54'321);
  expect_right(many, 0, many.size());
  expect_right(many, 5000, many.size() - 1);
  expect_right(too_many, 0, too_many.size());
  const Runs downwards = ragged(20, 40'000, 80'000, true);
  expect_right(downwards, 77, downwards.size());
}

TEST_P(Bus, RowsInChunks) {
  const Runs odd_rows = rows(54000, 100, 130);
  expect_right(odd_rows, 0, odd_rows.size());
  expect_right(odd_rows, 333, odd_rows.size() - 77);
}

GAPLESS_FOR_EVERY_PLUGIN(Bus);

}  // namespace
}  // namespace gapless::tests

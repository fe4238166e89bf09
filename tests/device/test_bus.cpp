// Packed bytes in host memory, on every plugin: long rows, which copy engines move, and large unpacks, which go in
// chunks. Expected contents come from plain loops.
#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

struct Rows {
  Offset count, length, stride;

  Offset size() const { return count * length; }
  Offset span() const { return (count - 1) * stride + length; }
  LayoutPointer layout() const { return layout::repeat(layout::block(0, length), count, stride); }
  /// Where packed byte k lies.
  Offset place(Offset k) const { return k / length * stride + k % length; }
};

class Bus : public RuntimeTest {
 protected:
  /// Moves [begin, end) each way between GPU and host memory, waiting or not, and compares all memory.
  void expect_right(const Rows& rows, Offset begin, Offset end) {
    SCOPED_TRACE(std::to_string(rows.length) + " B rows, from " + std::to_string(begin) + " to " + std::to_string(end));
    Memory memory(*runtime_, MemoryKind::device, static_cast<std::size_t>(rows.span()));
    Memory packed(*runtime_, MemoryKind::pinned, static_cast<std::size_t>(rows.size()));
    RandomLayouts random(test_seed());
    const LayoutPointer layout = rows.layout();
    for (const auto direction : {Direction::pack, Direction::unpack}) {
      for (const bool waits : {false, true}) {
        auto memory_bytes = random_bytes(random, static_cast<std::size_t>(rows.span()));
        auto packed_bytes = random_bytes(random, static_cast<std::size_t>(rows.size()));
        memory_bytes.resize(static_cast<std::size_t>(rows.span()));
        packed_bytes.resize(static_cast<std::size_t>(rows.size()));
        memory.fill(memory_bytes);
        packed.fill(packed_bytes);
        run({layout.get(), {1, 0}, begin, end, direction, memory.pointer(), packed.pointer()}, waits);
        for (Offset k = begin; k < end; ++k) {
          char &inside = memory_bytes[static_cast<std::size_t>(rows.place(k))],
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
          runtime_->run_and_wait({&job, 1}, 0, job.direction == Direction::pack ? Reach::beyond : Reach::from_beyond));
    } else {
      expect_ok(runtime_->run({&job, 1}, 0, stream_));
      expect_ok(runtime_->synchronize(0, stream_));
    }
  }
};

TEST_P(Bus, LongRows) {
  const Rows rows{600, 4096, 8192};
  expect_right(rows, 0, rows.size());
  expect_right(rows, 1, rows.size() - 1);
  expect_right(rows, 4096 * 5 + 7, 4096 * 500);
  expect_right(rows, 100, 4000);
}

TEST_P(Bus, ManyShortRows) { expect_right({20000, 8, 24}, 0, 160000); }

TEST_P(Bus, RowsInChunks) {
  const Rows rows{54000, 100, 130};
  expect_right(rows, 0, rows.size());
  expect_right(rows, 333, rows.size() - 77);
}

GAPLESS_FOR_EVERY_PLUGIN(Bus);

}  // namespace
}  // namespace gapless::tests

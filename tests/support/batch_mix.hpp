// Jobs of one batch at random, and the bytes they must leave, from plain lists of offsets.
#pragma once

#include "runtime_test.hpp"

namespace gapless::tests {

/// Where packed bytes lie.
struct Place {
  MemoryKind kind = MemoryKind::device;
  int device = 0;
};

/// Jobs of one batch with their share of memory and of the packed arena, and what either must hold afterwards.
class Mix {
 public:
  /// An arena of so many bytes for either side.
  Mix(Runtime& runtime, RandomLayouts& random, std::size_t arena = 1 << 20, Place packed = {})
      : random_(random),
        arena_(static_cast<Offset>(arena)),
        memory_(runtime, MemoryKind::device, arena),
        packed_(runtime, packed.kind, arena, packed.device) {
    refill();
  }

  /// Other bytes everywhere.
  void refill() {
    memory_bytes_ = random_bytes(random_, static_cast<std::size_t>(arena_));
    packed_bytes_ = random_bytes(random_, static_cast<std::size_t>(arena_));
    memory_.fill(memory_bytes_);
    packed_.fill(packed_bytes_);
  }

  /// Adds any job that there is still room for.
  void add() {
    const bool overlapping = random_.number(0, 9) == 0;
    add(random_.next(overlapping), overlapping ? random_.number(-16, 16) : 0, random_.number(1, 3));
  }

  /// An extent of 0 stands for one at which repetitions keep clear of each other.
  void add(Sample sample, Offset extent, Offset count) {
    if (extent == 0) extent = (sample.high() - sample.low() + 15) / 16 * 16;
    const auto map = repeated_map(sample.map, count, extent);
    const auto [low, high] = std::minmax_element(map.begin(), map.end());
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = !whole && random_.number(0, 3) == 0 ? random_.number(0, size) : 0;
    const Offset end = !whole && random_.number(0, 3) == 0 ? random_.number(begin, size) : size;
    const Offset origin = (next_memory_ - *low + 15) / 16 * 16 + random_.number(0, 3) / 3 * random_.number(0, 31);
    const Offset at = next_packed_ + random_.number(0, 3) / 3 * random_.number(0, 31);
    if (origin + *high + 64 > arena_ || at + size + 64 > arena_) return;
    next_memory_ = origin + *high + 1;
    next_packed_ = (at + end - begin + 15) / 16 * 16;
    const auto direction = random_.number(0, 1) == 0 ? Direction::pack : Direction::unpack;
    for (Offset k = begin; k < end; ++k) moves_.push_back({origin + map[k], at + k - begin, direction});
    layouts_.push_back(sample.layout);
    jobs_.push_back({sample.layout.get(),
                     {count, extent},
                     begin,
                     end,
                     direction,
                     memory_.pointer() + origin,
                     packed_.pointer() + at});
  }

  bool whole = false;  ///< no job that is added begins or ends within its stream

  const std::vector<Job>& jobs() const { return jobs_; }

  /// That all jobs have been run once since the last refill().
  void expect_done() {
    for (const Move& move : moves_) {
      char &inside = memory_bytes_[move.memory], &outside = packed_bytes_[move.packed];
      (move.direction == Direction::pack ? outside : inside) = move.direction == Direction::pack ? inside : outside;
    }
    // Compared without being printed: there may be many megabytes of them.
    ASSERT_TRUE(memory_.contents() == memory_bytes_) << "where layouts lie";
    ASSERT_TRUE(packed_.contents() == packed_bytes_) << "where packed bytes lie";
  }

 private:
  /// Of one byte.
  struct Move {
    Offset memory, packed;
    Direction direction;
  };

  RandomLayouts& random_;
  Offset arena_;
  Memory memory_, packed_;
  std::vector<char> memory_bytes_, packed_bytes_;
  Offset next_memory_ = 64, next_packed_ = 64;
  std::vector<LayoutPointer> layouts_;
  std::vector<Job> jobs_;
  std::vector<Move> moves_;
};

}  // namespace gapless::tests

// The kernels' arithmetic, checked on the CPU against plain lists of offsets and plain division.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "pack/cuda/plan.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using namespace pack::cuda;
using layout::Mode;
using pack::Direction;
using pack::Job;

/// Descriptors in ordinary memory, counted.
class HostDescriptors final : public DescriptorMemory {
 public:
  void* upload(int, const void* bytes, std::size_t count) noexcept override {
    if (full) return nullptr;
    ++uploads;
    void* copy = std::malloc(count);
    std::memcpy(copy, bytes, count);
    return copy;
  }
  void release(int, void* descriptor) noexcept override {
    ++releases;
    std::free(descriptor);
  }

  bool full = false;
  int uploads = 0, releases = 0;
};

template <class Index>
void expect_exact_division(std::mt19937_64& random) {
  constexpr Index limit = Index{1} << (sizeof(Index) * 8 - 1);
  const auto any = [&] { return static_cast<Index>(random() >> (random() % (sizeof(Index) * 8))) % limit; };
  for (int i = 0; i < 200000; ++i) {
    const Index divisor = std::max<Index>(any(), 1);
    const auto divider = make_divider(divisor);
    const Index multiple = limit / divisor * divisor;
    for (const Index n : {any(), Index{0}, divisor, static_cast<Index>(divisor - 1), static_cast<Index>(limit - 1),
                          static_cast<Index>(multiple - 1), std::min<Index>(multiple, limit - 1)}) {
      ASSERT_EQ(divider.quotient(n), n / divisor) << n << " / " << divisor;
    }
  }
}

TEST(Divider, IsExact) {
  std::mt19937_64 random(test_seed());
  expect_exact_division<std::uint32_t>(random);
  expect_exact_division<std::uint64_t>(random);
  for (int shift = 0; shift < 31; ++shift) {
    EXPECT_EQ(make_divider(std::uint32_t{1} << shift).quotient(0x7fffffffu), 0x7fffffffu >> shift);
  }
}

TEST(Serialised, TreeFindsEveryByteAndHowFarItIsContiguous) {
  RandomLayouts layouts(test_seed());
  for (int i = 0; i < 400; ++i) {
    const Sample sample = layouts.next(i % 2 == 0);
    const Serialised serialised = serialise(*sample.layout);
    const Offset count = layouts.number(1, 3), extent = layouts.number(-100, 100);
    const auto map = repeated_map(sample.map, count, extent);
    const Tree tree{serialised.bytes.data(), make_divider(static_cast<std::uint64_t>(sample.layout->size)), extent, 0};
    for (std::size_t k = 0; k < map.size(); ++k) {
      const Place place = tree.place(k);
      ASSERT_EQ(place.offset, map[k]) << "sample " << i << ", byte " << k;
      ASSERT_GE(place.remaining, 1u);
      ASSERT_LE(k + place.remaining, map.size());
      ASSERT_EQ(map[k + place.remaining - 1], map[k] + static_cast<Offset>(place.remaining) - 1);
    }
  }
}

/// Addresses that a launch reads and writes, by packed byte; nothing is touched.
class Tracer {
 public:
  Tracer(const Job& job) : job_(job), places_(static_cast<std::size_t>(job.end - job.begin), unset) {}

  void operator()(std::monostate) {}
  void operator()(const ContiguousCopy& work) {
    for (std::uint64_t i = 0; i < work.bytes; ++i) note(work.packed + i, work.memory + i);
  }
  template <class Locator>
  void operator()(const WordCopy<Locator>& work) {
    const int bytes = 1 << work.word_shift;
    for (std::uint32_t e = 0; e < work.range.head + work.range.tail; ++e) {
      const std::uint64_t k =
          e < work.range.head
              ? work.range.begin + e
              : ((work.range.first_word + work.range.word_count) << work.word_shift) + e - work.range.head;
      note(work.range.packed + k, work.range.memory + static_cast<std::uint64_t>(work.locator.byte(k)));
    }
    for (std::uint64_t w = 0; w < work.range.word_count; ++w) {
      const std::uint64_t k = (work.range.first_word + w) << work.word_shift;
      const std::uint64_t memory = work.range.memory + static_cast<std::uint64_t>(word_offset(work, w));
      EXPECT_EQ(memory % bytes, 0u);
      EXPECT_EQ((work.range.packed + k) % bytes, 0u);
      for (int b = 0; b < bytes; ++b) note(work.range.packed + k + b, memory + b);
    }
  }
  void operator()(const OrderedCopy& work) {
    for (std::uint64_t i = 0; i < work.bytes; ++i) {
      const std::uint64_t k = work.range.begin + i;
      note(work.range.packed + k, work.range.memory + static_cast<std::uint64_t>(work.tree.byte(k)));
    }
  }

  /// Every byte must have been noted exactly once, at its place in the map.
  void expect(const std::vector<Offset>& map) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      ASSERT_NE(places_[i], unset) << "byte " << i << " is never moved";
      ASSERT_EQ(static_cast<Offset>(places_[i] - reinterpret_cast<std::uintptr_t>(job_.memory)), map[job_.begin + i]);
    }
  }

 private:
  static constexpr std::uintptr_t unset = 1;

  template <class Index>
  static Offset word_offset(const WordCopy<Nest<Index>>& work, std::uint64_t word) {
    return work.locator.at(static_cast<Index>(work.range.first_word + word));
  }
  static Offset word_offset(const WordCopy<Tree>& work, std::uint64_t word) {
    return work.locator.at(work.range.first_word + word);
  }
  static Offset word_offset(const WordCopy<Segments>& work, std::uint64_t word) {
    static StagedRuns runs;
    const RunWindow window = window_of_tile(work.range, work.locator, word / words_per_tile);
    const std::uint64_t k = work.range.first_word + word;
    if (!window.staged) return work.locator.tree.at(k);
    work.locator.stage(window, 0, 1, runs);
    return StagedSegments{work.word_shift, window.start, runs}.at(k);
  }

  void note(std::uintptr_t packed, std::uintptr_t memory) {
    const std::size_t i = packed - reinterpret_cast<std::uintptr_t>(job_.packed);
    ASSERT_LT(i, places_.size());
    ASSERT_EQ(places_[i], unset) << "byte " << i << " is moved twice";
    places_[i] = memory;
  }

  const Job& job_;
  std::vector<std::uintptr_t> places_;
};

TEST(Plan, EveryLaunchMovesEachByteOfItsRangeOnce) {
  RandomLayouts layouts(test_seed());
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  std::map<std::size_t, int> launches;
  std::map<int, int> word_shifts;
  for (int i = 0; i < 1500; ++i) {
    const Sample sample = layouts.next(i % 4 == 0);
    const Offset count = layouts.number(0, 3);
    const Offset span = sample.high() - sample.low();
    const Offset extent = i % 4 == 0 ? layouts.number(-40, 40) : (span + 15) / 16 * 16;
    const auto map = repeated_map(sample.map, count, extent);
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = i % 3 == 0 ? 0 : layouts.number(0, size),
                 end = i % 3 == 0 ? size : layouts.number(begin, size);
    const std::uintptr_t origin = 0x7f0000000000 + (i % 5 == 0 ? layouts.number(0, 31) : 0);
    const std::uintptr_t packed = 0x10000 + (i % 7 == 0 ? layouts.number(0, 31) : begin % 16);
    for (const auto direction : {Direction::pack, Direction::unpack}) {
      const Job job{sample.layout.get(),
                    {count, extent},
                    begin,
                    end,
                    direction,
                    reinterpret_cast<void*>(origin),
                    reinterpret_cast<void*>(packed)};
      const auto planned = planner.plan(job, 0);
      Tracer tracer(job);
      std::visit(tracer, planned.launch);
      ASSERT_NO_FATAL_FAILURE(tracer.expect(map)) << "sample " << i;
      ++launches[planned.launch.index()];
      std::visit(
          [&](const auto& work) {
            if constexpr (requires { work.word_shift; }) ++word_shifts[work.word_shift];
          },
          planned.launch);
    }
  }
  // 64-bit nests need more than 2^31 words and have tests of their own.
  for (const std::size_t kind : {0, 1, 2, 4, 5, 6}) EXPECT_GT(launches[kind], 0) << "launch kind " << kind;
  for (int shift = 0; shift <= 4; ++shift) EXPECT_GT(word_shifts[shift], 0) << "words of 2^" << shift << " bytes";
}

TEST(Plan, OverlappingUnpackIsOrderedAndPackIsNot) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  const auto overlapping = layout::repeat(layout::block(0, 8), 4, 4);
  Job job{overlapping.get(),
          {1, 0},
          0,
          32,
          Direction::unpack,
          reinterpret_cast<void*>(0x1000),
          reinterpret_cast<void*>(0x2000)};
  EXPECT_TRUE(std::holds_alternative<OrderedCopy>(planner.plan(job, 0).launch));
  job.direction = Direction::pack;
  EXPECT_FALSE(std::holds_alternative<OrderedCopy>(planner.plan(job, 0).launch));
}

TEST(Plan, IndicesBeyond32BitsAreExact) {
  // 6 GiB of 4-byte blocks at stride 8: word indices past 2^31, offsets past 2^32.
  const Offset count = (Offset{6} << 30) / 4;
  const auto strided = layout::repeat(layout::block(0, 4), count, 8);
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  // Memory at an odd address forces single bytes, so that there are more than 2^32 words.
  const Job job{strided.get(),
                {1, 0},
                0,
                strided->size,
                Direction::pack,
                reinterpret_cast<void*>(0x7f0000000001),
                reinterpret_cast<void*>(0x10000)};
  const auto planned = planner.plan(job, 0);
  ASSERT_TRUE(std::holds_alternative<WordCopy<Nest<std::uint64_t>>>(planned.launch));
  const auto& work = std::get<WordCopy<Nest<std::uint64_t>>>(planned.launch);
  EXPECT_EQ(work.range.word_count, static_cast<std::uint64_t>(strided->size));
  EXPECT_LT(work.tiles(), std::uint64_t{1} << 31);  // CUDA's limit on a grid
  std::mt19937_64 random(test_seed());
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t k = random() % static_cast<std::uint64_t>(strided->size);
    ASSERT_EQ(work.locator.at(k), static_cast<Offset>(k / 4 * 8 + k % 4));
  }
}

TEST(Plan, ManyModesOfHugeCountsAreExact) {
  // 2^20 x 2^20 x 2^14 single words, with distances that overflow 32 bits: only the arithmetic is run.
  const auto rows = layout::repeat(layout::repeat(layout::block(0, 8), 1 << 20, 24), 1 << 20, Offset{1} << 25);
  const auto strided = layout::repeat(rows, 1 << 14, -(Offset{1} << 47));
  const Job job{strided.get(),
                {1, 0},
                strided->size - 4096,
                strided->size,
                Direction::unpack,
                nullptr,
                reinterpret_cast<void*>(0x10000)};
  const Shape shape = shape_of(*strided, {1, 0}, 0);
  const auto launch = prepare(job, shape, nullptr);
  ASSERT_TRUE(std::holds_alternative<WordCopy<Nest<std::uint64_t>>>(launch));
  const auto& work = std::get<WordCopy<Nest<std::uint64_t>>>(launch);
  EXPECT_EQ(work.word_shift, 3);
  std::mt19937_64 random(test_seed());
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t w = random() % (std::uint64_t{1} << 54);
    const auto x = static_cast<Offset>(w & 0xfffff), y = static_cast<Offset>((w >> 20) & 0xfffff),
               z = static_cast<Offset>(w >> 40);
    ASSERT_EQ(work.locator.at(w), x * 24 + (y << 25) - z * (Offset{1} << 47));
  }
}

TEST(Plan, MoreModesThanParametersHoldGoThroughTheTree) {
  auto deep = layout::block(0, 1);
  std::vector<Offset> map{0};
  Offset stride = 2;
  for (int i = 0; i < 13; ++i, stride = stride * 2 + 1) {
    deep = layout::repeat(deep, 2, stride);
    const auto once = map;
    for (const Offset offset : once) map.push_back(offset + stride);
  }
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  const Job job{deep.get(),
                {1, 0},
                0,
                deep->size,
                Direction::pack,
                reinterpret_cast<void*>(0x1000),
                reinterpret_cast<void*>(0x100000)};
  const auto planned = planner.plan(job, 0);
  ASSERT_TRUE(std::holds_alternative<WordCopy<Tree>>(planned.launch));
  Tracer tracer(job);
  std::visit(tracer, planned.launch);
  tracer.expect(map);
}

TEST(DescriptorCache, UploadsOnceAndForgetsTheLeastRecentlyUsed) {
  const auto memory = std::make_shared<HostDescriptors>();
  std::vector<LayoutPointer> kept;
  {
    DescriptorCache cache(memory, 4000);
    const auto ragged = [](Offset gap) {
      return layout::segments(std::vector<layout::Segment>{{0, 4}, {10 + gap, 12}, {100 + gap * 2, 4}, {300, 20}});
    };
    for (Offset gap = 0; gap < 50; ++gap) {
      kept.push_back(ragged(gap));
      ASSERT_NE(cache.find(*kept.back(), 0), nullptr);
      ASSERT_NE(cache.find(*kept.front(), 0), nullptr);
    }
    EXPECT_EQ(memory->uploads, 50) << "the first was used all the time and must have stayed";
    EXPECT_LE(cache.bytes(), 4000u);
    EXPECT_EQ(memory->uploads - memory->releases, static_cast<int>(cache.entries()));
    cache.find(*kept.front(), 1);
    EXPECT_EQ(memory->uploads, 51) << "another device needs its own";
    const auto first = cache.find(*kept.front(), 0);
    cache.keep(first);
    cache.keep(first);
    for (Offset gap = 50; gap < 100; ++gap) {
      kept.push_back(ragged(gap));
      cache.find(*kept.back(), 0);
    }
    EXPECT_EQ(first.use_count(), 2) << "captured work may still use it";
  }
  EXPECT_EQ(memory->uploads, memory->releases);
}

TEST(DescriptorCache, ANewLayoutAtAnOldAddressIsAnotherLayout) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  alignas(layout::Layout) std::byte storage[sizeof(layout::Layout)];
  const auto place = [&](Offset gap) {
    const auto wanted = layout::segments(std::vector<layout::Segment>{{0, 4}, {10 + gap, 12}, {100, 4}});
    return LayoutPointer(new (storage) layout::Layout(*wanted), [](const layout::Layout* l) { l->~Layout(); });
  };
  auto layout = place(0);
  const auto first = cache.find(*layout, 0);
  EXPECT_EQ(cache.find(*layout, 0), first);
  layout.reset();
  layout = place(7);
  EXPECT_NE(cache.find(*layout, 0), first);
}

TEST(DescriptorCache, ALayoutNobodySharesIsServedAndNotRemembered) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  const layout::Layout own = *layout::segments(std::vector<layout::Segment>{{0, 4}, {10, 12}, {100, 4}});
  EXPECT_NE(cache.find(own, 0), nullptr);
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(memory->uploads, memory->releases);
}

TEST(DescriptorCache, NoMemoryIsReported) {
  const auto memory = std::make_shared<HostDescriptors>();
  memory->full = true;
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  const auto ragged = layout::segments(std::vector<layout::Segment>{{0, 4}, {10, 12}, {100, 4}});
  const Job job{
      ragged.get(), {1, 0}, 0, 20, Direction::pack, reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(0x2000)};
  EXPECT_TRUE(planner.plan(job, 0).out_of_memory);
  memory->full = false;
  EXPECT_FALSE(planner.plan(job, 0).out_of_memory) << "a failure is not remembered";
}

}  // namespace
}  // namespace gapless::tests

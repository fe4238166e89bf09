// The kernels' arithmetic, checked on the CPU against plain lists of offsets and plain division.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "exercise.hpp"
#include "layout/datatype/datatype.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;
using layout::Layout;
using layout::Mode;
using pack::Direction;
using pack::Job;

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
  std::mt19937_64 random(random_seed());
  expect_exact_division<std::uint32_t>(random);
  expect_exact_division<std::uint64_t>(random);
  for (int shift = 0; shift < 31; ++shift) {
    EXPECT_EQ(make_divider(std::uint32_t{1} << shift).quotient(0x7fffffffu), 0x7fffffffu >> shift);
  }
}

TEST(Serialised, TreeFindsEveryByteAndHowFarItIsContiguous) {
  RandomLayouts layouts(random_seed());
  for (int i = 0; i < 400; ++i) {
    const Sample sample = layouts.next(i % 2 == 0);
    const Serialised serialised = serialise(*sample.layout);
    const Offset count = layouts.number(1, 3), extent = layouts.number(-100, 100);
    const auto map = repeated_map(sample.map, count, extent);
    const Tree tree{serialised.bytes.data(), make_divider(static_cast<std::uint64_t>(sample.layout->size)), extent, 0};
    for (std::size_t k = 0; k < map.size(); ++k) {
      const TreePlace place = tree.place(k);
      ASSERT_EQ(place.offset, map[k]) << "sample " << i << ", byte " << k;
      ASSERT_GE(place.remaining, 1u);
      ASSERT_LE(k + place.remaining, map.size());
      ASSERT_EQ(map[k + place.remaining - 1], map[k] + static_cast<Offset>(place.remaining) - 1);
    }
  }
}

TEST(Serialised, ListsTakeNoMoreThanTheUsersAndAHintForEvery2KiB) {
  constexpr std::size_t entries = 10000, rest = 1000;
  std::vector<Offset> offsets, lengths;
  for (std::size_t i = 0; i < entries; ++i) {
    offsets.push_back(static_cast<Offset>(i * 1000 + i % 7 * 8));
    lengths.push_back(static_cast<Offset>(8 + i % 5 * 8));
  }
  EXPECT_LE(serialise(*layout::indexed_block(1, offsets, layout::named(4, 4)).layout).bytes.size(), 4 * entries + rest);
  const auto ragged = layout::indexed(lengths, offsets, layout::named(4, 4)).layout;
  const std::size_t hints = static_cast<std::size_t>(ragged->size) / 2048 * sizeof(std::int32_t);
  EXPECT_LE(serialise(*ragged).bytes.size(), 8 * entries + hints + rest);
}

template <class Work>
constexpr std::size_t kind_of() {
  return Launch(Work{}).index();
}

TEST(Plan, EveryLaunchMovesEachByteOfItsRangeOnce) {
  RandomLayouts layouts(random_seed());
  EveryRegime every;
  for (int i = 0; i < 1500; ++i) {
    const Sample sample = layouts.next(i % 4 == 0);
    const Offset count = layouts.number(0, 3);
    const Offset span = sample.high() - sample.low();
    const Offset extent = i % 4 == 0 ? layouts.number(-40, 40) : (span + 15) / 16 * 16;
    const auto map = repeated_map(sample.map, count, extent);
    const auto size = static_cast<Offset>(map.size());
    const Offset begin = i % 3 == 0 ? 0 : layouts.number(0, size),
                 end = i % 3 == 0 ? size : layouts.number(begin, size);
    Exercise exercise(*sample.layout, map, {count, extent}, begin, end, i % 5 == 0 ? layouts.number(0, 15) : 0,
                      i % 7 == 0 ? layouts.number(0, 31) : begin % 16);
    ASSERT_NO_FATAL_FAILURE(every.run(exercise)) << "sample " << i;
  }
  const auto& words = every.word_shifts;
  for (int shift = 0; shift <= 4; ++shift) {
    SCOPED_TRACE("words of 2^" + std::to_string(shift) + " bytes");
    for (const std::size_t kind :
         {kind_of<NestWork<std::uint32_t>>(), kind_of<SegmentsWork<NarrowRun>>(), kind_of<TreeWork>()}) {
      EXPECT_TRUE(words.contains(kind) && words.at(kind).contains(shift)) << "kind " << kind;
    }
    EXPECT_TRUE(shift < 2 || words.at(kind_of<SectorsWork>()).contains(shift));
  }
  for (const std::size_t kind :
       {kind_of<std::monostate>(), kind_of<ContiguousWork>(), kind_of<ShiftedWork>(), kind_of<OrderedWork>()}) {
    EXPECT_GT(every.launches[kind], 0) << "kind " << kind;
  }
}

/// Runs of random lengths and gaps, a word or more each, so that a list is several tiles long.
Sample long_list(RandomLayouts& random, Offset unit, Offset bytes, Offset longest) {
  std::vector<layout::Segment> runs;
  Sample sample;
  for (Offset at = 0; static_cast<Offset>(sample.map.size()) < bytes;) {
    const Offset length = random.number(1, longest) * unit;
    runs.push_back({at, length});
    for (Offset i = 0; i < length; ++i) sample.map.push_back(at + i);
    at += length + random.number(1, 5) * unit;
  }
  sample.layout = layout::segments(runs);
  return sample;
}

TEST(Plan, ListsOfManyTilesMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  EveryRegime every;
  for (const Offset unit : {1, 2, 4, 8, 16}) {
    for (const Offset longest : {1, 9, 4000}) {
      const Sample sample = long_list(random, unit, 5000 * unit, longest);
      const Offset extent = (sample.high() + 31) / 16 * 16;
      const auto map = repeated_map(sample.map, 3, extent);
      const auto size = static_cast<Offset>(map.size());
      const Offset begin = random.number(0, size / 2), end = random.number(begin, size);
      SCOPED_TRACE("unit " + std::to_string(unit) + ", runs of up to " + std::to_string(longest));
      Exercise whole(*sample.layout, map, {3, extent}, 0, size, 0, 0);
      ASSERT_NO_FATAL_FAILURE(every.run(whole));
      Exercise part(*sample.layout, map, {3, extent}, begin, end, 0, begin % 16);
      ASSERT_NO_FATAL_FAILURE(every.run(part));
    }
  }
}

/// The work with its runs in bytes, as those of lists are that reach too far for 32 bits.
SegmentsWork<pack::gpu::Run> widened(const SegmentsWork<NarrowRun>& narrow, std::vector<pack::gpu::Run>& runs) {
  const TreeNode& list = narrow.tree.read<TreeNode>(0);
  const RunTable table{narrow.runs, true, narrow.unit_shift};
  for (std::uint64_t i = 0; i <= list.entry_count; ++i) runs.push_back(table[i]);
  SegmentsWork<pack::gpu::Run> wide{};
  wide.range = narrow.range;
  wide.tree = narrow.tree;
  wide.runs = runs.data();
  wide.hints = narrow.hints;
  wide.tiles_per_list = narrow.tiles_per_list;
  wide.first_tile = narrow.first_tile;
  wide.tile_count = narrow.tile_count;
  wide.list_size = narrow.list_size;
  wide.list_memory = narrow.list_memory;
  wide.repetitions = narrow.repetitions;
  return wide;
}

TEST(Plan, ListsOfFarRunsMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  DescriptorCache cache(std::make_shared<HostDescriptors>(), 1 << 20, Regime::segments);
  Planner planner(cache);
  for (const Offset unit : {1, 2, 4, 8, 16}) {
    const Sample sample = long_list(random, unit, 5000 * unit, 9);
    const Offset extent = (sample.high() + 31) / 16 * 16;
    const auto map = repeated_map(sample.map, 2, extent);
    const auto size = static_cast<Offset>(map.size()), begin = random.number(0, size / 2);
    Exercise exercise(*sample.layout, map, {2, extent}, begin, size, 0, begin % 16);
    for (const auto direction : {Direction::pack, Direction::unpack}) {
      const auto planned = planner.plan(exercise.job(direction), 0);
      ASSERT_TRUE(std::holds_alternative<SegmentsWork<NarrowRun>>(planned.launch));
      std::vector<pack::gpu::Run> runs;
      const Launch wide = widened(std::get<SegmentsWork<NarrowRun>>(planned.launch), runs);
      ASSERT_NO_FATAL_FAILURE(exercise.expect_moved_once(wide, direction, false)) << "unit " << unit;
    }
  }
}

void whole_and_part(EveryRegime& every, RandomLayouts& random, const LayoutPointer& layout,
                    const std::vector<Offset>& map) {
  Exercise whole(*layout, map, {1, 0}, 0, layout->size, 0, 0);
  ASSERT_NO_FATAL_FAILURE(every.run(whole));
  const Offset begin = random.number(0, layout->size / 2), end = random.number(begin, layout->size);
  Exercise part(*layout, map, {1, 0}, begin, end, 0, begin % 16);
  ASSERT_NO_FATAL_FAILURE(every.run(part));
  const Offset end_of_few = std::min(begin + layout->size / 8, layout->size);
  Exercise few_columns(*layout, map, {1, 0}, begin, end_of_few, 0, begin % 16);
  ASSERT_NO_FATAL_FAILURE(every.run(few_columns));
  if (layout->modes.size() < 3) return;
  const Offset element = layout->length, plane = element * layout->modes[0].count * layout->modes[1].count;
  Exercise to_first(*layout, map, {1, 0}, 0, plane + element, 0, 0);
  ASSERT_NO_FATAL_FAILURE(every.run(to_first)) << "to the first element of a plane";
  Exercise from_last(*layout, map, {1, 0}, plane - element, layout->size, 0, 0);
  ASSERT_NO_FATAL_FAILURE(every.run(from_last)) << "from the last element of a plane";
}

TEST(Plan, TransposesOfManyTilesMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  EveryRegime every;
  for (const Offset unit : {1, 2, 4, 8, 16}) {
    // rows x columns x planes, packed columns first; each row a little longer than its columns
    const Offset rows = random.number(60, 140), columns = random.number(33, 140), planes = 2;
    const Offset row = (columns + random.number(0, 3)) * unit, plane = row * (rows + 1);
    const auto column = layout::repeat(layout::block(0, unit), rows, row);
    const auto layout = layout::repeat(layout::repeat(column, columns, unit), planes, plane);
    const auto map_of = [unit](const LayoutPointer& layout, const auto& place) {
      std::vector<Offset> map;
      for (Offset k = 0; k < layout->size; ++k) map.push_back(place(k / unit) + k % unit);
      return map;
    };
    const auto map = map_of(layout, [&](Offset element) {
      return element % rows * row + element / rows % columns * unit + element / rows / columns * plane;
    });
    SCOPED_TRACE("elements of " + std::to_string(unit));
    ASSERT_NO_FATAL_FAILURE(whole_and_part(every, random, layout, map));

    // The same elements, packed by rows, then planes, then columns: another mode between the two that are transposed.
    const auto between = layout::repeat(layout::repeat(column, planes, plane), columns, unit);
    const auto other = map_of(between, [&](Offset element) {
      return element % rows * row + element / rows % planes * plane + element / rows / planes * unit;
    });
    ASSERT_NO_FATAL_FAILURE(whole_and_part(every, random, between, other));
  }
  EXPECT_EQ(every.word_shifts[kind_of<TransposeWork>()].size(), 5u) << "elements of every width";
}

TEST(Plan, FieldsOfStructsMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  EveryRegime every;
  for (int i = 0; i < 60; ++i) {
    // structs x fields x planes, packed field by field; a field is one element at an equal distance from the next
    const Offset unit = Offset{1} << i % 5, fields = random.number(2, 32), step = unit * random.number(1, 2);
    const Offset structs = random.number(1, 16384 / unit / fields), planes = random.number(1, 2);
    const Offset size = fields * step + unit * random.number(0, 2), plane = size * (structs + 1);
    const Offset sign = i % 3 == 0 ? -1 : 1;
    const auto field = layout::repeat(layout::block(0, unit), structs, size);
    const auto layout = layout::repeat(layout::repeat(field, fields, sign * step), planes, plane);
    std::vector<Offset> map;
    for (Offset k = 0; k < layout->size; ++k) {
      const Offset element = k / unit;
      map.push_back(element % structs * size + element / structs % fields * sign * step +
                    element / structs / fields * plane + k % unit);
    }
    SCOPED_TRACE(std::to_string(structs) + " structs of " + std::to_string(fields) + " fields of " +
                 std::to_string(unit) + " B, " + std::to_string(step) + " B apart");
    ASSERT_NO_FATAL_FAILURE(whole_and_part(every, random, layout, map));
  }
  EXPECT_EQ(every.word_shifts[kind_of<InterleavedWork>()].size(), 5u) << "elements of every width";
}

TEST(Plan, OddRowsMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  EveryRegime every;
  for (int i = 0; i < 300; ++i) {
    const Offset length = random.number(1, i % 3 == 0 ? 300 : 40), stride = length + random.number(1, 70),
                 count = random.number(2, 90);
    const auto layout = layout::repeat(layout::block(0, length), count, stride);
    std::vector<Offset> map;
    for (Offset k = 0; k < layout->size; ++k) map.push_back(k / length * stride + k % length);
    const Offset begin = i % 2 == 0 ? 0 : random.number(0, layout->size - 1),
                 end = i % 2 == 0 ? layout->size : random.number(begin + 1, layout->size);
    Exercise exercise(*layout, map, {1, 0}, begin, end, random.number(0, 15), random.number(0, 31));
    ASSERT_NO_FATAL_FAILURE(every.run(exercise)) << length << " B every " << stride << " B";
  }
  EXPECT_GT(every.launches[kind_of<ShiftedWork>()], 0);
  EXPECT_GT(every.launches[kind_of<SectorsWork>()], 0);
}

TEST(Plan, OddRowsInManyDimensionsMoveEachByteOnce) {
  RandomLayouts random(random_seed());
  EveryRegime every;
  for (int i = 0; i < 200; ++i) {
    const Offset length = random.number(1, 70);
    auto layout = layout::block(0, length);
    std::vector<Offset> map;
    for (Offset k = 0; k < length; ++k) map.push_back(k);
    Offset span = length;
    for (int dimension = 0; dimension < i % 5; ++dimension) {
      const Offset count = random.number(2, 5), stride = span + random.number(1, 40);
      layout = layout::repeat(layout, count, stride);
      map = repeated_map(map, count, stride);
      span = (count - 1) * stride + span;
    }
    Exercise exercise(*layout, map, {1, 0}, random.number(0, layout->size / 2), layout->size, random.number(0, 15),
                      random.number(0, 31));
    ASSERT_NO_FATAL_FAILURE(every.run(exercise)) << "sample " << i;
  }
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
  EXPECT_TRUE(std::holds_alternative<OrderedWork>(planner.plan(job, 0).launch));
  job.direction = Direction::pack;
  EXPECT_FALSE(std::holds_alternative<OrderedWork>(planner.plan(job, 0).launch));
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
  ASSERT_TRUE(std::holds_alternative<NestWork<std::uint64_t>>(planned.launch));
  const auto& work = std::get<NestWork<std::uint64_t>>(planned.launch);
  EXPECT_EQ(work.range.word_count, static_cast<std::uint64_t>(strided->size));
  EXPECT_LT(work.tiles(), std::uint64_t{1} << 31);  // CUDA's limit on a grid
  std::mt19937_64 random(random_seed());
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t k = random() % static_cast<std::uint64_t>(strided->size);
    ASSERT_EQ(work.nest.at(k), static_cast<Offset>(k / 4 * 8 + k % 4));
  }
}

TEST(Plan, ThreadsHaveMoreWordsInFlightTheMoreLieInALineOfMemory) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  const auto words_of = [&](Offset length, Offset stride, Offset rows) {
    const auto strided = layout::repeat(layout::block(0, length), rows, stride);
    const Job job{strided.get(),
                  {1, 0},
                  0,
                  strided->size,
                  Direction::pack,
                  reinterpret_cast<void*>(0x7f0000000000),
                  reinterpret_cast<void*>(0x10000)};
    const auto planned = planner.plan(job, 0);
    const auto* work = std::get_if<NestWork<std::uint32_t>>(&planned.launch);
    return work == nullptr ? 0 : work->words_per_thread;
  };
  constexpr Offset many = 1 << 20;
  EXPECT_EQ(words_of(20, 516, many), 1) << "5 words";
  EXPECT_EQ(words_of(24, 516, many), 2) << "6 words";
  EXPECT_EQ(words_of(32, 516, many), 2) << "8 words";
  EXPECT_EQ(words_of(4096, 4100, many / 64), 4) << "16 words";
  EXPECT_EQ(words_of(32, 516, 1000), 1) << "few rows";
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
  const Shape shape = shape_of(*strided, {1, 0}, {});
  const auto launch = prepare(job, shape, nullptr);
  ASSERT_TRUE(std::holds_alternative<NestWork<std::uint64_t>>(launch));
  const auto& work = std::get<NestWork<std::uint64_t>>(launch);
  EXPECT_EQ(work.word_shift(), 3);
  std::mt19937_64 random(random_seed());
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t w = random() % (std::uint64_t{1} << 54);
    const auto x = static_cast<Offset>(w & 0xfffff), y = static_cast<Offset>((w >> 20) & 0xfffff),
               z = static_cast<Offset>(w >> 40);
    ASSERT_EQ(work.nest.at(w), x * 24 + (y << 25) - z * (Offset{1} << 47));
  }
}

Launch launch_of_part(const Layout& layout, Offset begin, Offset end, Direction direction,
                      std::optional<Regime> forced = {}) {
  const Job job{&layout, {1, 0}, begin, end, direction, nullptr, reinterpret_cast<void*>(0x10000)};
  return prepare(job, shape_of(layout, {1, 0}, {}), nullptr, forced);
}

/// The plane has more elements than 32 bits count: those of other columns would be taken for the job's.
TEST(Plan, TransposesOfAPartVisitItsColumns) {
  constexpr Offset side = 70000, segment = Offset{1} << 26;
  static_assert(side * side > std::numeric_limits<std::uint32_t>::max());
  const auto columns = layout::repeat(layout::repeat(layout::block(0, 1), side, side), side, 1);
  for (const auto direction : {Direction::pack, Direction::unpack}) {
    for (const Offset begin : {Offset{0}, 7 * segment, side * side - segment}) {
      const Launch launch = launch_of_part(*columns, begin, begin + segment, direction);
      ASSERT_TRUE(std::holds_alternative<TransposeWork>(launch));
      const auto& work = std::get<TransposeWork>(launch);
      EXPECT_LT(work.tiles() * static_cast<std::uint64_t>(work.side * work.side), segment * 11 / 10);
      EXPECT_EQ(work.range.packed + work.range.first_word, 0x10000u);
      for (const Offset k : {Offset{0}, segment / 3, segment - 1}) {
        const std::uint64_t element = work.range.first_word + static_cast<std::uint64_t>(k);
        const std::uintptr_t place = work.range.memory + static_cast<std::uintptr_t>(work.places.at(element));
        EXPECT_EQ(place, static_cast<std::uintptr_t>((begin + k) % side * side + (begin + k) / side));
      }
    }
  }
}

TEST(Plan, SmallPartsOfTwoPlanesAreNoTransposes) {
  constexpr Offset side = 4096, plane = side * side, part = plane / 16;
  const auto columns = layout::repeat(layout::repeat(layout::block(0, 1), side, side), side, 1);
  const auto planes = layout::repeat(columns, 2, 2 * plane);
  for (const auto direction : {Direction::pack, Direction::unpack}) {
    for (const auto forced : {std::optional<Regime>{}, {Regime::transpose}, {Regime::interleaved}}) {
      const Launch small = launch_of_part(*planes, plane - part, plane + part, direction, forced);
      EXPECT_FALSE(std::holds_alternative<TransposeWork>(small) || std::holds_alternative<InterleavedWork>(small));
    }
    const Launch large = launch_of_part(*planes, part, 2 * plane - part, direction);
    EXPECT_TRUE(std::holds_alternative<TransposeWork>(large));
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
  Exercise exercise(*deep, map, {1, 0}, 0, deep->size, 0, 0);
  const auto planned = planner.plan(exercise.job(Direction::pack), 0);
  ASSERT_TRUE(std::holds_alternative<TreeWork>(planned.launch));
  exercise.expect_moved_once(planned.launch, Direction::pack, false);
}

// Where nothing is forced, the small jobs of tests run as nests.
TEST(EveryRegime, HasAllThatCanBeNamed) {
  for (const auto& [name, regime] : pack::gpu::named_regimes) {
    const bool is_forced = std::ranges::find(EveryRegime::regimes, regime) != EveryRegime::regimes.end();
    EXPECT_TRUE(is_forced || regime == pack::gpu::Regime::nest) << name;
  }
}

// Each of them is forced in test_runtime as well: tests/pack/CMakeLists.txt has their names.
TEST(EveryRegime, IsForcedInRuns) {
  std::istringstream words(GAPLESS_TEST_FORCED_REGIMES);
  std::set<std::string> forced{std::istream_iterator<std::string>(words), {}};
  for (const auto& [name, regime] : pack::gpu::named_regimes) {
    EXPECT_TRUE(forced.erase(std::string(name)) == 1 || regime == pack::gpu::Regime::nest) << name;
  }
  EXPECT_TRUE(forced.empty()) << *forced.begin() << " is no name of a regime";
}

}  // namespace
}  // namespace gapless::tests

// The host engine against type maps: every implementation, both directions, any byte range in any order, any alignment,
// and not one byte written outside.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <numeric>

#include "../../layout/random_datatype.hpp"
#include "case.hpp"
#include "pack/host/engine.hpp"
#include "pack/host/fields.hpp"
#include "pack/host/set_conflicts.hpp"

namespace gapless::pack::testing {
namespace {

// First in the file: it must see the choice before another test makes its own.
TEST(Choice, IsTheBestOrTheOneNamedByTheEnvironment) {
  const char* wanted = std::getenv("GAPLESS_HOST_ENGINE");
  const auto all = host::implementations();
  const bool known = wanted && std::find(all.begin(), all.end(), wanted) != all.end();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(host::implementation(), known ? std::string_view(wanted) : all.front());
  EXPECT_EQ(all.back(), "scalar");
  const std::string said = ::testing::internal::GetCapturedStderr();
  if (known || !wanted) {
    EXPECT_EQ(said, "");
  } else {
    const bool is_a_word = std::string_view(wanted) != "abacus";
    const char* const why = is_a_word ? "this CPU lacks its instructions" : "accepted: avx512, avx2, scalar";
    EXPECT_EQ(said, std::string("gapless: GAPLESS_HOST_ENGINE=") + wanted + ": ignored; " + why + "\n");
  }
}

#if defined(__x86_64__)
TEST(Choice, HasWhatTheProcessorHas) {
  const auto all = host::implementations();
  const auto has = [&](std::string_view name) { return std::find(all.begin(), all.end(), name) != all.end(); };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("avx512"), __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
}
#endif

TEST(Choice, RefusesUnknownNames) {
  const std::string_view before = host::implementation();
  EXPECT_FALSE(host::select_implementation("abacus"));
  EXPECT_EQ(host::implementation(), before);
}

TEST(Run, AgreesWithTypeMapsOfRandomLayouts) {
  Random random(random_seed());
  for (int i = 0; i < 6000; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    ASSERT_NO_FATAL_FAILURE(
        check(random_case(random, random_sample(random, static_cast<int>(i % 5), pick(random, 1, 1500)), 6), random));
  }
}

TEST(Run, AgreesWithTypeMapsOfRandomDatatypes) {
  gapless::testing::DatatypeGenerator generator(random_seed(), 300);
  Random random(random_seed());
  for (int i = 0; i < 6000; ++i) {
    const gapless::testing::RandomDatatype drawn = generator.draw(i % 5);
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed() << ": " << drawn.text);
    Case test = random_case(random, {drawn.type.layout, drawn.map.bytes}, 4);
    if (i % 2 == 0) test.outer.stride = drawn.type.extent();
    if (!is_injective(test.sample, test.outer)) std::sort(test.chunks.begin(), test.chunks.end());
    ASSERT_NO_FATAL_FAILURE(check(test, random));
  }
}

TEST(Run, AgreesWithTypeMapsOfLongLists) {
  Random random(random_seed());
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    // Lengths of every spread, so that every way of choosing copies for ragged runs is met.
    const Offset shortest = Offset{1} << pick(random, 0, 6), longest = shortest << pick(random, 0, 4);
    std::vector<layout::Segment> runs;
    std::vector<Offset> starts;
    Offset at = 0;
    for (Offset n = pick(random, 100, 400); n > 0; --n) {
      runs.push_back({at, pick(random, shortest, longest)});
      starts.push_back(at);
      at += longest + pick(random, 1, i % 2 ? 10 : 700);
    }
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, segments(runs), 2), random));
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, index(block(0, shortest), starts), 2), random));
    std::shuffle(starts.begin(), starts.end(), random);
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, index(block(0, shortest), starts), 2), random));
  }
}

TEST(Run, AgreesWithTypeMapsOfEveryBlockLength) {
  Random random(random_seed());
  for (Offset length = 1; length <= 320; ++length) {
    SCOPED_TRACE(::testing::Message() << "length " << length << " of seed " << random_seed());
    const Offset gap = pick(random, 1, 9);
    const Sample row = repeat(block(pick(random, 0, 7), length), pick(random, 1, 9), length + gap);
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, row, 5), random));
  }
}

TEST(Run, AgreesWithTypeMapsOfTransposes) {
  Random random(random_seed());
  for (const Offset length : {1, 2, 4, 8, 12, 16, 20, 32, 60}) {
    for (const Offset columns : {1, 2, 3, 7, 8, 17, 33}) {
      SCOPED_TRACE(::testing::Message() << length << " bytes, " << columns << " columns, seed " << random_seed());
      const Offset row = columns * length + pick(random, 64, 80), count = pick(random, 128, 160);
      Sample transposed = repeat(repeat(block(0, length), count, row), columns, length);
      if (columns % 2 != 0) transposed = repeat(transposed, 2, count * row + 5);
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, transposed, 2), random));
      // Columns that overlap: the order of writes shows.
      const Sample overlapping = repeat(repeat(block(0, length), count, row), columns, length / 2 + 1);
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, overlapping, 1), random));
      // Columns that overlap each other and reach into the next row.
      const Sample reaching = repeat(repeat(block(0, length), count, pick(random, 64, 70)), columns, length / 2 + 1);
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, reaching, 1), random));
    }
  }
}

TEST(Run, AgreesWithTypeMapsOfTiledTransposes) {
  Random random(random_seed());
  for (const Offset length : {1, 2, 4, 8, 16}) {
    for (int i = 0; i < 30; ++i) {
      const Offset rows = pick(random, 2, 40), columns = i % 3 == 0 ? 16 * pick(random, 1, 3) : pick(random, 2, 40);
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " elements of " << length << " bytes, seed "
                                        << random_seed());
      // From rows that touch, through such with gaps, to such that overlap.
      const Offset apart = columns * length + pick(random, i % 5 == 0 ? -length : 0, 20);
      const Offset row = i % 4 == 0 ? -apart : apart;
      const Sample column = repeat(block(pick(random, 0, 9), length), rows, row);
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, repeat(column, columns, length), 2), random));
      // With a loop in between.
      const Sample planes = repeat(column, 3, rows * apart + pick(random, 0, 9));
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, repeat(planes, columns, length), 1), random));
    }
  }
}

TEST(Run, AgreesWithTypeMapsOfFarRows) {
  Random random(random_seed());
  for (Offset length = 1; length <= 130; ++length) {
    SCOPED_TRACE(::testing::Message() << "length " << length << " of seed " << random_seed());
    const Offset stride = pick(random, 0, 3) == 0 ? 1024 : pick(random, 512, 1500);
    const Sample rows = repeat(block(0, length), pick(random, 64, 80), pick(random, 0, 1) ? stride : -stride);
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, rows, 1), random));
  }
}

TEST(Run, AgreesWithTypeMapsOfLongRows) {
  Random random(random_seed());
  for (const Offset length : {257, 319, 320, 321, 500, 1024, 2047, 2048, 2049, 4096}) {
    SCOPED_TRACE(::testing::Message() << "length " << length << " of seed " << random_seed());
    const Sample rows = repeat(block(0, length), pick(random, 2, 5), length + pick(random, 1, 100));
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, rows, 2), random));
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, repeat(rows, 3, 6 * length), 2), random));
  }
}

TEST(Run, AgreesWithTypeMapsOfEveryPairOfFields) {
  Random random(random_seed());
  const Offset lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33, 63, 64, 65};
  for (const Offset first : lengths) {
    for (const Offset second : lengths) {
      SCOPED_TRACE(::testing::Message() << first << " and " << second << " bytes, seed " << random_seed());
      const Offset gap = pick(random, 1, 9), after = pick(random, 0, 9);
      std::vector<Sample> fields{block(0, first), block(first + gap, second)};
      if (pick(random, 0, 2) == 0) fields.push_back(block(first + gap + second + after + 1, pick(random, 1, 20)));
      if (pick(random, 0, 3) == 0) std::swap(fields[0], fields[1]);
      const Sample record = concatenate(fields);
      const Offset extent = reach(record) + after;
      const Sample records = repeat(record, pick(random, 4, 9), pick(random, 0, 3) == 0 ? -extent : extent);
      ASSERT_NO_FATAL_FAILURE(check(random_case(random, records, 1), random));
    }
  }
}

TEST(Run, AgreesWithTypeMapsOfRecords) {
  Random random(random_seed());
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    std::vector<Sample> fields;
    Offset at = 0;
    for (Offset n = pick(random, 1, 5); n > 0; --n) {
      Sample field = block(at, pick(random, 1, 20));
      if (pick(random, 0, 2) == 0) field = repeat(field, pick(random, 2, 20), random_stride(random, reach(field)));
      const Offset highest = *std::max_element(field.map.begin(), field.map.end());
      at = pick(random, 0, 5) == 0 ? pick(random, 0, 20) : highest + 1 + pick(random, 0, 3);
      fields.push_back(field);
    }
    const Sample record = concatenate(fields);
    const Sample records = repeat(record, pick(random, 1, 90), random_stride(random, reach(record)));
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, records, 2), random));
  }
}

/// A list of records, each of some blocks or rows, repeated or not; most places are clear of the others.
Sample list_of_records(Random& random, bool overlaps) {
  std::vector<Sample> fields;
  Offset at = pick(random, -20, 20);
  for (Offset n = pick(random, 2, 6); n > 0; --n) {
    Sample field = block(at, pick(random, 0, 9) == 0 ? pick(random, 65, 300) : pick(random, 1, 33));
    if (pick(random, 0, 7) == 0) field = repeat(field, pick(random, 2, 5), reach(field) + pick(random, 1, 4));
    at = overlaps && pick(random, 0, 3) == 0 ? at + pick(random, -8, 8)
                                             : *std::max_element(field.map.begin(), field.map.end()) + 2;
    fields.push_back(field);
  }
  Sample record = concatenate(fields);
  if (pick(random, 0, 2) == 0) record = repeat(record, pick(random, 2, 6), reach(record) + pick(random, 0, 9));
  std::vector<Offset> places;
  const bool is_regular = pick(random, 0, 2) == 0;
  const Offset step = reach(record) + pick(random, 0, 9);
  for (Offset n = pick(random, 4, 60), place = 0; n > 0; --n) {
    places.push_back(place);
    if (overlaps && pick(random, 0, 3) == 0) {
      place += pick(random, -60, 60);
    } else {
      place += step * (pick(random, 0, is_regular ? 15 : 1) == 0 ? 2 : 1);
    }
  }
  if (!is_regular && pick(random, 0, 1) == 0) std::shuffle(places.begin(), places.end(), random);
  return index(record, places);
}

TEST(Run, AgreesWithTypeMapsOfListsOfRecords) {
  Random random(random_seed());
  int plain = 0, repeated = 0, in_runs = 0;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    const Sample records = list_of_records(random, i % 3 == 0);
    const layout::Layout& layout = *records.layout;
    if (layout.core == layout::Core::index) {
      (layout.child->modes.empty() ? plain : repeated) += layout.child->core == layout::Core::segments;
      in_runs += layout.offsets.has_runs();
    }
    ASSERT_NO_FATAL_FAILURE(check(random_case(random, records, 3), random));
  }
  EXPECT_GT(plain, 100);
  EXPECT_GT(repeated, 10);
  EXPECT_GT(in_runs, 10);
}

TEST(Run, CollectsTheFieldsOfOneRecordHoweverTheyLie) {
  const layout::Segment runs[] = {{0, 8}, {20, 4}, {4, 9}};
  const layout::LayoutPointer record = layout::segments(runs);
  host::Fields fields;
  EXPECT_TRUE(fields.collect(*record, {1, 0, 21}, host::Dense::source)) << "one record keeps its order";
  EXPECT_EQ(fields.count, 3);
  EXPECT_TRUE(fields.are_plain());
  EXPECT_FALSE(fields.collect(*record, {2, 100, 21}, host::Dense::source));
  EXPECT_TRUE(fields.collect(*record, {2, 100, 21}, host::Dense::destination));
}

TEST(Run, FollowsNestsDeeperThanItsPlans) {
  Random random(random_seed());
  Sample nest = block(0, 1);
  for (Offset stride = 3; nest.map.size() < (1u << 18); stride = 2 * stride + 1) nest = repeat(nest, 2, stride);
  ASSERT_EQ(nest.layout->modes.size(), 18u);
  Case test{nest, {1, 0}, random_chunks(random, static_cast<Offset>(nest.map.size())), 1, 3};
  check(test, random);
}

TEST(Run, MovesNothingForEmptyJobs) {
  Random random(random_seed());
  check({block(0, 0), {7, 3}, {{0, 0}}, 0, 0}, random);
  check({repeat(block(0, 4), 3, 9), {0, 50}, {{0, 0}}, 0, 0}, random);
  check({repeat(block(0, 4), 3, 9), {2, 50}, {{0, 0}, {5, 5}, {0, 24}, {24, 24}}, 0, 0}, random);
  host::run(std::span<const Job>{});
}

TEST(Run, RunsABatchInOrder) {
  char memory[8] = "abcdefg", packed[8] = {};
  const auto layout = layout::repeat(layout::block(0, 1), 4, 2);
  const Job jobs[] = {{layout.get(), {1, 0}, 0, 2, Direction::pack, memory, packed},
                      {layout.get(), {1, 0}, 2, 4, Direction::pack, memory, packed + 2},
                      {layout.get(), {1, 0}, 0, 4, Direction::unpack, memory + 1, packed}};
  host::run(jobs);
  EXPECT_STREQ(packed, "aceg");
  EXPECT_EQ(std::string_view(memory, 8),
            "aaccee"
            "gg");
}

/// 6 GiB of addresses of which only the pages touched exist.
class Huge : public ::testing::Test {
 protected:
  static constexpr Offset bytes = Offset{6} << 30;

  void SetUp() override {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<char*>(mapped);
  }
  void TearDown() override { munmap(memory_, bytes); }

  void check_far(const Sample& sample, Offset origin) {
    Random random(random_seed());
    const Bytes packed = random_bytes(random, sample.map.size());
    const Offset size = static_cast<Offset>(packed.size());
    for (const std::string_view name : host::implementations()) {
      ASSERT_TRUE(host::select_implementation(name));
      for (const auto& [begin, end] : random_chunks(random, size)) {
        host::run(Job{sample.layout.get(),
                      {1, 0},
                      begin,
                      end,
                      Direction::unpack,
                      memory_ + origin,
                      const_cast<char*>(packed.data()) + begin});
      }
      for (Offset k = 0; k < size; ++k) {
        ASSERT_EQ(memory_[origin + sample.map[static_cast<std::size_t>(k)]], packed[static_cast<std::size_t>(k)]);
      }
      Bytes back(packed.size());
      host::run(Job{sample.layout.get(), {1, 0}, 0, size, Direction::pack, memory_ + origin, back.data()});
      ASSERT_EQ(back, packed) << name;
      for (const Offset offset : sample.map) memory_[origin + offset] = 0;
    }
  }

  char* memory_ = nullptr;
};

TEST_F(Huge, StridesBeyondFourGigabytes) {
  check_far(repeat(repeat(block(0, 12), 3, 40), 58, 100'000'007), 0);
  check_far(repeat(block(0, 12), 2, 5'000'000'000), 0);
}

TEST_F(Huge, NegativeStridesBeyondFourGigabytes) {
  check_far(repeat(repeat(block(0, 12), 3, -40), 58, -100'000'007), bytes - 100);
}

TEST_F(Huge, ListsBeyondFourGigabytes) {
  check_far(index(block(0, 24), {5'500'000'000, 17, 2'200'000'000, 4'294'967'296, 100}), 0);
  check_far(segments({{5'500'000'000, 3}, {17, 200}, {4'294'967'295, 9}, {1000, 1}}), 0);
}

TEST(Run, RowsWithSetConflicts) {
  Random random(random_seed());
  constexpr Offset rows = 218, chunk = 99;  // the last rows of each range are too few for conflicts
  for (const Offset stride : {512, 1536, 1024, 2048, -2048, 4096, 3 * 8192}) {
    const Offset step = stride > 4096 ? 7 : 1;  // memory that is so far spread takes long to fill
    for (Offset length = 1; length <= 260; length += length < 40 ? step : 23) {
      SCOPED_TRACE(::testing::Message() << length << " bytes every " << stride);
      Case test{repeat(block(0, length), rows, stride), {2, (rows + 3) * stride + 8}, {}, length % 16, length % 7};
      for (Offset begin = 0; begin < test.size(); begin += chunk * length) {
        test.chunks.emplace_back(begin, std::min(begin + chunk * length, test.size()));
      }
      for (const auto* rules : {&host::no_conflicts, &host::conflicts_of_zen4, &host::conflicts_of_zen5}) {
        host::use_conflict_rules(*rules);
        check(test, random);
      }
    }
  }
}

// Each length from a line on, at each place in a line of both sides.
TEST(Run, LongBlocks) {
  Random random(random_seed());
  for (const Offset length : {257, 300, 319, 320, 321, 1000, 2048, 2049, 5003, 16383, 16384}) {
    for (Offset shift = 0; shift < 64; ++shift) {
      SCOPED_TRACE(::testing::Message() << length << " bytes, " << shift << " bytes into a line");
      const Case test = long_blocks(random, length, shift);
      for (const auto* rules : {&host::no_conflicts, &host::conflicts_of_zen3}) {
        host::use_conflict_rules(*rules);
        check(test, random);
      }
    }
  }
}

}  // namespace
}  // namespace gapless::pack::testing

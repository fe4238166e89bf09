// Random nested datatypes against their type maps: everything the layer says of a layout is checked by enumeration.
#include <gtest/gtest.h>

#include <set>

#include "../support/seed.hpp"
#include "check_layout.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/algebra/facts.hpp"
#include "layout/algebra/refine.hpp"
#include "random_datatype.hpp"
#include "random_layout.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

constexpr int samples = 50'000;

/// Draws `count` types and stops at the first that fails a check.
template <class Check>
void for_random_types(int count, Check check) {
  DatatypeGenerator generator(tests::random_seed());
  for (int i = 0; i < count; ++i) {
    const RandomDatatype drawn = generator.draw(static_cast<int>(generator.between(1, 4)));
    SCOPED_TRACE(drawn.text);
    check(drawn, generator);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Maximal runs of a list of bytes.
std::vector<Segment> runs_of(std::span<const Offset> bytes) {
  std::vector<Segment> runs;
  for (const Offset byte : bytes) {
    if (!runs.empty() && runs.back().offset + runs.back().length == byte) {
      ++runs.back().length;
    } else {
      runs.push_back({byte, 1});
    }
  }
  return runs;
}

/// The bytes of `outer.count` repetitions.
std::vector<Offset> repeated(const std::vector<Offset>& bytes, Mode outer) {
  std::vector<Offset> all;
  for (Offset r = 0; r < outer.count; ++r) {
    for (const Offset byte : bytes) all.push_back(byte + r * outer.stride);
  }
  return all;
}

bool names_no_byte_twice(const std::vector<Offset>& bytes) {
  return std::set<Offset>(bytes.begin(), bytes.end()).size() == bytes.size();
}

TEST(Property, LayoutsAndBoundsEqualTypeMaps) {
  for_random_types(samples,
                   [](const RandomDatatype& drawn, DatatypeGenerator&) { expect_same(drawn.type, drawn.map); });
}

TEST(Property, EqualFunctionsHaveEqualForms) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator& generator) {
    const std::vector<Offset>& bytes = drawn.map.bytes;
    // Three other descriptions of the same function: every byte by itself, runs cut at random, a struct of them.
    const std::vector<Offset> ones(bytes.size(), 1);
    const Datatype byte = named(1, 1);
    const Layout& layout = *drawn.type.layout;
    EXPECT_EQ(layout, *hindexed(ones, bytes, byte).layout) << describe(layout);
    std::vector<Offset> lengths, displacements;
    std::vector<Datatype> children;
    for (Segment run : runs_of(bytes)) {
      while (run.length > 0) {
        const Offset taken = generator.between(1, run.length);
        lengths.push_back(taken);
        displacements.push_back(run.offset);
        children.push_back(byte);
        run = {run.offset + taken, run.length - taken};
      }
    }
    const Datatype as_struct = structure(lengths, displacements, children);
    EXPECT_EQ(layout, *as_struct.layout) << describe(layout) << "\n" << describe(*as_struct.layout);
    EXPECT_EQ(hash(layout), hash(*as_struct.layout));
    std::vector<LayoutPointer> terms;
    for (std::size_t i = 0; i < lengths.size(); ++i) terms.push_back(block(displacements[i], lengths[i]));
    EXPECT_EQ(layout, *concatenate(terms));
  });
}

TEST(Property, CursorVisitsAnyRangeInOrder) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator& generator) {
    const Mode outer{generator.between(1, 3), drawn.map.extent()};
    const std::vector<Offset> bytes = repeated(drawn.map.bytes, outer);
    const auto size = static_cast<Offset>(bytes.size());
    const Offset begin = generator.between(0, size), end = generator.between(begin, size);
    const auto range = std::span(bytes).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    EXPECT_EQ(segments_of(*drawn.type.layout, outer, begin, end), runs_of(range)) << begin << " " << end;
    std::vector<Offset> visited;
    Cursor cursor(*drawn.type.layout, outer, begin, end);
    for (Segment run; cursor.next(run);) {
      EXPECT_GT(run.length, 0);
      for (Offset i = 0; i < run.length; ++i) visited.push_back(run.offset + i);
    }
    EXPECT_TRUE(std::ranges::equal(visited, range));
  });
}

TEST(Property, FactsDescribeTheBlocks) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator&) {
    const Layout& layout = *drawn.type.layout;
    const Facts facts = facts_of(layout);
    EXPECT_EQ(facts.size, static_cast<Offset>(drawn.map.bytes.size()));
    EXPECT_EQ(facts.true_lower_bound, drawn.map.true_lower_bound());
    EXPECT_EQ(facts.true_upper_bound, drawn.map.true_upper_bound());
    EXPECT_EQ(facts.block_count, segment_count(layout));
    Cursor cursor(layout, {1, 0}, 0, layout.size);
    Offset count = 0, shortest = layout.size, longest = 0, first = 0;
    std::uint64_t differences = 16;
    for (Segment run; cursor.next(run); ++count) {
      if (count == 0) first = run.offset;
      shortest = std::min(shortest, run.length);
      longest = std::max(longest, run.length);
      differences |= static_cast<std::uint64_t>(run.length) | static_cast<std::uint64_t>(run.offset - first);
    }
    EXPECT_EQ(facts.block_count, count);
    EXPECT_EQ(facts.shortest_block, shortest);
    EXPECT_EQ(facts.longest_block, longest);
    Offset alignment = 1;  // also of the empty layout
    while (count > 0 && alignment < 16 && differences % static_cast<std::uint64_t>(2 * alignment) == 0) alignment *= 2;
    EXPECT_EQ(facts.alignment, alignment);
    // Small layouts are compared exactly.
    EXPECT_EQ(is_injective(layout, {1, 0}), names_no_byte_twice(drawn.map.bytes));
  });
}

TEST(Property, InjectiveIsExactOnSmallRepetitions) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator& generator) {
    const Mode outer{generator.between(0, 4), generator.between(-40, 80)};
    EXPECT_EQ(is_injective(*drawn.type.layout, outer), names_no_byte_twice(repeated(drawn.map.bytes, outer)))
        << outer.count << " x " << outer.stride;
  });
}

TEST(Property, TextFormGivesTheSameType) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator&) {
    const Datatype parsed = parse_datatype(drawn.text);
    EXPECT_EQ(*parsed.layout, *drawn.type.layout);
    EXPECT_EQ(parsed.lower_bound, drawn.type.lower_bound);
    EXPECT_EQ(parsed.upper_bound, drawn.type.upper_bound);
    EXPECT_FALSE(describe(*parsed.layout).empty());
  });
}

TEST(Property, BuildersMeetTheirPostconditions) {
  for_random_types(samples, [](const RandomDatatype& drawn, DatatypeGenerator& generator) {
    const LayoutPointer& child = drawn.type.layout;
    const std::vector<Offset>& bytes = drawn.map.bytes;
    const Offset distance = generator.between(-100, 100);
    EXPECT_EQ(enumerate(*shift(child, distance)), [&] {
      std::vector<Offset> moved = bytes;
      for (Offset& byte : moved) byte += distance;
      return moved;
    }());
    const Mode mode{generator.between(0, 4), generator.between(-50, 100)};
    const LayoutPointer nest = repeat(child, mode.count, mode.stride);
    EXPECT_EQ(enumerate(*nest), repeated(bytes, mode));
    expect_invariants(*nest);
    std::vector<Offset> offsets, placed;
    for (Offset i = generator.between(0, 5); i > 0; --i) offsets.push_back(generator.between(-60, 60));
    for (const Offset offset : offsets) {
      for (const Offset byte : bytes) placed.push_back(byte + offset);
    }
    const LayoutPointer list = index(child, offsets);
    EXPECT_EQ(enumerate(*list), placed);
    expect_invariants(*list);
    std::vector<Offset> joined = enumerate(*nest);
    joined.insert(joined.end(), placed.begin(), placed.end());
    const LayoutPointer terms[] = {nest, empty(), list};
    const LayoutPointer sum = concatenate(terms);
    EXPECT_EQ(enumerate(*sum), joined);
    expect_invariants(*sum);
    EXPECT_EQ(enumerate(*segments(runs_of(joined))), joined);
  });
}

TEST(Property, PairCursorPairsEveryByte) {
  std::optional<RandomDatatype> previous;
  for_random_types(samples, [&](const RandomDatatype& drawn, DatatypeGenerator& generator) {
    const auto size = static_cast<Offset>(drawn.map.bytes.size());
    if (previous && size > 0 && !previous->map.bytes.empty()) {
      // Repeat the previous type until it covers as many bytes.
      const auto other_size = static_cast<Offset>(previous->map.bytes.size());
      const Mode outer{(size - 1) / other_size + 1, previous->map.extent()};
      const std::vector<Offset> other = repeated(previous->map.bytes, outer);
      const Offset begin = generator.between(0, size), end = generator.between(begin, size);
      PairCursor pairs(Cursor(*drawn.type.layout, {1, 0}, begin, end),
                       Cursor(*previous->type.layout, outer, begin, end));
      auto k = static_cast<std::size_t>(begin);
      for (PairedRun run; pairs.next(run);) {
        ASSERT_GT(run.length, 0);
        for (Offset i = 0; i < run.length; ++i, ++k) {
          ASSERT_EQ(run.source + i, drawn.map.bytes[k]);
          ASSERT_EQ(run.destination + i, other[k]);
        }
      }
      EXPECT_EQ(k, static_cast<std::size_t>(end));
    }
    previous = drawn;
  });
}

TEST(Property, AlgebraAloneIsRightInDeepNests) {
  LayoutGenerator generator(tests::random_seed());
  int injective = 0;
  for (int i = 0; i < samples && !::testing::Test::HasFailure(); ++i) {
    const auto [layout, bytes] = generator.draw(static_cast<int>(generator.between(1, 4)));
    SCOPED_TRACE(describe(*layout));
    const auto size = static_cast<Offset>(bytes.size());
    EXPECT_EQ(enumerate(*layout), bytes);
    expect_invariants(*layout);
    const Mode outer{generator.between(1, 3), generator.between(-200, 400)};
    const std::vector<Offset> all = repeated(bytes, outer);
    const Offset begin = generator.between(0, size * outer.count), end = generator.between(begin, size * outer.count);
    const auto range = std::span(all).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    EXPECT_EQ(segments_of(*layout, outer, begin, end), runs_of(range));
    const Facts facts = facts_of(*layout);
    EXPECT_EQ(facts.true_lower_bound, std::ranges::min(bytes));
    EXPECT_EQ(facts.true_upper_bound, std::ranges::max(bytes) + 1);
    EXPECT_EQ(is_injective(*layout, outer), names_no_byte_twice(all));
    injective += is_injective(*layout, {1, 0});
    // Made canonical, it is what its bytes alone give.
    EXPECT_EQ(*concatenate({&layout, 1}), *segments(runs_of(bytes)));
  }
  EXPECT_GT(injective, samples / 100);
}

/// A strided layout of exactly `size` bytes: the factors of the size, dealt to modes in random order.
LayoutPointer random_strided(DatatypeGenerator& generator, Offset size) {
  std::vector<Offset> factors;
  for (Offset rest = size, p = 2; rest > 1;) {
    if (rest % p == 0) {
      factors.push_back(p);
      rest /= p;
    } else {
      ++p;
    }
  }
  std::ranges::shuffle(factors, generator.random());
  LayoutPointer layout = block(generator.between(-20, 20), 1);
  Offset reach = 1;
  for (const Offset factor : factors) {
    const Offset stride = generator.below(2) == 0 ? reach : generator.between(-100, 100);
    layout = repeat(layout, factor, stride);
    reach = factor * stride;
  }
  return layout;
}

TEST(Property, RefinementPairsEveryByte) {
  DatatypeGenerator generator(tests::random_seed());
  constexpr Offset sizes[] = {1, 8, 12, 24, 36, 60, 64, 72};
  int refined = 0;
  for (int i = 0; i < samples; ++i) {
    const Offset size = sizes[generator.below(std::size(sizes))];
    const LayoutPointer source = random_strided(generator, size), destination = random_strided(generator, size);
    SCOPED_TRACE(describe(*source) + " | " + describe(*destination));
    const std::optional<PairedStrided> paired = refine(*source, *destination);
    if (!paired) continue;
    ++refined;
    std::vector<Offset> from, to;
    Offset blocks = 1;
    for (const PairedMode& mode : paired->modes) blocks *= mode.count;
    for (Offset b = 0; b < blocks; ++b) {
      Offset rest = b, a = paired->source_base, c = paired->destination_base;
      for (const PairedMode& mode : paired->modes) {
        a += rest % mode.count * mode.source_stride;
        c += rest % mode.count * mode.destination_stride;
        rest /= mode.count;
      }
      for (Offset j = 0; j < paired->length; ++j) {
        from.push_back(a + j);
        to.push_back(c + j);
      }
    }
    ASSERT_EQ(from, enumerate(*source));
    ASSERT_EQ(to, enumerate(*destination));
  }
  EXPECT_GT(refined, samples / 10) << "too few pairs had a refinement to test it";
}

}  // namespace
}  // namespace gapless::testing

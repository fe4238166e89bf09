// Streaming stores write what ordinary stores write: with the bound lowered, so that short jobs are streamed.

#include <gtest/gtest.h>

#include <array>

#include "case.hpp"
#include "pack/host/streaming.hpp"

namespace gapless::pack::testing {
namespace {

/// While it lives, all that is unpacked goes by streaming stores.
struct AllStreamed {
  AllStreamed() { host::stream_from(0); }
  ~AllStreamed() { host::stream_from(host::streamed_from_bytes); }
};

// What is long enough for streaming stores, at each place in a line; whole lines; and what has other copies.
TEST(Streaming, WritesLongBlocks) {
  const AllStreamed all;
  Random random(random_seed());
  for (const Offset length : {512, 575, 576, 577, 3000}) {
    for (Offset shift = 0; shift < 64; ++shift) {
      SCOPED_TRACE(::testing::Message() << length << " bytes, " << shift << " bytes into a line");
      check(long_blocks(random, length, shift), random);
    }
  }
}

TEST(Streaming, WritesWholeLines) {
  const AllStreamed all;
  Random random(random_seed());
  alignas(64) static std::array<char, 8 * 1024> memory;
  for (const Offset length : {64, 128, 192}) {
    for (const std::string_view name : host::implementations()) {
      ASSERT_TRUE(host::select_implementation(name));
      const Sample sample = repeat(repeat(block(64, length), 3, 256), 8, 960);
      const Bytes packed = random_bytes(random, sample.map.size());
      Bytes expected(memory.size(), '#');
      for (std::size_t k = 0; k < packed.size(); ++k) expected[static_cast<std::size_t>(sample.map[k])] = packed[k];
      memory.fill('#');
      host::run(Job{sample.layout.get(),
                    {1, 0},
                    0,
                    static_cast<Offset>(packed.size()),
                    Direction::unpack,
                    memory.data(),
                    const_cast<char*>(packed.data())});
      ASSERT_EQ(Bytes(memory.begin(), memory.end()), expected) << length << " by " << name;
    }
  }
}

TEST(Streaming, AgreesWithTypeMapsOfRandomLayouts) {
  const AllStreamed all;
  Random random(random_seed());
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " of seed " << random_seed());
    check(random_case(random, random_sample(random, i % 4, pick(random, 1, 400)), 4), random);
  }
}

TEST(Streaming, CopiesBetweenLayouts) {
  const AllStreamed all;
  Random random(random_seed());
  const Sample from = repeat(block(0, 600), 5, 640), to = repeat(block(3, 600), 5, 700);
  const Bytes memory = random_bytes(random, static_cast<std::size_t>(reach(from)));
  const Bytes before = random_bytes(random, 3 + static_cast<std::size_t>(reach(to) + guard));
  Bytes expected = before;
  for (std::size_t k = 0; k < from.map.size(); ++k)
    expected[static_cast<std::size_t>(to.map[k])] = memory[static_cast<std::size_t>(from.map[k])];
  for (const std::string_view name : host::implementations()) {
    ASSERT_TRUE(host::select_implementation(name));
    Bytes result = before;
    host::copy(*from.layout, {1, 0}, memory.data(), *to.layout, {1, 0}, result.data());
    ASSERT_EQ(result, expected) << name;
  }
}

TEST(Streaming, IsForLongMessagesAndTheirParts) {
  const Offset much = host::streamed_from_bytes, row = much / 64;
  const Sample rows = {layout::repeat(layout::block(0, row), 64, 2 * row), {}};
  const auto job = [&](Offset begin, Offset end, Direction direction) {
    return Job{rows.layout.get(), {1, 0}, begin, end, direction, nullptr, nullptr};
  };
  EXPECT_TRUE(host::unpacks_much(job(0, much, Direction::unpack), much));
  EXPECT_TRUE(host::unpacks_much(job(row, row + much / 128, Direction::unpack), much));
  EXPECT_FALSE(host::unpacks_much(job(0, much / 128 - 1, Direction::unpack), much)) << "a short message";
  EXPECT_FALSE(host::unpacks_much(job(0, much, Direction::unpack), much + 1));
  EXPECT_FALSE(host::unpacks_much(job(0, much, Direction::pack), much));
}

TEST(Streaming, IsLeftWhereLinesAreWrittenInPart) {
  alignas(64) static char memory[64];
  const auto nest = [](Offset length, Offset stride) { return host::Nest{length, 1, {host::Loop{8, length, stride}}}; };
  EXPECT_TRUE(host::writes_whole_lines(nest(64, 128), memory));
  EXPECT_TRUE(host::writes_whole_lines(nest(512, 1000), memory + 8));
  EXPECT_FALSE(host::writes_whole_lines(nest(64, 128), memory + 8));
  EXPECT_FALSE(host::writes_whole_lines(nest(64, 100), memory));
  EXPECT_FALSE(host::writes_whole_lines(nest(96, 128), memory));
}

}  // namespace
}  // namespace gapless::pack::testing

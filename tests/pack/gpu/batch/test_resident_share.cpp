// The resident kernel's arithmetic, run on the CPU in memory that is watched, against plain lists of offsets. What
// small nests do in shares is tested with all that nests do, in tests/pack/gpu/plan/test_index_logic.cpp.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "exercise.hpp"
#include "host_descriptors.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/algebra/refine.hpp"
#include "pack/gpu/batch/resident_share.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

TEST(ResidentShares, AreOfAllWordsAndNoneIsEmpty) {
  for (const std::uint32_t most_blocks : {8u, 16u}) {
    for (std::uint32_t words = 0; words < 20000; ++words) {
      const ResidentShares shares = shares_of(words, most_blocks);
      ASSERT_TRUE(1 <= shares.blocks && shares.blocks <= most_blocks) << words << " words";
      ASSERT_GE(shares.blocks * shares.words, words);
      ASSERT_TRUE(words == 0 || (shares.blocks - 1) * shares.words < words) << words << " words";
    }
  }
}

/// A block repeated over up to two modes, in any order of strides, and where its bytes lie.
Sample block_in_modes(Offset length, Offset rows, Offset row_stride, Offset planes, Offset plane_stride) {
  Sample sample{layout::repeat(layout::repeat(layout::block(0, length), rows, row_stride), planes, plane_stride), {}};
  for (Offset plane = 0; plane < planes; ++plane) {
    for (Offset row = 0; row < rows; ++row) {
      for (Offset k = 0; k < length; ++k) sample.map.push_back(plane * plane_stride + row * row_stride + k);
    }
  }
  return sample;
}

/// The addresses of a sample's bytes whose offset 0 lies at `origin`.
std::vector<std::uintptr_t> addresses_of(const Sample& sample, std::uintptr_t origin) {
  std::vector<std::uintptr_t> addresses;
  for (const Offset offset : sample.map) addresses.push_back(origin + static_cast<std::uintptr_t>(offset));
  return addresses;
}

/// True if the pair is one for resident kernels, which then moves every byte once.
bool moves_in_shares(Planner& planner, const Sample& from, const Sample& into, std::uint32_t most_blocks) {
  constexpr std::uintptr_t source_origin = std::uintptr_t{1} << 40, destination_origin = std::uintptr_t{1} << 44;
  const pack::PairJob job{from.layout.get(), {1, 0}, reinterpret_cast<const void*>(source_origin),
                          into.layout.get(), {1, 0}, reinterpret_cast<void*>(destination_origin)};
  const auto pair = resident_pair(plan_pair(planner, job, 0).launch);
  if (!pair) return false;
  const MovedBytes sources(addresses_of(from, source_origin)), destinations(addresses_of(into, destination_origin));
  expect_to_move_once(sources, destinations, [&](const WatchedSpace& space) {
    const ResidentShares shares = shares_of(pair->word_count, most_blocks);
    for (std::uint32_t i = 0; i < shares.blocks; ++i) {
      run_share(*pair, shares.words, i, SequentialBlock<WatchedSpace>{space});
    }
  });
  return true;
}

TEST(ResidentPairs, AreMovedInSharesByteForByte) {
  RandomLayouts random(random_seed());
  DescriptorCache cache(std::make_shared<HostDescriptors>(), 1 << 20);
  Planner planner(cache);
  int moved = 0;
  for (int i = 0; i < 300; ++i) {
    const Offset word = Offset{1} << random.number(0, 4), length = word * random.number(1, 9);
    const Offset rows = random.number(2, i % 10 == 0 ? 600 : 30), planes = random.number(1, 5);
    const auto gap = [&] { return word * random.number(1, 5); };
    const Offset source_stride = length + gap(), destination_stride = length + gap();
    // Rows of the source are planes of the destination in some, and some planes go backwards.
    const Sample from = block_in_modes(length, rows, source_stride, planes, rows * source_stride + gap());
    const Offset sign = random.number(0, 1) * 2 - 1;
    const Sample into =
        i % 3 == 0
            ? block_in_modes(length, rows, planes * destination_stride, planes, destination_stride)
            : block_in_modes(length, rows, destination_stride, planes, sign * (rows * destination_stride + gap()));
    moved += moves_in_shares(planner, from, into, i % 2 == 0 ? 8 : 16);
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 200);
}

/// Blocks of other lengths, which refine each other to one mode more than a resident kernel takes; and rows.
TEST(ResidentPairs, OfMoreModesAndRowsAreLeftToLaunches) {
  DescriptorCache cache(std::make_shared<HostDescriptors>(), 1 << 20);
  Planner planner(cache);
  const Sample from = block_in_modes(8, 6, 24, 5, 400), into = block_in_modes(16, 3, 40, 5, 700);
  const auto refined = layout::refine(*from.layout, *into.layout);
  ASSERT_TRUE(refined);
  EXPECT_EQ(std::size_t{ResidentPair::most_levels}, refined->modes.size());  // beside the words of a block
  EXPECT_FALSE(moves_in_shares(planner, from, into, 16));
  const Sample row = block_in_modes(240, 1, 0, 1, 0);
  EXPECT_FALSE(moves_in_shares(planner, row, row, 16));
}

}  // namespace
}  // namespace gapless::tests

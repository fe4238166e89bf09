// A layout that went to a peer as bytes names the same bytes in the same order; bytes that are no layout are refused.
#include <gtest/gtest.h>

#include "random_layout.hpp"
#include "seed.hpp"
#include "transfer/rdma/memory/description.hpp"

namespace gapless::tests {
namespace {

using transfer::rdma::describe;
using transfer::rdma::understand;

TEST(Description, RandomLayoutsAreUnderstood) {
  RandomLayouts random(random_seed());
  for (int i = 0; i < 400; ++i) {
    const Sample sample = random.next(random.number(0, 3) == 0);
    const auto bytes = describe(*sample.layout);
    const LayoutPointer layout = understand(bytes);
    ASSERT_NE(layout, nullptr) << i;
    ASSERT_EQ(layout->size, static_cast<Offset>(sample.map.size())) << i;
    for (std::size_t k = 0; k < sample.map.size(); ++k) {
      ASSERT_EQ(layout::offset_of(*layout, static_cast<Offset>(k)), sample.map[k]) << i << ' ' << k;
    }
    for (const std::size_t cut : {bytes.size() - 1, bytes.size() / 2, std::size_t{0}}) {
      ASSERT_EQ(understand(std::span(bytes).first(cut)), nullptr) << i;
    }
  }
}

TEST(Description, RepeatedBlocksAreDescribedByModes) {
  const LayoutPointer layout = layout::repeat(layout::block(3, 8), 1 << 20, 64);
  EXPECT_LE(describe(*layout).size(), 64u) << "modes, not blocks";
  EXPECT_TRUE(*understand(describe(*layout)) == *layout);
  EXPECT_TRUE(understand(describe(*layout::empty()))->is_empty());
}

TEST(Description, SpoiledBytesNeverDoHarm) {
  RandomLayouts random(random_seed());
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    auto bytes = describe(*random.next(false).layout);
    const auto at = static_cast<std::size_t>(random.number(0, static_cast<Offset>(bytes.size()) - 1));
    bytes[at] = static_cast<std::byte>(random.bits());
    if (understand(bytes) == nullptr) ++refused;
  }
  EXPECT_GT(refused, 0);
  const std::vector<Offset> unknown_core{4, 0, 0, 8}, negative{0, 0, 0, -8}, endless{1, 0, 0, Offset{1} << 60};
  for (const auto& numbers : {unknown_core, negative, endless}) {
    EXPECT_EQ(understand(std::as_bytes(std::span(numbers))), nullptr);
  }
}

}  // namespace
}  // namespace gapless::tests

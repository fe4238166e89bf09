// Which scheme for which memory and layout, and that a scheme can be forced only where it makes sense.
#include <gtest/gtest.h>

#include "layout/datatype.hpp"
#include "model/model.hpp"
#include "transfer/transfer.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using transfer::Buffer;
using transfer::Scheme;
using transfer::Side;

transfer::Described described(const layout::Datatype& type) {
  const bool contiguous = type.layout->is_contiguous() && type.extent() == type.size();
  return {type.layout, layout::facts_of(*type.layout), type.extent(), contiguous};
}

class Choice : public ::testing::Test {
 protected:
  void TearDown() override {
    transfer::force_scheme(std::nullopt);
    model::profile() = {};
  }
  Scheme choose(const transfer::Described& type, MemoryKind kind, Side side = Side::sender, layout::Offset count = 1) {
    return transfer::choose({&type, count, nullptr, Location{kind, kind == MemoryKind::host ? -1 : 0}}, side);
  }
  const layout::Datatype byte_ = layout::named(1, 1);
  const transfer::Described contiguous_ = described(layout::contiguous(1 << 20, byte_));
  const transfer::Described small_blocks_ = described(layout::vector(1000, 8, 64, byte_));
  const transfer::Described large_blocks_ = described(layout::vector(8, 1 << 20, 1 << 21, byte_));
};

TEST_F(Choice, ContiguousHostMemoryIsTheLibrarys) {
  for (MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::managed}) {
    EXPECT_EQ(choose(contiguous_, kind), Scheme::native);
    EXPECT_EQ(choose(contiguous_, kind, Side::receiver, 7), Scheme::native);
  }
}

TEST_F(Choice, OneBlockIsContiguousHoweverLargeTheExtent) {
  const auto padded = described(layout::resized(layout::contiguous(8, byte_), 0, 64));
  EXPECT_EQ(choose(padded, MemoryKind::host, Side::sender, 1), Scheme::native);
  EXPECT_EQ(choose(padded, MemoryKind::host, Side::sender, 2), Scheme::packed);
}

TEST_F(Choice, SmallBlocksArePackedAndLargeOnesAreNot) {
  EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::native);
  model::profile().host.library_block_bytes = 4;
  EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::native);
}

TEST_F(Choice, GpuMemoryNeverGoesNative) {
  for (const auto* type : {&contiguous_, &small_blocks_, &large_blocks_}) {
    for (Side side : {Side::sender, Side::receiver}) {
      EXPECT_TRUE(choose(*type, MemoryKind::device, side) == Scheme::oneshot ||
                  choose(*type, MemoryKind::device, side) == Scheme::staged);
    }
  }
}

TEST_F(Choice, FollowsTheModelsCosts) {
  model::profile().gpu.mapped_read_bytes_per_ns = 1;
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::receiver), Scheme::staged);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::sender), Scheme::oneshot);
  EXPECT_EQ(choose(contiguous_, MemoryKind::device, Side::receiver), Scheme::oneshot);
}

TEST_F(Choice, ForcedWhereTheMemoryAllowsIt) {
  transfer::force_scheme(Scheme::native);
  EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::native);
  EXPECT_NE(choose(small_blocks_, MemoryKind::device), Scheme::native);
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(contiguous_, MemoryKind::host), Scheme::native);
  EXPECT_NE(choose(small_blocks_, MemoryKind::device), Scheme::packed);
  for (Scheme scheme : {Scheme::oneshot, Scheme::staged}) {
    transfer::force_scheme(scheme);
    EXPECT_EQ(choose(small_blocks_, MemoryKind::device), scheme);
    EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::packed);
    EXPECT_EQ(choose(contiguous_, MemoryKind::host), Scheme::native);
  }
}

TEST_F(Choice, NamesAreThoseOfTheEnvironmentVariable) {
  EXPECT_STREQ(transfer::name(Scheme::native), "native");
  EXPECT_STREQ(transfer::name(Scheme::packed), "packed");
  EXPECT_STREQ(transfer::name(Scheme::oneshot), "oneshot");
  EXPECT_STREQ(transfer::name(Scheme::staged), "staged");
}

}  // namespace
}  // namespace gapless::tests

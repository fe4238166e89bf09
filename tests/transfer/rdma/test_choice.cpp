// Which scheme is chosen, by the blocks of both sides (Wu et al., 2003, section 6), and the segments of a message.
#include <gtest/gtest.h>

#include <limits>

#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {
namespace {

Blocks blocks(std::uint64_t count, std::uint64_t length) { return {count * length, count, length, 2 * count * length}; }

/// Hardware: operations are cheap, copies are not.
model::FabricProfile hardware() {
  model::FabricProfile profile;
  profile.operation_ns = 300;
  profile.byte_ns = 0.05;
  profile.read_byte_ns = 0.07;
  profile.notification_ns = 1500;
  profile.overlap = 1;
  return profile;
}

Ends ends(const Blocks& sender, const Blocks& receiver, std::size_t entries = 30) {
  Ends result{sender, receiver, {}, segment_bytes_for(sender.bytes, 128 << 10, hardware())};
  result.limits = {.gather_entries = entries,
                   .scatter_entries = entries,
                   .operation_bytes = 1 << 30,
                   .outstanding = 128,
                   .has_immediates = true,
                   .is_ordered = true,
                   .posts_lists = true,
                   .follows_mappings = true};
  return result;
}

Scheme chosen(const Ends& both) { return choose(both, hardware()); }

TEST(Choice, LongBlocksOnBothSidesAreWritten) {
  EXPECT_EQ(chosen(ends(blocks(128, 8192), blocks(128, 8192))), Scheme::multi_write);
  EXPECT_EQ(chosen(ends(blocks(1, 1 << 20), blocks(1, 1 << 20))), Scheme::multi_write);
}

TEST(Choice, ManyShortBlocksOnBothSidesAreCopied) {
  EXPECT_EQ(chosen(ends(blocks(1 << 16, 16), blocks(1 << 16, 16))), Scheme::pipelined);
}

TEST(Choice, TheSideWithLongBlocksIsNotCopied) {
  EXPECT_EQ(chosen(ends(blocks(1024, 1024), blocks(1 << 17, 8))), Scheme::gather_write);
  EXPECT_EQ(chosen(ends(blocks(1 << 17, 8), blocks(256, 4096))), Scheme::scatter_read);
}

TEST(Choice, RegistrationsCountWhereTheyAreNotKept) {
  Ends both = ends(blocks(128, 8192), blocks(128, 8192));
  both.limits.follows_mappings = false;
  both.sender.reach = both.receiver.reach = std::uint64_t{1} << 30;
  EXPECT_EQ(chosen(both), Scheme::pipelined);
}

TEST(Choice, OnlyWhatIsAllowedAndApplies) {
  const Ends both = ends(blocks(128, 8192), blocks(128, 8192));
  for (std::size_t i = 0; i < scheme_count; ++i) EXPECT_EQ(choose(both, hardware(), 1u << i), static_cast<Scheme>(i));
  Ends countless = ends(blocks(1 << 20, 1), blocks(1, 1 << 20), 1);
  countless.limits.is_ordered = false;  // each of 128 Ki writes of a segment would carry the number of them all
  EXPECT_FALSE(gather_write.applies(countless));
  countless.limits.has_immediates = false;
  for (std::size_t i = 0; i < scheme_count; ++i) EXPECT_FALSE(of(static_cast<Scheme>(i)).applies(countless));
}

TEST(Choice, TheChosenSchemeIsPredictedToBeTheFastest) {
  for (std::uint64_t from = 4; from <= 1 << 20; from *= 4) {
    for (std::uint64_t to = 4; to <= 1 << 20; to *= 4) {
      const Ends both = ends(blocks((1 << 20) / from, from), blocks((1 << 20) / to, to));
      const double least = of(chosen(both)).predict_ns(both, hardware());
      for (std::size_t i = 0; i < scheme_count; ++i) {
        EXPECT_LE(least, of(static_cast<Scheme>(i)).predict_ns(both, hardware())) << from << ' ' << to;
      }
    }
  }
}

// Where one way gives place to another, worked out by hand from the definitions of the costs: a MiB in 8 segments, 4
// entries an operation, 209 715 ns to copy it, 104 858 to write it, 125 829 to read it, and 1000 ns an operation.

constexpr std::uint64_t mebibyte = 1 << 20, countless = 1 << 18;

model::FabricProfile round_figures() {
  model::FabricProfile profile;
  profile.operation_ns = 1000;
  profile.byte_ns = 0.1;
  profile.read_byte_ns = 0.12;
  profile.notification_ns = 500;
  profile.copied_byte_ns = 0.2;
  profile.copied_block_ns = 0;
  profile.registration_ns = 1500;
  profile.registered_page_ns = 60;
  profile.overlap = 1;
  return profile;
}

/// `bytes` in so many blocks at each side.
Ends in_blocks(std::uint64_t sender, std::uint64_t receiver, std::uint64_t bytes = mebibyte) {
  return ends({bytes, sender, bytes / sender, bytes}, {bytes, receiver, bytes / receiver, bytes}, 4);
}

constexpr std::optional<Scheme> packed_whole = std::nullopt;
std::optional<Scheme> way(const Ends& both, const model::FabricProfile& profile = round_figures()) {
  return choose_beside_packed(both, profile);
}

TEST(Crossover, GatherWriteAndPipelinedByTheSendersBlocks) {
  EXPECT_EQ(way(in_blocks(472, countless)), Scheme::gather_write);  // 118 operations
  EXPECT_EQ(way(in_blocks(473, countless)), Scheme::pipelined);
}

TEST(Crossover, ScatterReadAndPipelinedByTheReceiversBlocks) {
  EXPECT_EQ(way(in_blocks(countless, 356)), Scheme::scatter_read);  // 89 operations
  EXPECT_EQ(way(in_blocks(countless, 357)), Scheme::pipelined);
}

TEST(Crossover, MultiWriteAndGatherWriteByTheReceiversBlocks) {
  EXPECT_EQ(way(in_blocks(8, 118)), Scheme::multi_write);
  EXPECT_EQ(way(in_blocks(8, 119)), Scheme::gather_write);
}

TEST(Crossover, MultiWriteAndScatterReadByTheSendersBlocks) {
  EXPECT_EQ(way(in_blocks(488, 8)), Scheme::multi_write);  // 122 operations
  EXPECT_EQ(way(in_blocks(489, 8)), Scheme::scatter_read);
}

TEST(Crossover, PackedAndPipelinedByTheSize) {
  model::FabricProfile profile = round_figures();
  profile.operation_ns = 20000;
  EXPECT_EQ(way(in_blocks(countless, countless, 399'900), profile), packed_whole);
  EXPECT_EQ(way(in_blocks(countless, countless, 400'100), profile), Scheme::pipelined);
}

TEST(Crossover, PackedAndMultiWriteByTheBlocks) {
  model::FabricProfile profile = round_figures();
  profile.operation_ns = 20000;
  EXPECT_EQ(way(in_blocks(2, 2, 64 << 10), profile), Scheme::multi_write);
  EXPECT_EQ(way(in_blocks(3, 3, 64 << 10), profile), packed_whole);
}

TEST(Crossover, ByWhatAnOperationCosts) {
  model::FabricProfile profile = round_figures();
  const Ends both = in_blocks(100, 100);
  const auto at = [&](double operation_ns) {
    profile.operation_ns = operation_ns;
    return way(both, profile);
  };
  EXPECT_EQ(at(1217), Scheme::multi_write);
  EXPECT_EQ(at(1218), Scheme::gather_write);
  EXPECT_EQ(at(4915), Scheme::gather_write);
  EXPECT_EQ(at(4916), Scheme::pipelined);
}

TEST(Crossover, ByTheBandwidth) {
  model::FabricProfile profile = round_figures();
  profile.byte_ns = 0.1206;
  EXPECT_EQ(way(in_blocks(400, countless), profile), Scheme::gather_write);
  profile.byte_ns = 0.1208;  // the slower, the less a copy costs
  EXPECT_EQ(way(in_blocks(400, countless), profile), Scheme::pipelined);
}

TEST(Crossover, ByThePagesToRegister) {
  Ends both = in_blocks(8, 8);
  both.limits.follows_mappings = false;
  both.sender.reach = both.receiver.reach = 1118 * 4096;
  EXPECT_EQ(way(both), Scheme::multi_write);
  both.sender.reach = both.receiver.reach = 1119 * 4096;
  EXPECT_EQ(way(both), Scheme::pipelined);
}

TEST(Crossover, WithoutOverlapMoreSegmentsOnlyTakeMoreOperations) {
  model::FabricProfile profile = round_figures();
  profile.operation_ns = 20000;
  EXPECT_EQ(way(in_blocks(countless, countless), profile), Scheme::pipelined);
  profile.overlap = 0.5;  // of 367 us that 8 segments hide with 1, and 140 us that they take
  EXPECT_EQ(way(in_blocks(countless, countless), profile), Scheme::pipelined);
  profile.overlap = 0.35;
  EXPECT_EQ(way(in_blocks(countless, countless), profile), packed_whole);
}

TEST(Crossover, WithoutOrderPackedTakesANotification) {
  Ends both = in_blocks(countless, countless, 12 << 10);
  EXPECT_EQ(way(both), packed_whole);  // one segment, which takes as long
  both.limits.is_ordered = false;
  EXPECT_EQ(way(both), Scheme::pipelined);
  Ends few = in_blocks(1, 8, 64 << 10);
  few.limits.gather_entries = few.limits.scatter_entries = 1;
  model::FabricProfile profile = round_figures();
  EXPECT_EQ(way(few, profile), Scheme::multi_write);
  few.limits.is_ordered = false;
  profile.notification_ns = 20000;
  EXPECT_NE(way(few, profile), Scheme::multi_write);
}

TEST(Crossover, WhatIsMeasuredOfTheLibraryDecides) {
  constexpr double not_measured = std::numeric_limits<double>::infinity();
  model::FabricProfile profile = round_figures();
  const Ends both = in_blocks(8, 8);  // multi-write, which takes 8 operations and 104 858 ns
  EXPECT_TRUE(is_sooner_than_others(both, profile, not_measured));
  EXPECT_TRUE(is_sooner_than_others(both, profile, 1)) << "without a handshake there is nothing to compare";
  profile.handshake_ns = 30000;
  EXPECT_TRUE(is_sooner_than_others(both, profile, not_measured));
  EXPECT_TRUE(is_sooner_than_others(both, profile, 142'900));
  EXPECT_FALSE(is_sooner_than_others(both, profile, 142'800));
  profile.operation_ns = 200000;  // packed in one piece is predicted to be sooner, and is not
  EXPECT_FALSE(is_sooner_than_others(both, profile, not_measured));
  EXPECT_TRUE(is_sooner_than_others(both, profile, 1e8));
  Ends none = both;
  none.limits.has_immediates = false;
  EXPECT_FALSE(is_sooner_than_others(none, profile, 1e8));
}

TEST(Crossover, WithoutImmediatesAllIsPacked) {
  Ends both = in_blocks(8, 8);
  both.limits.has_immediates = false;
  EXPECT_EQ(way(both), packed_whole);
}

TEST(Choice, MessagesHaveSegmentsFrom16KiBOn) {
  const auto segment_bytes = [](std::uint64_t bytes, std::uint64_t most) {
    return segment_bytes_for(bytes, most, hardware());
  };
  EXPECT_EQ(segment_bytes(1, 128 << 10), 1u);
  EXPECT_EQ(segment_bytes(16383, 128 << 10), 16383u);
  EXPECT_EQ(segment_bytes(16384, 128 << 10), 8192u);
  EXPECT_EQ(segment_bytes(1 << 20, 128 << 10), 128u << 10);
  EXPECT_EQ(segment_bytes(std::uint64_t{1} << 40, 128 << 10), 128u << 10);
  EXPECT_EQ(segment_bytes(16383, 4096), 4096u);
}

TEST(Choice, MessagesHaveAsManySegmentsAsPay) {
  model::FabricProfile profile = hardware();
  const auto segments_of_96_kib = [&] {
    constexpr std::uint64_t bytes = 96 << 10;
    return bytes / segment_bytes_for(bytes, 128 << 10, profile);
  };
  // Both copies take 19 661 ns: n segments leave an n-th of that, and take n operations.
  EXPECT_EQ(segments_of_96_kib(), 8u);
  profile.operation_ns = 2185;
  EXPECT_EQ(segments_of_96_kib(), 3u);
  profile.overlap = 0.26;
  EXPECT_EQ(segments_of_96_kib(), 2u);  // the root of 2.34 is 1.53
  profile.overlap = 0;
  EXPECT_EQ(segments_of_96_kib(), 1u);
}

TEST(Choice, ImmediatesSayWhatWasMeant) {
  const Immediate immediate = Immediate::decoded(Immediate{0xabc, 64 + 5, 0x3fff}.encoded());
  EXPECT_EQ(immediate.transfer, 0xabcu);
  EXPECT_EQ(immediate.segment, 5u);
  EXPECT_EQ(immediate.number, 0x3fffu);
}

}  // namespace
}  // namespace gapless::transfer::rdma

// What a message by a fabric takes, by scheme, size and layout: posts, notifications, completions, copies and
// registrations, as Wu et al. count them (2003, sections 4 and 5). And which way is taken where none is forced.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "headers/fabric_messages.hpp"

namespace gapless::test {
namespace {

constexpr std::uint64_t int_bytes = sizeof(int), page = 4096;
constexpr std::uint64_t gathered = 4;  // blocks of one operation, by tcp and shm
constexpr std::uint64_t window = 8;    // segments under way

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// What one side does for one message.
struct Taken {
  std::uint64_t posts = 0, notifications = 0, copied_bytes = 0;
};

/// A message of equal blocks at each side, all of them with gaps between.
struct Lengths {
  std::uint64_t bytes, sent_block, received_block;

  explicit Lengths(const Shape& shape)
      : bytes(static_cast<std::uint64_t>(shape.sent_blocks) * static_cast<std::uint64_t>(shape.sent_length) *
              int_bytes),
        sent_block(static_cast<std::uint64_t>(shape.sent_length) * int_bytes),
        received_block(static_cast<std::uint64_t>(shape.received_length) * int_bytes) {}

  /// In whole pages, from 8 to 128 KiB (Wu et al., 2003, 7.2). By shm a segment takes 1600 ns, and n segments leave an
  /// n-th of the 0.1 ns a byte that they hide; by tcp they hide nothing.
  std::uint64_t segment() const {
    const double hidden = setting("GAPLESS_FABRIC") == "shm" ? 0.1 * static_cast<double>(bytes) : 0;
    const double count = std::clamp(std::round(std::sqrt(hidden / 1600)), 1.0, 8.0);
    const auto part = static_cast<std::uint64_t>(static_cast<double>(bytes) / count);
    return std::clamp<std::uint64_t>(divided_up(part, page) * page, 8 << 10, 128 << 10);
  }
  std::uint64_t segments() const { return divided_up(bytes, segment()); }

  /// The operations of each segment carry `gathered` of the blocks that lie in it.
  std::uint64_t in_segments(std::uint64_t block) const {
    std::uint64_t posts = 0;
    for (std::uint64_t begin = 0; begin < bytes; begin += segment()) {
      const std::uint64_t end = std::min(begin + segment(), bytes);
      posts += divided_up(divided_up(end, block) - begin / block, gathered);
    }
    return posts;
  }
  /// The operations of each of the receiver's blocks carry `gathered` of the sender's that go there.
  std::uint64_t in_received_blocks() const {
    std::uint64_t posts = 0;
    for (std::uint64_t begin = 0; begin < bytes; begin += received_block) {
      const std::uint64_t end = std::min(begin + received_block, bytes);
      posts += divided_up(divided_up(end, sent_block) - begin / sent_block, gathered);
    }
    return posts;
  }
};

Taken taken(Scheme scheme, const Lengths& message) {
  const std::uint64_t segments = message.segments();
  constexpr std::uint64_t letter = 1;
  // Places of the window that are given back.
  const std::uint64_t credits = segments - std::min(segments, window);
  switch (scheme) {
    case gather_write:
      if (is_sender()) return {.posts = message.in_segments(message.sent_block)};
      return {.notifications = letter + credits, .copied_bytes = message.bytes};
    case scatter_read:
      if (is_sender()) return {.notifications = segments, .copied_bytes = message.bytes};
      return {.posts = message.in_segments(message.received_block), .notifications = letter + segments};
    case multi_write:
      // Where writes arrive in order, the last one says that all are there.
      if (is_sender())
        return {.posts = message.in_received_blocks(), .notifications = setting("GAPLESS_FABRIC") == "tcp" ? 0u : 1u};
      return {.notifications = letter};
    default:
      if (is_sender()) return {.posts = segments, .copied_bytes = message.bytes};
      return {.notifications = letter + credits, .copied_bytes = message.bytes};
  }
}

/// Regions that a side's memory takes at most, the first time: a vector is one group.
std::uint64_t most_registrations(Scheme scheme) {
  const bool registers = scheme == multi_write || scheme == (is_sender() ? gather_write : scatter_read);
  return registers ? 1 : 0;
}

// 16 KiB to 2 MiB; blocks as long at both sides, longer at either, and none a part of a page or of the others' blocks.
const std::vector<Shape> counted_shapes{{16, 256, 4, 1024},    {64, 256, 64, 256},    {128, 1024, 64, 2048},
                                        {4096, 16, 8, 8192},   {8, 8192, 4096, 16},   {300, 700, 100, 2100},
                                        {100, 2100, 300, 700}, {512, 1024, 2048, 256}};

class FabricCounts : public Fabric {};

TEST_F(FabricCounts, AreThoseOfTheSchemeTheSizeAndTheLayout) {
  if (!takes_part()) return;
  for (const Shape& shape : counted_shapes) {
    const Lengths lengths(shape);
    const Side from(shape.sent_blocks, shape.sent_length, shape.sent_length + 3, 5);
    Side to(shape.received_blocks, shape.received_length, 2 * shape.received_length, -1);
    for (const Scheme scheme : {pipelined, gather_write, scatter_read, multi_write}) {
      SCOPED_TRACE(testing::Message() << scheme_names[scheme] << ", " << lengths.bytes << " B in blocks of "
                                      << lengths.sent_block << " and " << lengths.received_block);
      force(scheme_names[scheme]);
      const Counts at_first = counts();
      constexpr int rounds = 3;
      Counts before{};
      for (int round = 0; round < rounds + 1; ++round) {
        if (round == 1) before = counts();
        MPI_Status status{};
        if (is_sender()) {
          send(from, By::blocking);
        } else {
          receive(to, By::blocking, status);
        }
        // The receiver has said so: nothing of the message is under way at either side.
        MPI_Barrier(MPI_COMM_WORLD);
      }
      const Counts after = counts();
      if (!uses_fabric() || is_impatient()) continue;
      const Taken each = taken(scheme, lengths);
      EXPECT_EQ(rounds * each.posts, after.posts - before.posts);
      EXPECT_EQ(each.posts == 0 ? 0 : rounds * lengths.bytes, after.posted_bytes - before.posted_bytes);
      EXPECT_EQ(rounds * each.notifications, after.notifications - before.notifications);
      EXPECT_EQ(rounds * (each.posts + each.notifications), after.completions - before.completions);
      EXPECT_EQ(rounds * each.copied_bytes, after.copied_bytes - before.copied_bytes);
      EXPECT_GE(most_registrations(scheme), before.registrations - at_first.registrations);
      EXPECT_EQ(before.registrations, after.registrations);
      EXPECT_EQ(0u, after.copied_out - before.copied_out);
      EXPECT_EQ(0u, after.abandoned);
    }
  }
}

TEST_F(FabricCounts, ShortMessagesTakeNothing) {
  if (!takes_part()) return;
  force(scheme_names[pipelined]);
  const Counts before = counts();
  pass({15, 256, 60, 64}, By::blocking);
  MPI_Barrier(MPI_COMM_WORLD);
  const Counts after = counts();
  EXPECT_EQ(before.posts, after.posts);
  EXPECT_EQ(before.notifications, after.notifications);
}

/// By the built-in costs: 5 us an operation by tcp, 1.6 by shm, where half of the copies can be hidden.
TEST_F(FabricCounts, TheWayIsThatOfThePrediction) {
  if (!takes_part()) return;
  force("");
  struct Way {
    Shape shape;
    int scheme;  ///< -1: packed, by the library
  };
  const bool is_tcp = setting("GAPLESS_FABRIC") == "tcp";
  const int copied = is_tcp ? -1 : static_cast<int>(pipelined);
  // 16 KiB in short blocks; 1 MiB in long blocks, in short ones, and in long ones that are short at the receiver.
  const std::vector<Way> ways{{{256, 16, 256, 16}, copied},
                              {{8, 32768, 8, 32768}, multi_write},
                              {{65536, 4, 65536, 4}, copied},
                              {{8, 32768, 65536, 4}, gather_write}};
  for (const Way& way : ways) {
    pass(way.shape, By::blocking);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::uint64_t before = fabric_messages();
    const std::uint64_t before_by = way.scheme < 0 ? 0 : messages_by(static_cast<Scheme>(way.scheme));
    pass(way.shape, By::blocking);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!uses_fabric() || is_sender()) continue;
    EXPECT_EQ(before + (way.scheme < 0 ? 0 : 1), fabric_messages()) << way.shape.sent_blocks;
    if (way.scheme >= 0) {
      EXPECT_EQ(before_by + 1, messages_by(static_cast<Scheme>(way.scheme))) << scheme_names[way.scheme];
    }
  }
}

}  // namespace
}  // namespace gapless::test

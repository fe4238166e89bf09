// Messages that the receiver's GPU reads in the sender's memory: what a receiver makes of a sender that lies, and a
// sender of a receiver that does not come. The sender and the receiver are one process here, and its own peer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "strided_message.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/allocations.hpp"
#include "transfer/pulls/fetch.hpp"
#include "transfer/pulls/offer.hpp"

namespace gapless::transfer::pulls {
namespace {

using headers::Header;
using tests::block, tests::stride, tests::packed_bytes, tests::Bytes;

/// Of exported memory: four segments are less than a message.
constexpr std::size_t pool_bytes = std::size_t{2} << 20;

class Pulls : public tests::StridedMessage {
 protected:
  static void SetUpTestSuite() {
    ::setenv("PMIX_NAMESPACE", ("test-of-pulls-" + std::to_string(::getpid())).c_str(), 1);
    // Microseconds: no message is copied out for want of a receiver, however slow the machine is.
    ::setenv("GAPLESS_PULL_PATIENCE", "60000000", 1);
    set_pool_limit(pool_bytes);
    headers::listen(0, 2);
  }

  Pulls() {
    EXPECT_TRUE(headers::is_listening());
    make_places();
    // A peer is told of an allocation once several messages have come out of it.
    for (int times = 0; times < 3; ++times) {
      PullOffer early;
      Header header = fresh();
      if (early.secure(buffer(out_), headers::own_inbox(), 0, header)) early.withdraw();
    }
  }
  ~Pulls() override { drain_pools(); }

  static Header fresh() { return {headers::own_inbox().speaker().nonce, packed_bytes, ::getpid()}; }
  bool offers(PullOffer& offer, Header& header) {
    header = fresh();
    return offer.secure(buffer(out_), headers::own_inbox(), 0, header);
  }
  /// Its header has been sent. `is_copied`: nobody has come for it, and it lies packed.
  void send(PullOffer& offer, Header& header, bool is_copied) {
    ASSERT_TRUE(offers(offer, header));
    offer.hand_over();
    if (is_copied) {
      EXPECT_EQ(Result::ok, offer.complete_alone());
    }
  }
  Result fetch(const Header& header, const PulledWay& way, std::size_t bytes = packed_bytes) {
    PullFetch fetch;
    Batch batch;
    const Result begun = fetch.begin(header, way, buffer(in_), bytes, batch);
    const Result run = batch.run();
    fetch.end();
    return begun == Result::ok ? run : begun;
  }
};

/// Of the noncontiguous ones, those with long blocks alone.
TEST_F(Pulls, OfAnyLengthMayBeContiguous) {
  const layout::Datatype byte = layout::named(1, 1), every_other = layout::vector(1, 1, 2, byte),
                         long_blocks = layout::vector(1, 64, 128, byte);
  const auto may_be = [](const layout::Datatype& element, layout::Offset count, layout::Offset extent) {
    const Described described{element.layout, layout::facts_of(*element.layout), extent, extent == 1};
    return may_be_pulled({&described, count, nullptr, {device::MemoryKind::device, 0}});
  };
  EXPECT_TRUE(may_be(byte, 1000, 1));
  EXPECT_TRUE(may_be(byte, 8 << 20, 1));
  EXPECT_TRUE(may_be(every_other, 1000, 2));
  EXPECT_FALSE(may_be(every_other, 8 << 20, 2));
  EXPECT_TRUE(may_be(long_blocks, 8 << 20, 128));
}

/// Another thread may send out of other allocations while an offer is made.
TEST_F(Pulls, KeepTheEntryOfTheirAllocation) {
  auto mapped = mapped_by(headers::own_inbox(), out_);
  ASSERT_TRUE(mapped);
  const headers::ToldAllocation& entry = *mapped->offered;
  const std::uint64_t number = entry.number;
  std::vector<void*> others;
  const auto send_out_of_others = [&] {
    for (std::size_t k = 0; k < headers::own_inbox().told.all.size(); ++k) {
      others.push_back(make(true));
      EXPECT_FALSE(mapped_by(headers::own_inbox(), others.back()));
    }
  };
  send_out_of_others();
  EXPECT_EQ(number, entry.number);
  EXPECT_EQ(1u, entry.offers);
  mapped.reset();
  EXPECT_EQ(0u, entry.offers);
  send_out_of_others();
  EXPECT_NE(number, entry.number);
  for (void* const other : others) gpu_.release(other);
}

TEST_F(Pulls, AreReadWhereTheyLieByOneLaunch) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  const auto way = header.way<PulledWay>();
  ASSERT_TRUE(way);
  offer.hand_over();
  EXPECT_EQ(Result::under_way, offer.poll());
  gpu_.reset_counts();
  EXPECT_EQ(Result::ok, fetch(header, *way));
  EXPECT_EQ(1, gpu_.count("launches"));
  EXPECT_EQ(0, gpu_.count("allocations"));
  EXPECT_EQ(Result::ok, offer.poll());
  expect_arrived(packed_bytes);
}

/// Where the default stream had nothing to do when it was asked last, the header goes first, and the receiver waits for
/// what the stream does now. Then the stream is asked first.
TEST_F(Pulls, AreOfferedBehindTheirHeaderWhereTheStreamWasIdle) {
  void* const filled = make(true);
  const Bytes zeros(extent(), 0);
  gpu_.write(out_, zeros.data(), zeros.size());
  Header header;
  {
    PullOffer offer;
    ASSERT_TRUE(offers(offer, header));
    offer.withdraw();
  }
  device::runtime()->copy(out_, filled, extent(), 0, nullptr);
  PullOffer offer;
  ASSERT_TRUE(offers(offer, header));
  const auto way = header.way<PulledWay>();
  const auto& state = headers::own_inbox().head().pulls[way->words].state;
  EXPECT_EQ(headers::PullWords::State::awaiting, state.load());
  Result result = Result::under_way;
  std::thread receiver([&] { result = fetch(header, *way); });
  offer.hand_over();
  receiver.join();
  EXPECT_EQ(Result::ok, result);
  EXPECT_EQ(Result::ok, offer.wait());
  expect_arrived(packed_bytes);

  PullOffer next;
  ASSERT_TRUE(offers(next, header));
  EXPECT_EQ(headers::PullWords::State::offered,
            headers::own_inbox().head().pulls[header.way<PulledWay>()->words].state.load());
  next.withdraw();
  gpu_.release(filled);
}

TEST_F(Pulls, OfAStreamThatFailsAreErrorsOnBothSides) {
  Header header;
  {
    PullOffer offer;
    ASSERT_TRUE(offers(offer, header));
    offer.withdraw();
  }
  constexpr std::size_t beyond = std::size_t{1} << 40;
  device::runtime()->copy(out_, in_, beyond, 0, nullptr);
  PullOffer offer;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  EXPECT_EQ(Result::device_failed, offer.wait());
  EXPECT_EQ(Result::peer_failed, fetch(header, *header.way<PulledWay>()));
}

TEST_F(Pulls, OfWhichLessIsWanted) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  EXPECT_EQ(Result::ok, fetch(header, *header.way<PulledWay>(), 4711));
  EXPECT_EQ(Result::ok, offer.wait());
  expect_arrived(4711);
}

TEST_F(Pulls, ThatNobodyFetchesAreCopiedOut) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  EXPECT_EQ(Result::ok, offer.complete_alone());
  const Bytes others(extent(), 0xaa);
  gpu_.write(out_, others.data(), others.size());  // the program has its memory back
  EXPECT_EQ(Result::ok, fetch(header, *header.way<PulledWay>()));
  expect_arrived(packed_bytes);
}

/// Two processes may both wait for their sends, of which others have taken all of the pool.
TEST_F(Pulls, ThatNobodyFetchesAreCopiedOutThroughTheRoomKeptForThem) {
  headers::ExportedPool& pool = headers::own_exported_pool();
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  std::vector<headers::SegmentRun> others;
  for (auto run = pool.take(1); run.count != 0; run = pool.take(1)) others.push_back(run);
  PullOffer without_room;
  Header of_none;
  EXPECT_FALSE(offers(without_room, of_none));
  EXPECT_EQ(Result::ok, offer.complete_alone());
  EXPECT_EQ(1u, gapless_pulls_copied_out());
  const Bytes changed(extent(), 0xaa);
  gpu_.write(out_, changed.data(), changed.size());
  EXPECT_EQ(Result::ok, fetch(header, *header.way<PulledWay>()));
  expect_arrived(packed_bytes);
  for (const headers::SegmentRun run : others) pool.give_back(run);
}

TEST_F(Pulls, GiveBackTheRoomKeptForThem) {
  Header header;
  for (int times = 0; times < 3; ++times) {
    PullOffer offer;
    ASSERT_TRUE(offers(offer, header));
    if (times == 0) {
      offer.withdraw();
      continue;
    }
    offer.hand_over();
    EXPECT_EQ(Result::ok, times == 1 ? fetch(header, *header.way<PulledWay>()) : offer.complete_alone());
    if (times == 2) release_pulled(header, *header.way<PulledWay>());
    EXPECT_EQ(Result::ok, offer.wait());
  }
  const headers::SegmentRun all = headers::own_exported_pool().take(headers::own_exported_pool().room());
  EXPECT_NE(0u, all.count);
  headers::own_exported_pool().give_back(all);
}

TEST_F(Pulls, ThatCannotBeCopiedOutEndForBoth) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  gpu_.fail("run", 0, -1);
  EXPECT_NE(Result::ok, offer.complete_alone());
  gpu_.fail("run", 0, 0);
  EXPECT_EQ(Result::peer_failed, fetch(header, *header.way<PulledWay>()));
}

/// A GPU of the receiver that does not reach the sender's.
TEST_F(Pulls, ComeByHostMemoryWhereTheGpuDoesNotReachThem) {
  constexpr int other = 1;
  void* there = gpu_.allocate(other, extent());
  const Bytes zeros(extent(), 0);
  gpu_.write(there, zeros.data(), zeros.size());
  for (const bool is_copied : {false, true}) {
    PullOffer offer;
    Header header;
    ASSERT_NO_FATAL_FAILURE(send(offer, header, is_copied));
    Buffer into = buffer(there);
    into.location.device = other;
    gpu_.fail("enable_peer", 0, 1);
    PullFetch fetch;
    Batch batch;
    EXPECT_EQ(Result::ok, fetch.begin(header, *header.way<PulledWay>(), into, packed_bytes, batch));
    EXPECT_EQ(Result::ok, batch.run());
    fetch.end();
    EXPECT_EQ(Result::ok, offer.wait());
    std::swap(in_, there);
    expect_arrived(packed_bytes);
    std::swap(in_, there);
    gpu_.write(there, zeros.data(), zeros.size());
  }
  gpu_.release(there);
}

TEST_F(Pulls, ThatAreRefusedFreeTheirSenders) {
  for (const bool is_copied : {false, true}) {
    PullOffer offer;
    Header header;
    ASSERT_NO_FATAL_FAILURE(send(offer, header, is_copied));
    release_pulled(header, *header.way<PulledWay>());
    EXPECT_EQ(Result::ok, offer.wait());
    expect_arrived(0);
  }
}

TEST_F(Pulls, HaveSoManyWordsAtATime) {
  std::deque<PullOffer> all;
  Header header;
  for (unsigned k = 0; k < headers::pull_count; ++k) ASSERT_TRUE(offers(all.emplace_back(), header)) << k;
  PullOffer another;
  EXPECT_FALSE(offers(another, header));
  all.clear();  // none is released: all are withdrawn
  EXPECT_TRUE(offers(another, header));
  another.withdraw();
}

TEST_F(Pulls, OfSendersThatLieAreErrorsOfTheReceiver) {
  using Lie = std::function<void(PulledWay&)>;
  const std::vector<Lie> lies{
      [](PulledWay& way) { way.layout.length = 0; },
      [](PulledWay& way) { way.layout.length = layout::Offset{1} << 40; },
      [](PulledWay& way) { way.layout.base = -1; },
      [](PulledWay& way) { way.layout.mode_count = 9; },
      [](PulledWay& way) { way.layout.mode_count = -1; },
      [](PulledWay& way) { way.layout.modes[0].count = 1 << 20; },
      [](PulledWay& way) { way.layout.modes[0].stride = -(layout::Offset{1} << 62); },
      [](PulledWay& way) {
        way.layout.base = -(layout::Offset{1} << 62);
        way.layout.modes[0].stride = layout::Offset{1} << 52;
      },
      [](PulledWay& way) { way.count = 0; },
      [](PulledWay& way) { way.count = layout::Offset{1} << 62; },
      [](PulledWay& way) { way.address += 1 << 20; },
      [](PulledWay& way) { way.memory.bytes = 16; },
  };
  for (std::size_t k = 0; k < lies.size(); ++k) {
    PullOffer offer;
    Header header;
    ASSERT_TRUE(offers(offer, header));
    PulledWay way = *header.way<PulledWay>();
    lies[k](way);
    offer.hand_over();
    EXPECT_EQ(Result::peer_failed, fetch(header, way)) << k;
    EXPECT_EQ(Result::ok, offer.wait()) << k;
  }
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  PulledWay way = *header.way<PulledWay>();
  way.rank = 7;
  EXPECT_EQ(Result::peer_failed, fetch(header, way));
  offer.withdraw();
  expect_arrived(0);
}

TEST_F(Pulls, WithoutMemoryOnTheWayFail) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  drain_pools();
  gpu_.fail("allocate", 0, -1);
  EXPECT_EQ(Result::out_of_memory, fetch(header, *header.way<PulledWay>(), 4711));
  gpu_.fail("allocate", 0, 0);
  EXPECT_EQ(Result::ok, offer.wait());
}

TEST_F(Pulls, ThatAGpuCannotReadFail) {
  PullOffer offer;
  Header header;
  ASSERT_TRUE(offers(offer, header));
  offer.hand_over();
  gpu_.fail("run", 0, 1);
  EXPECT_EQ(Result::device_failed, fetch(header, *header.way<PulledWay>()));
  EXPECT_EQ(Result::ok, offer.wait());
}

}  // namespace
}  // namespace gapless::transfer::pulls

// Headers as bytes, and the slots of an inbox that this process makes for itself.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/shared_segment.hpp"
#include "layout/datatype/datatype.hpp"
#include "learn_filling.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/headers/offers.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::transfer {
namespace {

using headers::Header;
using headers::Nonce;
using headers::WayKind;
using headers::WaySet;
using schemes::SlotsOffer;
using schemes::SlotsWay;

Nonce nonce(int value) {
  Nonce result;
  result.fill(static_cast<std::byte>(value));
  return result;
}

TEST(Header, TellsWhatItWasMadeOf) {
  Header header(nonce(5), 123'456, 77);
  SlotsWay offered{3, {9, 8, 7}};
  ASSERT_TRUE(header.add(offered));
  std::byte bytes[Header::size];
  std::memcpy(bytes, &header, sizeof header);
  Header arrived;
  std::memcpy(&arrived, bytes, sizeof arrived);
  const headers::Nonce expected = nonce(5);
  EXPECT_EQ(0, std::memcmp(bytes, expected.data(), expected.size()));
  EXPECT_EQ(0, std::memcmp(bytes + Header::size - expected.size(), expected.data(), expected.size()));
  EXPECT_EQ(123'456u, arrived.bytes());
  EXPECT_EQ(77, arrived.sender());
  const auto way = arrived.way<SlotsWay>();
  ASSERT_TRUE(way);
  EXPECT_EQ(3u, way->count);
  EXPECT_EQ(7, way->slots[2]);
}

/// Every message asks, and no place of the receiver's is ever free again.
TEST(Introductions, AreNotTriedAgainWhereOthersHaveAllPlaces) {
  using State = headers::Introduction::State;
  headers::Inbox peer(SharedSegment::make("test-of-introductions", headers::inbox_bytes, headers::inbox_bytes));
  ASSERT_TRUE(peer);
  auto& places = peer.head().introductions;
  for (headers::Introduction& each : places) each.state = State::accepted;
  device::MemoryHandle handle;
  handle.number = 7;
  handle.process = -2;
  const auto ask = [&](std::atomic<unsigned>& introduction) {
    EXPECT_EQ(headers::Answer::Kind::none, headers::introduce(peer, introduction, handle).kind);
    return peer.head().asked.load();
  };
  EXPECT_EQ(0u, ask(peer.introduction));
  places[5].state = State::none;
  EXPECT_EQ(0u, ask(peer.introduction));
  EXPECT_EQ(State::none, places[5].state) << "it is not looked for";
  EXPECT_EQ(1u, ask(peer.introduction_on_host)) << "of that memory no question has been refused";
  EXPECT_EQ(State::asked, places[5].state);
}

/// Another way.
struct Other {
  static constexpr auto kind = static_cast<headers::WayKind>(99);
  std::byte data[300];
};

TEST(Header, HasRoomForSeveralWays) {
  Header header(nonce(1), 2000, 1);
  EXPECT_FALSE(header.way<SlotsWay>());
  EXPECT_TRUE(header.add(Other{}));
  EXPECT_TRUE(header.add(SlotsWay{1, {4}}));
  EXPECT_FALSE(header.add(Other{}));
  ASSERT_TRUE(header.way<SlotsWay>());
  EXPECT_EQ(4, header.way<SlotsWay>()->slots[0]);
}

TEST(Header, TellsOfTheWaysThatAreKnown) {
  Header header(nonce(1), 2000, 1);
  EXPECT_EQ(WaySet{}, header.ways());
  EXPECT_TRUE(header.add(Other{}));
  EXPECT_EQ(WaySet{}, header.ways());
  EXPECT_TRUE(header.add(SlotsWay{1, {4}}));
  EXPECT_EQ(WaySet{WayKind::slots}, header.ways());
}

TEST(Header, WaysThatAreNonsenseAreNone) {
  for (int value = 0; value < 256; ++value) {
    std::byte bytes[Header::size];
    std::memset(bytes, value, sizeof bytes);
    Header header;
    std::memcpy(&header, bytes, sizeof header);
    EXPECT_FALSE(header.way<SlotsWay>());
  }
}

class Slots : public testing::Test {
 protected:
  Slots() : inbox_(SharedSegment::make("test-of-slots", headers::inbox_bytes, headers::inbox_bytes)) {
    inbox_.head().free_slots.store(~std::uint64_t{0});
  }
  /// Single bytes, one in every two.
  Buffer buffer(std::size_t bytes) {
    const auto size = static_cast<layout::Offset>(bytes);
    const layout::Datatype datatype = layout::vector(size, 1, 2, layout::named(1, 1));
    types_.push_back(std::make_unique<Described>(
        Described{datatype.layout, layout::facts_of(*datatype.layout), datatype.extent(), false}));
    memory_.assign(2 * bytes, std::byte{0});
    for (std::size_t k = 0; k < bytes; ++k) memory_[2 * k] = static_cast<std::byte>(k * 31 / 7);
    return {types_.back().get(), 1, memory_.data(), {}};
  }
  bool secure(SlotsOffer& offer, std::size_t bytes) {
    header_ = Header(nonce(1), bytes, 1);
    return offer.secure(buffer(bytes), inbox_, header_);
  }
  void expect_packed_bytes_in_order();
  int free_slots() const { return __builtin_popcountll(inbox_.head().free_slots.load()); }

  headers::Inbox inbox_;
  Header header_;
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<Described>> types_;
};

void Slots::expect_packed_bytes_in_order() {
  constexpr std::size_t bytes = 3 * headers::slot_bytes + 100;
  SlotsOffer offer;
  ASSERT_TRUE(secure(offer, bytes));
  offer.pack();
  const auto way = header_.way<SlotsWay>();
  ASSERT_TRUE(way);
  ASSERT_EQ(4u, way->count);
  EXPECT_EQ(4u, inbox_.head().words[way->slots[0]].packed.load());
  for (std::size_t k = 0; k < bytes; ++k) {
    const std::byte* slot = inbox_.slot(way->slots[k / headers::slot_bytes]);
    ASSERT_EQ(memory_[2 * k], slot[k % headers::slot_bytes]) << k;
  }
}

TEST_F(Slots, HoldThePackedBytesInOrder) { expect_packed_bytes_in_order(); }

/// Of eight slots at first, or 64 later, one is timed by each kind of copy.
TEST_F(Slots, HoldThemThoughSomeAreTimed) {
  tests::learn(inbox_.filling, 1, 0);
  ASSERT_FALSE(inbox_.filling.is_far());
  for (unsigned k = 0; k < 2 * model::Filling::timed_later; ++k) expect_packed_bytes_in_order();
}

TEST_F(Slots, HoldThemWhereTheReceiverIsFar) {
  tests::learn(inbox_.filling, 5, 1);
  ASSERT_TRUE(inbox_.filling.is_far());
  expect_packed_bytes_in_order();
}

TEST_F(Slots, AreFreeAgainIfTheOfferEndsUnreleased) {
  {
    SlotsOffer offer;
    ASSERT_TRUE(secure(offer, 100'000));
    EXPECT_EQ(60, free_slots());
  }
  EXPECT_EQ(64, free_slots());
}

TEST_F(Slots, AreTheReceiversOnceReleased) {
  SlotsOffer offer;
  ASSERT_TRUE(secure(offer, 100'000));
  offer.hand_over();
  EXPECT_FALSE(offer);
  EXPECT_EQ(60, free_slots());
}

TEST_F(Slots, AreOfferedWholeOrNotAtAll) {
  std::vector<std::unique_ptr<SlotsOffer>> offers;
  for (int k = 0; k < 2; ++k) {
    offers.push_back(std::make_unique<SlotsOffer>());
    ASSERT_TRUE(secure(*offers.back(), 31 * headers::slot_bytes));
  }
  EXPECT_EQ(2, free_slots());
  SlotsOffer third;
  EXPECT_FALSE(secure(third, 3 * headers::slot_bytes));
  EXPECT_EQ(2, free_slots());
  EXPECT_TRUE(secure(third, 2 * headers::slot_bytes));
}

/// Whoever lets messages wait is offered none for a while, each time a longer one.
TEST(PutOff, IsLongerEachTime) {
  headers::PutOff put_off;
  const auto count = [&] {
    int messages = 0;
    while (put_off.is_next()) ++messages;
    return messages;
  };
  EXPECT_EQ(0, count());
  for (const int messages : {16, 32, 64, 128, 256, 512, 1024, 1024}) {
    put_off.begin();
    EXPECT_EQ(messages, count());
  }
  put_off.end();
  put_off.begin();
  EXPECT_EQ(16, count());
}

TEST(PutOff, CountsAWindowThatWaitsOnce) {
  headers::PutOff put_off;
  for (int messages = 0; messages < 64; ++messages) put_off.begin();
  int left = 0;
  while (put_off.is_next()) ++left;
  EXPECT_EQ(16, left);
}

/// The number of a process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

void listen() {
  // A job of its own, for processes of one job find each other.
  ::setenv("PMIX_NAMESPACE", ("test-of-slots-" + std::to_string(::getpid())).c_str(), 1);
  headers::listen(0, 2);
}

/// Attention is given to who has called, and not while a receive is under way that the library was left alone with.
TEST(Attention, WaitsForUnattendedReceives) {
  listen();
  ASSERT_TRUE(headers::is_listening());
  headers::InboxHead& own = headers::own_inbox().head();
  headers::begin_look();
  EXPECT_FALSE(headers::is_called());
  EXPECT_FALSE(headers::is_attentive(own));
  headers::Unattended early, late;
  EXPECT_TRUE(early.begin());
  EXPECT_TRUE(early.begin());
  EXPECT_FALSE(headers::is_attentive_when_called(own));
  EXPECT_TRUE(headers::is_called());
  EXPECT_FALSE(late.begin());
  headers::begin_look();
  EXPECT_FALSE(headers::is_attentive_when_called(own));
  early.end();
  EXPECT_FALSE(headers::is_attentive(own));
  headers::begin_look();
  EXPECT_TRUE(headers::is_attentive_when_called(own));
  EXPECT_FALSE(early.begin());
}

/// Looks that find no header.
void look(int times) {
  for (; times > 0; --times) headers::begin_look();
}

/// Attention is taken back after many looks at what was no header, unless one is on its way: its slots tell.
TEST_F(Slots, HaveTheirReceiverStayAttentive) {
  listen();
  ASSERT_TRUE(headers::is_listening());
  headers::Inbox& own = headers::own_inbox();
  const Buffer long_message = buffer(schemes::most_slots_bytes + 1), message = buffer(2000);
  EXPECT_FALSE(headers::is_attentive_when_called(own.head()));
  look(1);
  {
    headers::Offers offers;
    EXPECT_TRUE(offers.secure(message, own, {}, true, {}));
    look(headers::most_looks - 1);
    EXPECT_TRUE(headers::is_called());
    EXPECT_TRUE(headers::is_attentive(own.head()));
  }
  look(headers::most_looks - 1);
  headers::note_header();
  look(headers::looks_per_header);
  EXPECT_TRUE(headers::is_attentive(own.head()));
  look(1);
  EXPECT_FALSE(headers::is_called());
  EXPECT_FALSE(headers::is_attentive(own.head()));
  // A sender that has seen it attentive before finds out.
  headers::Offers offers;
  EXPECT_FALSE(offers.secure(message, own, {}, true, {}));
  EXPECT_EQ(headers::all_slots, own.head().free_slots.load());
  EXPECT_FALSE(headers::is_attentive_when_called(own.head()));
  // Nor does one go whose memory the receiver maps.
  headers::Offers in_a_ring;
  EXPECT_FALSE(in_a_ring.secure(long_message, own, {}, true, {}));
  look(1);
  EXPECT_TRUE(offers.secure(message, own, {}, true, {}));
  headers::Offers in_another;
  EXPECT_TRUE(in_another.secure(long_message, own, {}, true, {}));
}

/// A sender that is killed while it packs is noticed by its receiver, which does not wait for ever.
TEST_F(Slots, OfASenderThatHasEndedAreNotWaitedFor) {
  listen();
  ASSERT_TRUE(headers::is_listening());
  constexpr std::size_t bytes = 3 * headers::slot_bytes;
  SlotsOffer offer;
  header_ = Header(headers::own_inbox().speaker().nonce, bytes, ended_process());
  ASSERT_TRUE(offer.secure(buffer(bytes), headers::own_inbox(), header_));  // one slot is packed, and two are not
  const auto way = header_.way<SlotsWay>();
  ASSERT_TRUE(way);
  std::vector<std::byte> received(bytes);
  EXPECT_EQ(Result::peer_failed, schemes::fetch_from_slots(header_, *way, received.data(), bytes));
  offer.pack();
  EXPECT_EQ(Result::ok, schemes::fetch_from_slots(header_, *way, received.data(), bytes));
  offer.hand_over();
}

/// What arrives proves that what the same sender has sent before it, of the same envelope, has been matched.
TEST_F(Slots, AreTakenBackWhenTheyAreLost) {
  using headers::Envelope;
  headers::InboxHead& head = inbox_.head();
  const auto depart = [&](const Envelope& envelope) {
    SlotsOffer offer;
    header_ = Header(nonce(1), 2000, 1);
    EXPECT_TRUE(offer.secure(buffer(2000), inbox_, header_, envelope));
    offer.hand_over();
    return header_.way<SlotsWay>()->slots[0];
  };
  const auto take = [&](unsigned slot) {
    headers::note_arrival(head, head.words[slot]);
    head.free_slots.fetch_or(std::uint64_t{1} << slot);
  };
  depart({1, 7});
  const auto other_tag = depart({1, 8}), other_communicator = depart({2, 7}), unordered = depart({0, 7});
  depart({1, 7});
  const auto arrived = depart({1, 7}), younger = depart({1, 7});
  EXPECT_EQ(57, free_slots());
  // While there are enough nobody looks.
  take(arrived);
  EXPECT_FALSE(headers::may_be_lost());
  take(depart({1, 9}));
  for (int k = 0; k < 52; ++k) depart({0, 0});
  EXPECT_FALSE(headers::may_be_lost());
  take(depart({1, 9}));
  EXPECT_TRUE(headers::may_be_lost());
  headers::take_back_lost_slots(head);
  EXPECT_FALSE(headers::may_be_lost());
  EXPECT_EQ(6, free_slots());
  head.are_slots_short.store(true);
  take(younger);
  EXPECT_EQ(7, free_slots());
  headers::take_back_lost_slots(head);
  EXPECT_EQ(9, free_slots());
  for (const unsigned slot : {other_tag, other_communicator, unordered})
    EXPECT_EQ(0u, head.free_slots.load() >> slot & 1u) << slot;
}

TEST_F(Slots, AreForMessagesOfALength) {
  SlotsOffer offer;
  EXPECT_FALSE(secure(offer, 1023));
  EXPECT_FALSE(secure(offer, schemes::most_slots_bytes + 1));
  EXPECT_TRUE(secure(offer, schemes::most_slots_bytes));
}

}  // namespace
}  // namespace gapless::transfer

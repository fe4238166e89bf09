// What goes wrong between two processes ends in an error or in a slower scheme, and nothing is given twice.
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "pair.hpp"

namespace {

constinit thread_local bool has_memory = true;
constinit thread_local std::size_t held_bytes = 0;

}  // namespace

// libstdc++'s others end in these.
void* operator new(std::size_t bytes) {
  void* const block = has_memory ? std::malloc(bytes) : nullptr;
  if (block == nullptr) throw std::bad_alloc();
  held_bytes += ::malloc_usable_size(block);
  return block;
}
void operator delete(void* block) noexcept {
  held_bytes -= ::malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace gapless::tests {
namespace {

TEST(Faults, ASenderWhoseMemoryIsRefusedPacks) {
  for (const Scheme scheme : {Scheme::gather_write, Scheme::multi_write}) {
    Pair pair;
    Message128 message;
    const auto outcome = pair.send(message.from.memory(), message.to.memory(), only(scheme),
                                   [&] { pair.left.faults.registrations_left = 0; });
    EXPECT_EQ(outcome.sent, Result::ok);
    EXPECT_EQ(outcome.received, Result::ok);
    EXPECT_TRUE(message.to.bytes() == message.expected);
    EXPECT_EQ(pair.sender->counts().copied_bytes, 128u * 512);
    EXPECT_EQ(pair.sender->staging().available(transfer::Side::sender), Options{}.segments);
  }
}

TEST(Faults, AReceiverWhoseMemoryIsRefusedChoosesAnotherScheme) {
  for (const Scheme scheme : {Scheme::scatter_read, Scheme::multi_write}) {
    Pair pair;
    Message128 message;
    pair.right.faults.registrations_left = 0;
    const auto outcome = pair.send(message.from.memory(), message.to.memory(), only(scheme) | only(Scheme::pipelined));
    EXPECT_EQ(outcome.sent, Result::ok);
    EXPECT_EQ(outcome.received, Result::ok);
    EXPECT_EQ(outcome.scheme, Scheme::pipelined);
    EXPECT_TRUE(message.to.bytes() == message.expected);
  }
}

TEST(Faults, AReceiverThatCanHaveNothingSaysSoAndKeepsNothing) {
  Pair pair;
  Message128 message;
  pair.right.faults.registrations_left = 0;
  auto* out = pair.sender->send(pair.left_peer, message.from.memory());
  EXPECT_EQ(pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::multi_write)),
            nullptr);
  EXPECT_EQ(pair.receiver->registrations().size(), 0u);
  pair.sender->end(out);
}

// A scheme that is slower by far is no answer to segments that come back soon.
TEST(Faults, AReceiverWaitsForStagingThatOthersHold) {
  Options options;
  options.segments = 8;
  Pair pair({}, options);
  Message128 message;
  auto* first = pair.sender->send(pair.left_peer, message.from.memory());
  auto* second = pair.sender->send(pair.left_peer, message.from.memory());
  constexpr unsigned staged_or_read =
      1u << static_cast<unsigned>(Scheme::pipelined) | 1u << static_cast<unsigned>(Scheme::scatter_read);
  auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), first->offer(), only(Scheme::pipelined));
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(pair.receiver->staging().available(transfer::Side::receiver), 0u);
  EXPECT_EQ(pair.receiver->receive(pair.right_peer, message.to.memory(), second->offer(), staged_or_read), nullptr);
  // Nobody gives back what failed messages have held.
  in->fail(Result::peer_failed);
  pair.receiver->end(in);
  in = pair.receiver->receive(pair.right_peer, message.to.memory(), second->offer(), staged_or_read);
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(in->scheme(), Scheme::scatter_read);
  in->fail(Result::peer_failed);
  pair.receiver->end(in);
  for (auto* out : {first, second}) {
    out->decline();
    pair.sender->end(out);
  }
}

/// The program's message then goes another way.
TEST(Faults, ASenderWhoseStagingIsLostOffersNothing) {
  Options options;
  options.segments = options.window = 8;
  Pair pair({}, options);
  Message128 message;
  auto* out = pair.sender->send(pair.left_peer, message.from.memory());
  auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::scatter_read));
  ASSERT_NE(in, nullptr);
  out->start(in->reply());
  ASSERT_EQ(pair.sender->staging().available(transfer::Side::sender), 0u);
  auto* waiting = pair.sender->send(pair.left_peer, message.from.memory());
  EXPECT_NE(waiting, nullptr) << "the segments are only lent";
  for (auto* each : {out, waiting}) {
    each->fail(Result::peer_failed);
    pair.sender->end(each);
  }
  EXPECT_EQ(pair.sender->counts().abandoned_segments, options.segments);
  EXPECT_EQ(pair.sender->send(pair.left_peer, message.from.memory()), nullptr);
  pair.receiver->end(in);
}

TEST(Faults, AGroupThatIsRefusedIsRegisteredBlockByBlock) {
  for (const Scheme scheme : {Scheme::gather_write, Scheme::multi_write}) {
    Pair pair;
    Arena from(vector_sample(6, 4096, 12288), 1, 0, 1), to(vector_sample(6, 4096, 4096 * 5), 1, 0, 2);
    const auto expected = to.expected_from(from);
    pair.left.faults.largest_registration = pair.right.faults.largest_registration = 8192;
    const auto outcome = pair.send(from.memory(), to.memory(), only(scheme));
    EXPECT_EQ(outcome.received, Result::ok);
    EXPECT_TRUE(to.bytes() == expected);
    EXPECT_EQ(pair.sender->registrations().size(), 6u);
    EXPECT_EQ(pair.sender->counts().copied_bytes, 0u);
  }
}

TEST(Faults, AWrongKeyEndsTheMessageOnBothSides) {
  for (const Scheme scheme : every_scheme) {
    Pair pair({}, impatient());
    Message128 message;
    auto* out = pair.sender->send(pair.left_peer, message.from.memory());
    Offer offer = out->offer();
    if (scheme == Scheme::scatter_read) offer.pool.key += 1 << 8;
    auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), offer, only(scheme));
    ASSERT_NE(in, nullptr);
    Reply reply = in->reply();
    if (scheme != Scheme::scatter_read) reply.pool.key += 1 << 8;
    for (auto& region : reply.regions) region.key += 1 << 8;
    out->start(reply, message.to.layout(), message.to.outer());
    while (out->advance() == Result::under_way || in->advance() == Result::under_way) {
      pair.sender->progress();
      pair.receiver->progress();
    }
    const bool reads = scheme == Scheme::scatter_read;
    EXPECT_EQ(reads ? in->result() : out->result(), Result::failed) << name(scheme);
    EXPECT_EQ(reads ? out->result() : in->result(), Result::timed_out) << name(scheme);
    pair.sender->end(out);
    pair.receiver->end(in);
    EXPECT_EQ(pair.left.misuses() + pair.right.misuses(), 0u);
  }
}

TEST(Faults, APeerThatDiesMidwayEndsTheMessage) {
  for (const Scheme scheme : every_scheme) {
    for (const bool sender_dies : {false, true}) {
      Options options = impatient();
      options.segment_bytes = 4096;
      options.window = 2;
      Pair pair({}, options);
      Arena from(vector_sample(128, 4096, 8192), 1, 0, 1), to(vector_sample(128, 4096, 4096 * 3), 1, 0, 2);
      auto* out = pair.sender->send(pair.left_peer, from.memory());
      auto* in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(scheme));
      out->start(in->reply(), to.layout(), to.outer());
      for (int i = 0; i < 5; ++i) {
        pair.sender->progress();
        pair.receiver->progress();
        ASSERT_EQ(out->advance(), Result::under_way);
        ASSERT_EQ(in->advance(), Result::under_way);
      }
      (sender_dies ? pair.left : pair.right).faults.is_dead = true;
      auto* survivor = sender_dies ? in : out;
      while (survivor->advance() == Result::under_way) (sender_dies ? pair.receiver : pair.sender)->progress();
      EXPECT_TRUE(survivor->result() == Result::peer_failed || survivor->result() == Result::timed_out);
      (sender_dies ? pair.receiver : pair.sender)->end(survivor);

      // Its registrations are gone, and what the peer may still write to is not given again.
      EXPECT_EQ((sender_dies ? pair.right : pair.left).regions(), 1u) << name(scheme);
      Channel& channel = sender_dies ? *pair.receiver : *pair.sender;
      const Staging& staging = channel.staging();
      EXPECT_EQ(staging.available(transfer::Side::sender) + staging.available(transfer::Side::receiver) +
                    channel.counts().abandoned_segments,
                2 * options.segments);
      if (sender_dies || scheme == Scheme::scatter_read) continue;
      // The peer never reaches the other segments of a sender.
      while (pair.left.queued() > 0) channel.progress();
      EXPECT_EQ(staging.available(transfer::Side::sender), options.segments) << name(scheme);
      EXPECT_EQ(channel.counts().abandoned_segments, 0u) << name(scheme);
    }
  }
}

/// Two messages at a time between the same arenas, by one scheme.
class Neighbours {
 public:
  explicit Neighbours(Scheme scheme) : pair({}, short_segments()) {
    for (int i = 0; i < 2; ++i) {
      out[i] = pair.sender->send(pair.left_peer, from.memory());
      in[i] = pair.receiver->receive(pair.right_peer, to.memory(), out[i]->offer(), only(scheme));
      out[i]->start(in[i]->reply(), to.layout(), to.outer());
    }
  }
  /// The second one comes to its end.
  void go_on() {
    for (int i = 0; i < 100'000 && (out[1]->result() == Result::under_way || in[1]->result() == Result::under_way);
         ++i) {
      pair.sender->progress();
      pair.receiver->progress();
      static_cast<void>(out[1]->advance());
      static_cast<void>(in[1]->advance());
    }
  }

  static Options short_segments() {
    Options options;
    options.segment_bytes = 4096;
    options.window = 2;
    return options;
  }

  Pair pair;
  Arena from{vector_sample(1024, 512, 1024), 1, 0, 1}, to{vector_sample(1024, 512, 1536), 1, 0, 2};
  std::vector<std::byte> expected = to.expected_from(from);
  Message *out[2], *in[2];
};

TEST(Faults, AMessageThatFailsTakesNothingFromItsNeighbour) {
  for (const Scheme scheme : every_scheme) {
    for (const bool sender_fails : {false, true}) {
      SCOPED_TRACE(testing::Message() << name(scheme) << sender_fails);
      const bool packs = scheme == Scheme::pipelined || scheme == Scheme::scatter_read;
      Neighbours messages(scheme);
      Pair& pair = messages.pair;
      Message* const failed = (sender_fails ? messages.out : messages.in)[0];
      ASSERT_EQ(failed->advance(), Result::under_way);
      failed->fail(Result::peer_failed);
      (sender_fails ? pair.sender : pair.receiver)->end(failed);
      EXPECT_EQ(pair.sender->counts().abandoned_segments > 0, sender_fails && packs);
      messages.go_on();
      // The failed sender's last post has given its segments back.
      EXPECT_EQ(pair.sender->counts().abandoned_segments > 0, sender_fails && scheme == Scheme::scatter_read);
      EXPECT_EQ(messages.out[1]->result(), Result::ok);
      EXPECT_EQ(messages.in[1]->result(), Result::ok);
      EXPECT_TRUE(messages.to.bytes() == messages.expected);
      EXPECT_EQ(pair.left.misuses() + pair.right.misuses(), 0u);
    }
  }
}

/// Else the peer would wait until its stall limit, which is none here.
TEST(Faults, ASideThatFailsAloneTellsTheOther) {
  fabric::LoopbackShape shape;
  shape.limits.outstanding = 512;  // room to tell
  for (const Scheme scheme : every_scheme) {
    for (const bool sender_fails : {false, true}) {
      for (const bool has_replied : {sender_fails, true}) {
        Pair pair(shape);
        Message128 message;
        auto* out = pair.sender->send(pair.left_peer, message.from.memory());
        auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(scheme));
        if (has_replied) out->start(in->reply(), message.to.layout(), message.to.outer());
        auto *failed = sender_fails ? out : in, *other = sender_fails ? in : out;
        failed->fail(Result::failed);
        (sender_fails ? pair.sender : pair.receiver)->end(failed);
        while (pair.left.queued() + pair.right.queued() > 0) {
          pair.sender->progress();
          pair.receiver->progress();
        }
        pair.sender->progress();
        EXPECT_EQ(other->advance(), Result::failed) << name(scheme) << sender_fails << has_replied;
        EXPECT_FALSE(out->has_mail());
        (sender_fails ? pair.receiver : pair.sender)->end(other);
      }
    }
  }
}

/// A channel has many messages, each of which is used again and again.
TEST(Faults, AMessageThatIsOverKeepsNoLongLists) {
  for (const Scheme scheme : {Scheme::gather_write, Scheme::scatter_read, Scheme::multi_write}) {
    Pair pair;
    constexpr Offset blocks = 100'000;
    Arena from(vector_sample(blocks, 1, 2), 1, 0, 1), to(vector_sample(blocks, 1, 3), 1, 0, 2);
    Message128 message;
    pair.send(message.from.memory(), message.to.memory(), only(scheme));
    const std::size_t before = held_bytes;
    const auto outcome = pair.send(from.memory(), to.memory(), only(scheme));
    EXPECT_EQ(outcome.received, Result::ok) << name(scheme);
    EXPECT_LT(held_bytes, before + blocks) << name(scheme);
  }
}

/// Of more modes than the host engine has loops: the walk through the layout needs memory.
Sample deep_sample() {
  Sample sample;
  sample.map = {0};
  sample.layout = layout::block(0, 1);
  for (Offset level = 0, stride = 2; level < 17; ++level, stride = 2 * stride + 1) {
    sample.layout = layout::repeat(sample.layout, 2, stride);
    for (std::size_t i = 0, end = sample.map.size(); i < end; ++i) sample.map.push_back(sample.map[i] + stride);
  }
  return sample;
}

TEST(Faults, ADeepLayoutThatCannotBeCopiedEndsTheMessage) {
  for (const Scheme scheme : {Scheme::pipelined, Scheme::scatter_read, Scheme::multi_write}) {
    for (const bool sender_fails : {false, true}) {
      if (!sender_fails && scheme != Scheme::pipelined) continue;  // the receiver copies nothing
      Pair pair;
      Arena deep(deep_sample(), 1, 0, 1), flat(vector_sample(1, deep.memory().size(), 0), 1, 0, 2);
      Arena &from = sender_fails ? deep : flat, &to = sender_fails ? flat : deep;
      auto* out = pair.sender->send(pair.left_peer, from.memory());
      auto* in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(scheme));
      ASSERT_NE(in, nullptr);
      auto* const failed = sender_fails ? out : in;
      pair.left.faults.registrations_left = 0;  // a sender by multi-write packs
      if (!sender_fails) {
        out->start(in->reply(), to.layout(), to.outer());
        pair.sender->progress();
        pair.receiver->progress();
      }
      has_memory = false;
      const Result result = sender_fails ? out->start(in->reply(), to.layout(), to.outer()) : in->advance();
      has_memory = true;
      EXPECT_EQ(result, Result::failed) << name(scheme) << sender_fails;
      EXPECT_EQ((sender_fails ? pair.sender : pair.receiver)->counts().copied_bytes, 0u);
      EXPECT_EQ(failed->result(), Result::failed);
      pair.sender->end(out);
      pair.receiver->end(in);
    }
  }
}

/// The fabric may have taken the other's bytes first, and has then no time for this one's.
TEST(Faults, AMessageWhosePeerMovesAnotherIsNotStalled) {
  for (const Scheme scheme : every_scheme) {
    Neighbours messages(scheme);
    Pair& pair = messages.pair;
    for (auto* each : {messages.out[0], messages.in[0]}) static_cast<void>(each->has_moved());
    messages.go_on();
    EXPECT_TRUE(messages.out[0]->has_moved()) << name(scheme);
    EXPECT_TRUE(messages.in[0]->has_moved()) << name(scheme);
    for (auto* each : messages.out) pair.sender->end(each);
    for (auto* each : messages.in) pair.receiver->end(each);
  }
}

/// Where pages are pinned, a region of a message under way may be of pages that are not mapped any more.
TEST(Faults, WherePagesArePinnedEachMessageHasRegionsOfItsOwn) {
  fabric::LoopbackShape shape;
  shape.limits.follows_mappings = false;
  for (const Scheme scheme : {Scheme::gather_write, Scheme::multi_write}) {
    Pair pair(shape);
    Arena whole(vector_sample(3, 8192, 16384), 1, 0, 1), to(vector_sample(3, 8192, 8192), 1, 0, 2);
    auto* out = pair.sender->send(pair.left_peer, whole.memory());
    auto* in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(scheme));
    ASSERT_EQ(out->start(in->reply(), to.layout(), to.outer()), Result::under_way);
    ASSERT_EQ(pair.sender->registrations().held(), 1u) << "a group";
    const layout::LayoutPointer gap = layout::block(0, 4096);
    const Memory middle = memory_of(gap, layout::facts_of(*gap), {1, 4096}, whole.bytes().data() + 12288);
    Arena other(vector_sample(1, 4096, 4096), 1, 0, 3);
    auto* second = pair.sender->send(pair.left_peer, middle);
    auto* received = pair.receiver->receive(pair.right_peer, other.memory(), second->offer(), only(scheme));
    second->start(received->reply(), other.layout(), other.outer());
    EXPECT_EQ(pair.sender->registrations().held(), 2u) << name(scheme);
    for (auto* each : {out, second}) pair.sender->end(each);
    for (auto* each : {in, received}) pair.receiver->end(each);
  }
}

TEST(Faults, ABlockThatNoRegionHoldsEndsTheMessage) {
  for (const Scheme scheme : {Scheme::gather_write, Scheme::multi_write}) {
    Pair pair({}, impatient());
    Message128 message;
    fabric::Region half;
    std::vector<std::byte>& bytes = message.from.bytes();
    ASSERT_EQ(pair.left.register_memory(bytes.data(), bytes.size() / 2, half), fabric::Status::ok);
    Memory memory = message.from.memory();
    memory.region = &half;
    const auto outcome = pair.send(memory, message.to.memory(), only(scheme));
    EXPECT_EQ(outcome.sent, Result::failed) << name(scheme);
    EXPECT_EQ(outcome.received, Result::timed_out) << name(scheme);
    EXPECT_EQ(pair.left.misuses(), 0u);
    pair.left.deregister(half);
  }
}

/// The receiver is not told that all bytes are there.
TEST(Faults, ARegionThatIsTooShortEndsTheMessage) {
  for (const bool sender_packs : {false, true}) {
    fabric::LoopbackShape shape;
    shape.limits.is_ordered = true;
    Pair pair(shape, impatient());
    Message128 message;
    auto* out = pair.sender->send(pair.left_peer, message.from.memory());
    auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::multi_write));
    Reply reply = in->reply();
    ASSERT_EQ(reply.region_count, 1u);
    reply.regions[0].bytes /= 2;
    if (sender_packs) pair.left.faults.registrations_left = 0;
    out->start(reply, message.to.layout(), message.to.outer());
    while (in->advance() == Result::under_way) {
      pair.sender->progress();
      pair.receiver->progress();
      static_cast<void>(out->advance());
    }
    EXPECT_EQ(out->result(), Result::failed);
    EXPECT_EQ(in->result(), Result::timed_out);
    pair.sender->end(out);
    pair.receiver->end(in);
  }
}

TEST(Faults, OperationsThatFailEndTheMessage) {
  for (const Scheme scheme : every_scheme) {
    Pair pair({}, impatient());
    Message128 message;
    const auto outcome = pair.send(message.from.memory(), message.to.memory(), only(scheme), [&] {
      pair.left.faults.operations_left = 3;
      pair.right.faults.operations_left = 3;
    });
    EXPECT_NE(outcome.sent, Result::ok) << name(scheme);
    EXPECT_NE(outcome.received, Result::ok) << name(scheme);
  }
}

TEST(Faults, WhatArrivesForAMessageThatIsOverIsDropped) {
  Pair pair;
  for (int i = 0; i < 2; ++i) {
    Message128 message;
    EXPECT_EQ(pair.send(message.from.memory(), message.to.memory(), only(Scheme::pipelined)).received, Result::ok);
  }
  // The number that the first message had, sent again.
  const std::byte bell[8]{};
  fabric::Region region;
  ASSERT_EQ(pair.left.register_memory(const_cast<std::byte*>(bell), sizeof bell, region), fabric::Status::ok);
  const fabric::Piece piece{const_cast<std::byte*>(bell), sizeof bell, &region};
  fabric::Post post;
  post.has_immediate = true;
  post.immediate = Immediate{1u << 8, 0, 1}.encoded();
  const auto pool = pair.receiver->staging().information();
  post.remote = pool.bell;
  post.key = pool.key;
  post.local = {&piece, 1};
  post.context = ~std::uint64_t{0};
  ASSERT_EQ(pair.left.post(pair.left_peer, {&post, 1}).count, 1u);
  pair.sender->progress();
  pair.receiver->progress();
  EXPECT_EQ(pair.receiver->counts().unknown_immediates, 1u);
  Message128 message;
  EXPECT_EQ(pair.send(message.from.memory(), message.to.memory()).received, Result::ok);
  EXPECT_TRUE(message.to.bytes() == message.expected);
}

TEST(Faults, RepliesThatMakeNoSenseAreNotFollowed) {
  Message128 message;
  const auto expect_refused = [&](const auto& spoil) {
    Pair pair({}, impatient());
    auto* out = pair.sender->send(pair.left_peer, message.from.memory());
    auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::pipelined));
    Reply reply = in->reply();
    spoil(reply);
    EXPECT_EQ(out->start(reply), Result::failed);
    pair.sender->end(out);
    EXPECT_EQ(pair.sender->counts().posts, 0u);
  };
  expect_refused([](Reply& reply) { reply.window = 0; });
  expect_refused([](Reply& reply) { reply.window = most_window + 1; });
  expect_refused([](Reply& reply) { reply.segment_bytes = 0; });
  expect_refused([](Reply& reply) { reply.segment_bytes = std::uint64_t{1} << 40; });
  expect_refused([](Reply& reply) { reply.region_count = most_user_regions + 1; });
  expect_refused([](Reply& reply) { reply.scheme = Scheme::multi_write; });
  expect_refused([](Reply& reply) { reply.scheme = static_cast<Scheme>(77); });
}

}  // namespace
}  // namespace gapless::tests

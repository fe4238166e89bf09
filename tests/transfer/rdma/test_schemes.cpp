// The four schemes of Wu et al., 2003: every byte, by plain lists of offsets; gaps untouched; posts, copies and
// registrations counted.
#include "pair.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

void expect_sent(Pair& pair, Arena& from, Arena& to, Scheme scheme) {
  const auto expected = to.expected_from(from);
  const auto outcome = pair.send(from.memory(), to.memory(), only(scheme));
  EXPECT_EQ(outcome.sent, Result::ok);
  EXPECT_EQ(outcome.received, Result::ok);
  EXPECT_EQ(outcome.scheme, scheme);
  EXPECT_TRUE(to.bytes() == expected) << name(scheme);
  EXPECT_EQ(pair.left.misuses() + pair.right.misuses(), 0u);
}

std::uint64_t posts(const Pair& pair) { return pair.sender->counts().posts + pair.receiver->counts().posts; }
std::uint64_t copied(const Pair& pair) {
  return pair.sender->counts().copied_bytes + pair.receiver->counts().copied_bytes;
}
std::uint64_t registrations(const Pair& pair) {
  return pair.sender->registrations().registrations() + pair.receiver->registrations().registrations();
}

// 128 rows of 4096 ints, some columns of which are sent: Wu et al., 2003, 3.2.
constexpr Offset rows = 128, row_bytes = 4096 * 4;

TEST(Schemes, MultiWriteOfAVectorCopiesNothing) {
  Pair pair;
  Arena from(vector_sample(rows, 256, row_bytes), 1, 0, 1), to(vector_sample(rows, 256, 1024), 1, 0, 2);
  expect_sent(pair, from, to, Scheme::multi_write);
  EXPECT_EQ(posts(pair), 128u);
  EXPECT_EQ(copied(pair), 0u);
  EXPECT_EQ(registrations(pair), 2u);
  EXPECT_EQ(pair.sender->counts().notifications, 1u);
}

TEST(Schemes, CopiesAreThoseOfThePaper) {
  constexpr std::uint64_t copies[] = {2, 1, 1, 0};
  for (const Scheme scheme : every_scheme) {
    Pair pair;
    Arena from(vector_sample(rows, 512, row_bytes), 1, 0, 1), to(vector_sample(rows, 512, 1024), 1, 0, 2);
    expect_sent(pair, from, to, scheme);
    EXPECT_EQ(copied(pair), copies[static_cast<std::size_t>(scheme)] * rows * 512) << name(scheme);
  }
}

TEST(Schemes, PostsAreBlocksByGatherLimit) {
  for (const std::size_t entries : {1u, 4u, 30u, 64u}) {
    fabric::LoopbackShape shape;
    shape.limits.gather_entries = shape.limits.scatter_entries = entries;
    Options options;
    options.segment_bytes = 128 << 10;
    constexpr Offset length = 256;
    // 32 KiB in eight segments of two pages for each of the staged schemes.
    constexpr std::uint64_t segments = rows * length / 8192, blocks = 8192 / length;
    const std::uint64_t by_limit = segments * ((blocks + entries - 1) / entries);
    const std::uint64_t expected[] = {segments, by_limit, by_limit, rows};
    for (const Scheme scheme : every_scheme) {
      Pair pair(shape, options);
      Arena from(vector_sample(rows, length, row_bytes), 1, 0, 1), to(vector_sample(rows, length, 1024), 1, 0, 2);
      expect_sent(pair, from, to, scheme);
      EXPECT_EQ(posts(pair), expected[static_cast<std::size_t>(scheme)]) << name(scheme) << ' ' << entries;
      EXPECT_EQ(pair.sender->counts().posted_bytes + pair.receiver->counts().posted_bytes,
                static_cast<std::uint64_t>(rows * length));
    }
  }
}

TEST(Schemes, MultiWriteGathersWhatIsOneBlockAtTheReceiver) {
  Pair pair;  // 4 entries
  Arena from(vector_sample(rows, 256, 1024), 1, 0, 1), to(vector_sample(1, rows * 256, 0), 1, 0, 2);
  expect_sent(pair, from, to, Scheme::multi_write);
  EXPECT_EQ(posts(pair), 32u);
}

TEST(Schemes, LongBlocksAreSplitByTheLimitOfAnOperation) {
  fabric::LoopbackShape shape;
  shape.limits.operation_bytes = 1000;
  for (const Scheme scheme : every_scheme) {
    Pair pair(shape);
    Arena from(vector_sample(4, 5000, 6000), 1, 0, 1), to(vector_sample(4, 5000, 7000), 1, 0, 2);
    expect_sent(pair, from, to, scheme);
    EXPECT_GE(posts(pair), 20u);
  }
}

/// Only immediates have bounds.
TEST(Schemes, ASegmentTakesMoreReadsThanAnImmediateCounts) {
  fabric::LoopbackShape shape;
  shape.limits.scatter_entries = 1;
  constexpr Offset segments = 8, blocks = segments * (Offset{Immediate::most_counted} + 2);
  for (const bool is_ordered : {true, false}) {
    shape.limits.is_ordered = is_ordered;
    Pair pair(shape);
    Arena from(vector_sample(1, blocks, 0), 1, 0, 1), to(vector_sample(blocks, 1, 2), 1, 0, 2);
    expect_sent(pair, from, to, Scheme::scatter_read);
    EXPECT_EQ(pair.receiver->counts().posts, static_cast<std::uint64_t>(blocks));
    EXPECT_EQ(pair.sender->counts().notifications, static_cast<std::uint64_t>(segments));
  }
}

/// Else a receiver would take a message that is long on its way for one whose sender is gone, and so would its sender,
/// had it but one operation to wait for.
TEST(Schemes, BothSidesOfALongMultiWriteSeeThatItsBytesFlow) {
  for (const bool is_ordered : {true, false}) {
    fabric::LoopbackShape shape;
    shape.limits.is_ordered = is_ordered;
    shape.limits.operation_bytes = std::size_t{1} << 30;
    Pair pair(shape);
    std::vector<std::byte> from(8 * most_operation_bytes, std::byte{1}), to(from.size(), std::byte{2});
    const Memory source = packed_memory(from.data(), from.size()), destination = packed_memory(to.data(), to.size());
    auto* out = pair.sender->send(pair.left_peer, source);
    auto* in = pair.receiver->receive(pair.right_peer, destination, out->offer(), only(Scheme::multi_write));
    out->start(in->reply(), destination.layout, destination.outer);
    EXPECT_EQ(pair.sender->counts().posts, 8u);
    EXPECT_TRUE(out->has_moved());
    EXPECT_FALSE(in->has_moved());
    pair.sender->progress();  // some of the operations
    pair.receiver->progress();
    EXPECT_TRUE(out->has_moved());
    EXPECT_TRUE(in->has_moved());
    EXPECT_EQ(in->advance(), Result::under_way);
    while (out->advance() == Result::under_way || in->advance() == Result::under_way) {
      pair.sender->progress();
      pair.receiver->progress();
    }
    EXPECT_EQ(out->result(), Result::ok);
    EXPECT_EQ(in->result(), Result::ok);
    EXPECT_TRUE(to == from);
    pair.sender->end(out);
    pair.receiver->end(in);
  }
}

TEST(Schemes, NothingIsRegisteredInTheSteadyState) {
  for (const Scheme scheme : every_scheme) {
    Pair pair;
    Arena from(vector_sample(rows, 256, row_bytes), 1, 0, 1), to(vector_sample(rows, 256, 1024), 1, 0, 2);
    expect_sent(pair, from, to, scheme);
    const auto before = registrations(pair);
    for (int i = 0; i < 5; ++i) expect_sent(pair, from, to, scheme);
    EXPECT_EQ(registrations(pair), before) << name(scheme);
  }
}

TEST(Schemes, PinnedMemoryIsRegisteredForEachMessageUnlessItStays) {
  fabric::LoopbackShape shape;
  shape.limits.follows_mappings = false;
  for (const bool stays : {false, true}) {
    Options options;
    options.registrations.memory_stays = stays;
    Pair pair(shape, options);
    Arena from(vector_sample(rows, 256, row_bytes), 1, 0, 1), to(vector_sample(rows, 256, 1024), 1, 0, 2);
    for (int i = 0; i < 3; ++i) expect_sent(pair, from, to, Scheme::multi_write);
    EXPECT_EQ(registrations(pair), stays ? 2u : 6u);
    EXPECT_EQ(pair.left.regions(), stays ? 2u : 1u) << "staging, and the program's memory";
  }
}

TEST(Schemes, MessagesLongerThanAllStagingGoThroughIt) {
  Options options;
  options.segment_bytes = 4096;
  options.segments = 3;
  for (const Scheme scheme : every_scheme) {
    Pair pair({}, options);
    Arena from(vector_sample(rows, 2048, 4096), 1, 0, 1), to(vector_sample(rows, 2048, 3000), 1, 0, 2);
    expect_sent(pair, from, to, scheme);
    EXPECT_EQ(pair.sender->staging().available(transfer::Side::sender), 3u);
    EXPECT_EQ(pair.receiver->staging().available(transfer::Side::receiver), 3u);
  }
}

TEST(Schemes, EmptyMessagesMoveNothing) {
  Pair pair;
  Arena from({layout::empty(), {}}, 1, 0, 1), to({layout::empty(), {}}, 1, 0, 2);
  const auto outcome = pair.send(from.memory(), to.memory());
  EXPECT_EQ(outcome.sent, Result::ok);
  EXPECT_EQ(outcome.received, Result::ok);
  EXPECT_EQ(posts(pair), 0u);
}

TEST(Schemes, ListsArePostedAtOnceUnlessToldNotTo) {
  fabric::LoopbackShape shape;
  shape.limits.outstanding = 1024;
  for (const bool lists : {true, false}) {
    Options options;
    options.list_posting = lists;
    Pair pair(shape, options);
    Arena from(vector_sample(rows, 256, row_bytes), 1, 0, 1), to(vector_sample(rows, 256, 1024), 1, 0, 2);
    expect_sent(pair, from, to, Scheme::multi_write);
    EXPECT_EQ(pair.sender->counts().lists, lists ? 1u : 128u);
  }
}

TEST(Schemes, WholeWindowsAreUnpackedWhereSegmentUnpackIsOff) {
  Options options;
  options.segment_unpack = false;
  options.window = 3;
  for (const Scheme scheme : {Scheme::pipelined, Scheme::gather_write}) {
    Pair pair({}, options);
    Arena from(vector_sample(rows, 1024, row_bytes), 1, 0, 1), to(vector_sample(rows, 1024, 2048), 1, 0, 2);
    expect_sent(pair, from, to, scheme);
  }
}

/// One of many messages under way.
struct Flow {
  explicit Flow(std::uint64_t seed)
      : from(vector_sample(rows, 128, 512), 1, 0, 2 * seed),
        to(vector_sample(rows, 128, 256), 1, 0, 2 * seed + 1),
        expected(to.expected_from(from)) {}

  void advance(Channel& sender, Channel& receiver, int peer, Scheme scheme) {
    if (in == nullptr && !is_received) {
      in = receiver.receive(peer, to.memory(), out->offer(), only(scheme));
      if (in == nullptr) return;  // no staging is free now
      out->start(in->reply(), to.layout(), to.outer());
    }
    if (!is_sent && out->advance() != Result::under_way) {
      EXPECT_EQ(out->result(), Result::ok);
      is_sent = true;
      sender.end(out);
    }
    if (!is_received && in->advance() != Result::under_way) {
      EXPECT_EQ(in->result(), Result::ok);
      is_received = true;
      receiver.end(in);
    }
  }

  Arena from, to;
  std::vector<std::byte> expected;
  Message *out = nullptr, *in = nullptr;
  bool is_sent = false, is_received = false;
};

TEST(Schemes, ManyMessagesInBothDirectionsShareFewSegments) {
  Options options;
  options.segments = 6;
  Pair pair({}, options);
  std::vector<std::unique_ptr<Flow>> flows;
  for (std::uint64_t i = 0; i < 40; ++i) {
    flows.push_back(std::make_unique<Flow>(i));
    flows[i]->out = i % 2 == 0 ? pair.sender->send(pair.left_peer, flows[i]->from.memory())
                               : pair.receiver->send(pair.right_peer, flows[i]->from.memory());
    ASSERT_NE(flows[i]->out, nullptr);
  }
  const auto is_over = [](const auto& flow) { return flow->is_sent && flow->is_received; };
  for (int round = 0; round < 100'000 && !std::all_of(flows.begin(), flows.end(), is_over); ++round) {
    pair.sender->progress();
    pair.receiver->progress();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const Scheme scheme = every_scheme[i / 2 % 4];
      if (i % 2 == 0) {
        flows[i]->advance(*pair.sender, *pair.receiver, pair.right_peer, scheme);
      } else {
        flows[i]->advance(*pair.receiver, *pair.sender, pair.left_peer, scheme);
      }
    }
  }
  for (const auto& flow : flows) {
    EXPECT_TRUE(is_over(flow));
    EXPECT_TRUE(flow->to.bytes() == flow->expected);
  }
  EXPECT_EQ(pair.sender->staging().available(transfer::Side::sender), 6u);
  EXPECT_EQ(pair.sender->staging().available(transfer::Side::receiver), 6u);
}

TEST(Schemes, RandomLayoutsByEveryScheme) {
  const std::uint64_t seed = random_seed();
  RandomLayouts random(seed);
  for (int i = 0; i < 300; ++i) {
    fabric::LoopbackShape shape;
    shape.seed = random.bits();
    shape.virtual_addresses = random.number(0, 1) == 0;
    shape.limits = {.gather_entries = static_cast<std::size_t>(random.number(1, 9)),
                    .scatter_entries = static_cast<std::size_t>(random.number(1, 9)),
                    .operation_bytes = static_cast<std::size_t>(random.number(8, 5000)),
                    .outstanding = static_cast<std::size_t>(random.number(1, 40)),
                    .has_immediates = true,
                    .is_ordered = random.number(0, 1) == 0,
                    .posts_lists = true,
                    .follows_mappings = random.number(0, 1) == 0};
    Options options;
    options.segment_bytes = 4096;
    options.segments = static_cast<std::size_t>(random.number(1, 6));
    options.window = static_cast<std::size_t>(random.number(1, 16));
    options.list_posting = random.number(0, 3) != 0;
    options.segment_unpack = random.number(0, 3) != 0;

    // Two layouts of equal size: as many of each as the other is long.
    const Sample a = random.next(random.number(0, 4) == 0), b = random.next(false);
    const auto most = std::lcm(a.layout->size, b.layout->size);
    const bool is_lcm = most <= 1 << 16;
    const Sample& source = is_lcm ? a : b;
    const Offset source_count = is_lcm ? most / a.layout->size : 3, target_count = is_lcm ? most / b.layout->size : 3;
    const auto extent = [&](const Sample& sample) { return sample.high() - sample.low() + random.number(0, 40); };
    Arena from(source, source_count, extent(source), random.bits()), to(b, target_count, extent(b), random.bits());
    // Groups have whole pages between them, so that many pages make no more groups than a reply has room for.
    const bool is_small = to.bytes().size() <= 14 * 4096;
    options.profile.registered_page_ns = is_small && random.number(0, 1) == 0 ? 1e6 : 60;
    Pair pair(shape, options);
    for (const Scheme scheme : every_scheme) {
      SCOPED_TRACE(testing::Message() << "case " << i << ' ' << name(scheme));
      const auto expected = to.expected_from(from);
      const auto outcome = pair.send(from.memory(), to.memory(), only(scheme));
      ASSERT_EQ(outcome.sent, Result::ok);
      ASSERT_EQ(outcome.received, Result::ok);
      ASSERT_TRUE(to.bytes() == expected);
      ASSERT_EQ(pair.left.misuses() + pair.right.misuses(), 0u);
    }
  }
}

}  // namespace
}  // namespace gapless::tests

// A message that gets no further ends once its peer is missed or its time is over, and not before.
#include <chrono>
#include <functional>
#include <thread>

#include "pair.hpp"

namespace gapless::tests {
namespace {

TEST(Progress, APauseOfTheProcessItselfIsNotThePeersSilence) {
  for (const bool has_limit : {false, true}) {
    Options options;
    options.own_pause = std::chrono::milliseconds(50);
    (has_limit ? options.stall_limit : options.touch_after) = std::chrono::milliseconds(100);
    Pair pair({}, options);
    Message128 message;
    auto* out = pair.sender->send(pair.left_peer, message.from.memory());
    auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::pipelined));
    ASSERT_EQ(in->advance(), Result::under_way);
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      EXPECT_EQ(in->advance(), Result::under_way);
      EXPECT_EQ(pair.right.queued(), 0u) << "a touch";
    }
    // Without a pause the silence counts.
    while (in->advance() == Result::under_way && pair.right.queued() == 0) {
    }
    EXPECT_EQ(in->result(), has_limit ? Result::timed_out : Result::under_way);
    in->fail(Result::peer_failed);
    out->decline();
    pair.sender->end(out);
    pair.receiver->end(in);
  }
}

Options touching() {
  Options options;
  options.touch_after = std::chrono::milliseconds(5);
  options.segment_bytes = 4096;
  options.window = 2;
  return options;
}

/// Longer than peers need to be touched and missed, and shorter than anybody waits for a test.
bool is_over_in_time(const std::function<bool()>& is_over) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_over()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

/// Nothing of the survivor's is under way that could fail: a receiver waits for the first byte, a sender for the window
/// to be given back.
TEST(Progress, APeerThatDiesWhileNothingIsUnderWayIsMissed) {
  for (const Scheme scheme : every_scheme) {
    for (const bool sender_dies : {false, true}) {
      Pair pair({}, touching());
      Arena from(vector_sample(128, 4096, 8192), 1, 0, 1), to(vector_sample(128, 4096, 4096 * 3), 1, 0, 2);
      auto* out = pair.sender->send(pair.left_peer, from.memory());
      auto* in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(scheme));
      if (!sender_dies) {
        out->start(in->reply(), to.layout(), to.outer());
        const bool waits = is_over_in_time([&] {
          pair.sender->progress();
          static_cast<void>(out->advance());
          return out->is_quiet() || out->result() != Result::under_way;
        });
        ASSERT_TRUE(waits && (out->result() == Result::under_way || scheme == Scheme::multi_write)) << name(scheme);
      }
      (sender_dies ? pair.left : pair.right).faults.is_dead = true;
      auto* survivor = sender_dies ? in : out;
      Channel& channel = sender_dies ? *pair.receiver : *pair.sender;
      EXPECT_TRUE(is_over_in_time([&] {
        channel.progress();
        return survivor->advance() != Result::under_way;
      })) << name(scheme)
          << sender_dies;
      // A sender by multi-write needs nothing more of a receiver that has all bytes.
      const bool is_done = scheme == Scheme::multi_write && survivor->result() == Result::ok;
      EXPECT_TRUE(survivor->result() == Result::peer_failed || is_done) << name(scheme) << sender_dies;
      channel.end(survivor);
    }
  }
}

/// So is one to which the fabric makes no connection yet: its process may be stopped.
TEST(Progress, APeerThatIsSlowIsWaitedFor) {
  for (const Scheme scheme : every_scheme) {
    Pair pair({}, touching());
    constexpr std::size_t many = 30;
    pair.right.faults.is_connecting = scheme == Scheme::multi_write || scheme == Scheme::pipelined;
    Message128 message;
    auto* out = pair.sender->send(pair.left_peer, message.from.memory());
    auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(scheme));
    const auto later = std::chrono::steady_clock::now() + 10 * touching().touch_after;
    while (pair.right.faults.is_connecting ? pair.right.untaken() < many : std::chrono::steady_clock::now() < later) {
      pair.receiver->progress();
      ASSERT_EQ(in->advance(), Result::under_way);
    }
    pair.right.faults.is_connecting = false;
    out->start(in->reply(), message.to.layout(), message.to.outer());
    EXPECT_TRUE(is_over_in_time([&] {
      pair.sender->progress();
      pair.receiver->progress();
      const bool is_sent = out->advance() != Result::under_way, is_received = in->advance() != Result::under_way;
      return is_sent && is_received && out->is_quiet() && in->is_quiet();
    }));
    EXPECT_EQ(out->result(), Result::ok) << name(scheme);
    EXPECT_EQ(in->result(), Result::ok) << name(scheme);
    EXPECT_TRUE(message.to.bytes() == message.expected) << name(scheme);
    pair.sender->end(out);
    pair.receiver->end(in);
  }
}

/// libfabric's tcp connects anew once a connection has broken, and says nothing.
TEST(Progress, APeerThatIsNotReachedAnyMoreIsMissed) {
  Pair pair({}, touching());
  Message128 message;
  ASSERT_EQ(pair.send(message.from.memory(), message.to.memory(), only(Scheme::scatter_read)).received, Result::ok);
  pair.right.faults.is_connecting = true;
  auto* out = pair.sender->send(pair.left_peer, message.from.memory());
  auto* in = pair.receiver->receive(pair.right_peer, message.to.memory(), out->offer(), only(Scheme::scatter_read));
  EXPECT_TRUE(is_over_in_time([&] { return in->advance() != Result::under_way; }));
  EXPECT_EQ(in->result(), Result::peer_failed);
  EXPECT_EQ(pair.right.untaken(), touching().most_untaken);
  pair.receiver->end(in);
}

TEST(Progress, AProviderThatStallsEndsInATimeLimit) {
  for (const Scheme scheme : every_scheme) {
    Pair pair({}, impatient());
    Message128 message;
    const auto outcome = pair.send(message.from.memory(), message.to.memory(), only(scheme),
                                   [&] { pair.left.faults.stalls = pair.right.faults.stalls = true; });
    EXPECT_EQ(outcome.sent, Result::timed_out) << name(scheme);
    EXPECT_EQ(outcome.received, Result::timed_out) << name(scheme);
  }
}

}  // namespace
}  // namespace gapless::tests

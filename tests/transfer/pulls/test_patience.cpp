// How long a sender leaves a message to a receiver that does not come: from when it begins to wait, or has seen the
// receiver fetch another message, and for all messages that it has offered by then together. The sender is its own peer
// here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "strided_message.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/fetch.hpp"
#include "transfer/pulls/offer.hpp"

namespace gapless::transfer::pulls {
namespace {

constexpr std::chrono::milliseconds patience{250};

class Patience : public tests::StridedMessage {
 protected:
  static void SetUpTestSuite() {
    ::setenv("PMIX_NAMESPACE", ("test-of-patience-" + std::to_string(::getpid())).c_str(), 1);
    ::setenv("GAPLESS_PULL_PATIENCE", std::to_string(std::chrono::microseconds(patience).count()).c_str(), 1);
    headers::listen(0, 2);
  }
  Patience() {
    make_places();
    while (headers::own_inbox().pulls_put_off.is_next()) {
    }
    // A peer is told of an allocation once several messages have come out of it.
    for (int times = 0; times < 3; ++times) {
      PullOffer early;
      if (offers(early)) early.withdraw();
    }
  }
  ~Patience() override { drain_pools(); }

  static headers::Header new_header() {
    return headers::Header(headers::own_inbox().speaker().nonce, tests::packed_bytes, ::getpid());
  }
  bool offers(PullOffer& offer) {
    headers::Header header = new_header();
    return offer.secure(buffer(out_), headers::own_inbox(), 0, header);
  }
  static void let_it_run_out() { std::this_thread::sleep_for(2 * patience); }
};

TEST_F(Patience, BeginsWhenTheSenderWaitsAndIsForAllMessagesTogether) {
  PullOffer first, second;
  ASSERT_TRUE(offers(first));
  first.hand_over();
  ASSERT_TRUE(offers(second));
  second.hand_over();
  let_it_run_out();
  const std::uint64_t before = gapless_pulls_copied_out();
  EXPECT_EQ(Result::under_way, first.poll());
  EXPECT_EQ(before, gapless_pulls_copied_out());
  let_it_run_out();
  EXPECT_EQ(Result::ok, first.poll());
  EXPECT_EQ(Result::ok, second.poll());
  EXPECT_EQ(before + 2, gapless_pulls_copied_out());
}

/// What its receiver's lateness puts off is offered after all where there is no room to pack it.
TEST_F(Patience, ThatHasRunOutPutsOffButForWantOfRoom) {
  headers::Inbox& receiver = headers::own_inbox();
  PullOffer offer;
  headers::Header header = new_header();
  EXPECT_FALSE(offer.secure_put_off(buffer(out_), receiver, 0, header)) << "not put off";
  receiver.pulls_put_off.begin();
  EXPECT_FALSE(offer.secure(buffer(out_), receiver, 0, header));
  ASSERT_TRUE(offer.secure_put_off(buffer(out_), receiver, 0, header));
  offer.withdraw();
}

TEST_F(Patience, BeginsAgainWithEachMessageThatTheReceiverFetches) {
  headers::Header header = new_header();
  PullOffer first, second;
  ASSERT_TRUE(first.secure(buffer(out_), headers::own_inbox(), 0, header));
  first.hand_over();
  ASSERT_TRUE(offers(second));
  second.hand_over();
  const std::uint64_t before = gapless_pulls_copied_out();
  EXPECT_EQ(Result::under_way, first.poll());
  let_it_run_out();
  release_pulled(header, *header.way<PulledWay>());
  EXPECT_EQ(Result::ok, first.poll());
  EXPECT_EQ(Result::under_way, second.poll());
  EXPECT_EQ(before, gapless_pulls_copied_out());
  let_it_run_out();
  EXPECT_EQ(Result::ok, second.poll());
  EXPECT_EQ(before + 1, gapless_pulls_copied_out());
}

}  // namespace
}  // namespace gapless::transfer::pulls

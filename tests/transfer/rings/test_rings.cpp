// Long messages from and to GPUs: what a receiver makes of a sender that lies, fails or ends, and a sender of a
// receiver that does not come. The sender and the receiver are one process here.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "learn_filling.hpp"
#include "strided_message.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/rings/incoming.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer {
namespace {

using headers::ExportedPool;
using headers::RingWords;
using tests::block, tests::stride, tests::packed_bytes, tests::Bytes;

constexpr std::size_t section = 4096, room = 8 * section * headers::ring_count;

/// A process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

class RingTest : public tests::StridedMessage {
 protected:
  static void SetUpTestSuite() {
    ::setenv("PMIX_NAMESPACE", ("test-of-rings-" + std::to_string(::getpid())).c_str(), 1);
    headers::listen(0, 2);
  }

  explicit RingTest(device::MemoryKind kind) : pool_(words_, room, kind) {
    EXPECT_TRUE(headers::is_listening());
    EXPECT_TRUE(pool_.is_there(0));
    receiver_.head().speaker.rank = 1;
    receiver_.head().speaker.process = ::getpid();
    make_places();
  }
  ~RingTest() override {
    gpu_.fail("run", 0, 0);
    gpu_.fail("allocate", 0, 0);
    rings::drain([](int) { return true; });
    drain_pools();
  }

  rings::OwnedOutgoing begin() { return begin(buffer(out_)); }
  rings::OwnedOutgoing begin(const Buffer& out) { return rings::begin(out, receiver_, pool_, section); }
  RingWords& words_of(const rings::Outgoing& outgoing) {
    return headers::own_inbox().head().rings[rings::ring_of(outgoing).words];
  }
  rings::Incoming incoming(const rings::Outgoing& outgoing, pid_t sender) {
    return {rings::ring_of(outgoing), words_of(outgoing), pool_.data(rings::run_of(outgoing)), pool_.kind(), sender};
  }
  /// Whole messages, and the beginnings of others, into GPU memory.
  void expect_to_pass(const Buffer& out) {
    for (const std::size_t wanted : {packed_bytes, std::size_t{3 * section + 17}, std::size_t{1}}) {
      const rings::OwnedOutgoing outgoing = begin(out);
      ASSERT_NE(nullptr, outgoing);
      rings::start(*outgoing);
      EXPECT_EQ(Result::under_way, rings::poll(*outgoing)) << "the ring is full";
      EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), buffer(in_), wanted));
      EXPECT_EQ(Result::ok, rings::wait(*outgoing));
      expect_arrived(wanted);
      const Bytes nothing(extent());
      gpu_.write(in_, nothing.data(), nothing.size());
    }
  }

  headers::SegmentWords words_{};
  ExportedPool pool_;
  headers::Inbox receiver_{SharedSegment::make("test-of-rings", headers::inbox_bytes, headers::inbox_bytes)};
};

/// In GPU memory, and in page-locked memory of the host.
class Rings : public RingTest, public testing::WithParamInterface<device::MemoryKind> {
 protected:
  Rings() : RingTest(GetParam()) {}
};

/// One side is memory of the host, which the CPU packs or unpacks.
class RingsOnTheHost : public RingTest {
 protected:
  RingsOnTheHost() : RingTest(device::MemoryKind::pinned), sent_(sent_bytes()) {}
  Buffer on_host(Bytes& memory) const { return {&described_, 1, memory.data(), {}}; }

  Bytes sent_;
};

INSTANTIATE_TEST_SUITE_P(Each, Rings, testing::Values(device::MemoryKind::device, device::MemoryKind::pinned),
                         [](const auto& info) {
                           return info.param == device::MemoryKind::device ? "OnTheGpu" : "OnTheHost";
                         });

TEST_P(Rings, PassMessagesThroughLessMemoryThanTheyHave) {
  expect_to_pass(buffer(out_));
  EXPECT_NE(0u, pool_.take(pool_.room()).count) << "all is given back";
}

TEST_P(Rings, PassMessagesIntoHostMemory) {
  const rings::OwnedOutgoing outgoing = begin();
  rings::start(*outgoing);
  std::vector<std::byte> packed(packed_bytes);
  EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), packed.data(), packed.size(), 0));
  for (std::size_t k = 0; k < packed.size(); ++k)
    ASSERT_EQ(value(k / block * stride + k % block), static_cast<unsigned char>(packed[k])) << k;
}

TEST_F(RingsOnTheHost, PassMessagesOutOfHostMemory) { expect_to_pass(on_host(sent_)); }

TEST_F(RingsOnTheHost, PassMessagesToReceiversThatAreFar) {
  tests::learn(receiver_.filling, 5, 1);
  ASSERT_TRUE(receiver_.filling.is_far());
  expect_to_pass(on_host(sent_));
}

/// Of four sections one is timed at first.
TEST_F(RingsOnTheHost, PassMessagesWhoseSectionsAreTimed) {
  for (unsigned k = 0; k < model::Filling::untimed; ++k) static_cast<void>(receiver_.filling.next());
  expect_to_pass(on_host(sent_));
}

TEST_F(RingsOnTheHost, PassMessagesIntoBlocksOfHostMemory) {
  const rings::OwnedOutgoing outgoing = begin();
  rings::start(*outgoing);
  Bytes received(extent());
  EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), on_host(received), packed_bytes));
  gpu_.write(in_, received.data(), received.size());
  expect_arrived(packed_bytes);
}

TEST_F(RingsOnTheHost, WhatNobodyFetchesIsCopiedOutOfHostMemory) {
  const std::uint64_t before = gapless_rings_copied_out();
  const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
  rings::start(*outgoing);
  EXPECT_EQ(Result::ok, rings::wait(*outgoing));
  EXPECT_EQ(before + 1, gapless_rings_copied_out());
  EXPECT_TRUE(receiver_.rings_put_off.is_next()) << "the next messages to that receiver go other ways";
  sent_.assign(sent_.size(), 7);
  EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), buffer(in_), packed_bytes));
  expect_arrived(packed_bytes);
}

/// The receiver of a message that has been copied out may come late, or never.
TEST_F(RingsOnTheHost, TheHelperLooksSeldomWhereNothingMoves) {
  using Clock = std::chrono::steady_clock;
  const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
  rings::start(*outgoing);
  EXPECT_EQ(Result::ok, rings::wait(*outgoing));
  const std::uint64_t before = gapless_rings_helpers_looks();
  const Clock::time_point begun = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  const std::uint64_t looks = gapless_rings_helpers_looks() - before;
  // One a 5 ms, and a hundred until then.
  const auto most = 200 + static_cast<std::uint64_t>((Clock::now() - begun) / std::chrono::milliseconds{5});
  EXPECT_GT(looks, 0u);
  EXPECT_LE(looks, most);
  EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), buffer(in_), packed_bytes));
  expect_arrived(packed_bytes);
}

/// A message that could not be copied out would let two processes wait for each other for ever.
TEST_F(RingsOnTheHost, HaveMemoryForTheCopyBeforeTheMessageIsOffered) {
  Buffer too_long = on_host(sent_);
  too_long.count = (layout::Offset{1} << 48) / static_cast<layout::Offset>(packed_bytes);
  EXPECT_EQ(nullptr, begin(too_long)) << "there is no such memory";
  const std::size_t without = existing_buffers();
  const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
  EXPECT_EQ(without + 1, existing_buffers());
  rings::start(*outgoing);
  EXPECT_EQ(Result::ok, rings::wait(*outgoing));
  EXPECT_EQ(without + 1, existing_buffers()) << "the copy is in that memory";
}

TEST_F(RingsOnTheHost, KeepTheMemoryForLaterMessages) {
  const std::size_t before = existing_buffers();
  for (int message = 0; message < 3; ++message) {
    const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
    rings::start(*outgoing);
    EXPECT_EQ(Result::ok, rings::fetch(incoming(*outgoing, ::getpid()), buffer(in_), packed_bytes));
    EXPECT_EQ(Result::ok, rings::wait(*outgoing));
  }
  EXPECT_EQ(before + 1, existing_buffers());
}

TEST_F(RingsOnTheHost, OneThatIsWithdrawnIsNotTakenForFetched) {
  const auto put_off_after_waiting_in_vain = [this] {
    const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
    rings::start(*outgoing);
    EXPECT_EQ(Result::ok, rings::wait(*outgoing));
    int messages = 0;
    while (receiver_.rings_put_off.is_next()) ++messages;
    return messages;
  };
  const int first = put_off_after_waiting_in_vain();
  rings::OwnedOutgoing withdrawn = begin(on_host(sent_));
  ASSERT_NE(nullptr, withdrawn);
  rings::withdraw(withdrawn);
  EXPECT_EQ(2 * first, put_off_after_waiting_in_vain());
}

/// The child of a fork has the lock of the helping thread, and not the thread.
TEST_F(RingsOnTheHost, AForkedChildExits) {
  const rings::OwnedOutgoing outgoing = begin(on_host(sent_));
  rings::start(*outgoing);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(10);
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

TEST_P(Rings, ReceiversFailWhereTheSenderHasEndedOrFails) {
  rings::OwnedOutgoing never_starts = begin();
  EXPECT_EQ(Result::peer_failed, rings::fetch(incoming(*never_starts, ended_process()), buffer(in_), packed_bytes));
  expect_arrived(0);
  rings::withdraw(never_starts);

  const rings::OwnedOutgoing fails = begin();
  gpu_.fail("run", 0, -1);
  rings::start(*fails);
  EXPECT_EQ(Result::device_failed, rings::wait(*fails));
  EXPECT_EQ(Result::peer_failed, rings::fetch(incoming(*fails, ::getpid()), buffer(in_), packed_bytes));
  expect_arrived(0);
}

TEST_P(Rings, ThoseThatFailAreTheSendersAgain) {
  {
    const rings::OwnedOutgoing outgoing = begin();
    rings::start(*outgoing);
    gpu_.fail("run", 1, -1);
    EXPECT_EQ(Result::device_failed, rings::fetch(incoming(*outgoing, ::getpid()), buffer(in_), packed_bytes));
    EXPECT_EQ(Result::ok, rings::wait(*outgoing)) << "nobody wants the rest";
  }
  EXPECT_NE(0u, pool_.take(pool_.room()).count);
}

TEST_P(Rings, SendersOfReceiversThatHaveEndedFail) {
  receiver_.head().speaker.process = ended_process();
  const rings::OwnedOutgoing outgoing = begin();
  rings::start(*outgoing);
  gpu_.fail("allocate", 0, -1);  // it cannot be copied out
  EXPECT_EQ(Result::peer_failed, rings::wait(*outgoing));
}

TEST_P(Rings, WhatNobodyFetchesIsCopiedOutAndFetchedLater) {
  const std::uint64_t before = gapless_rings_copied_out();
  const std::size_t buffers = existing_buffers();
  rings::OwnedOutgoing outgoing = begin();
  const rings::Ring ring = rings::ring_of(*outgoing);
  RingWords& words = words_of(*outgoing);
  std::byte* const memory = pool_.data(rings::run_of(*outgoing));
  rings::start(*outgoing);
  EXPECT_EQ(Result::ok, rings::wait(*outgoing));
  EXPECT_EQ(before + 1, gapless_rings_copied_out());
  outgoing.reset();
  // The program has its memory and its datatype back.
  const Bytes others(static_cast<std::size_t>(type_.extent()), 7);
  gpu_.write(out_, others.data(), others.size());
  EXPECT_EQ(Result::ok, rings::fetch({ring, words, memory, GetParam(), ::getpid()}, buffer(in_), packed_bytes));
  expect_arrived(packed_bytes);
  rings::drain([](int) { return false; });
  drain_pools();
  EXPECT_EQ(buffers, existing_buffers());
}

TEST_P(Rings, AreTakenUpAndRefusedTogether) {
  std::vector<rings::OwnedOutgoing> all;
  for (;;) {
    rings::OwnedOutgoing next = begin();
    if (next == nullptr) break;
    rings::start(*next);
    all.push_back(std::move(next));
  }
  EXPECT_EQ(headers::ring_count, all.size());
  for (const auto& each : all) rings::refuse(words_of(*each));
  for (const auto& each : all) EXPECT_EQ(Result::ok, rings::wait(*each));
  all.clear();
  EXPECT_NE(0u, pool_.take(pool_.room()).count);
}

TEST_P(Rings, WhatAnotherProcessSaysOfOneIsBelievedWithinBounds) {
  EXPECT_TRUE(rings::is_right({section, 4, 0}, 4 * section));
  EXPECT_FALSE(rings::is_right({section, 4, 0}, 4 * section - 1));
  EXPECT_FALSE(rings::is_right({section, 0, 0}, room));
  EXPECT_FALSE(rings::is_right({0, 4, 0}, room));
  EXPECT_FALSE(rings::is_right({section, rings::most_sections + 1, 0}, room));
  EXPECT_FALSE(rings::is_right({~std::uint64_t{0} / 2, 4, 0}, room));
}

}  // namespace
}  // namespace gapless::transfer

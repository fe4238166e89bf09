// All parts of an exchange from one process to another under one description: one launch for all, and what a receiver
// makes of a sender that lies. The sender and the receiver are one process here, and its own peer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "layout/algebra/canonical.hpp"
#include "strided_message.hpp"
#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/combined.hpp"

namespace gapless::transfer::pulls {
namespace {

using tests::block, tests::blocks, tests::stride, tests::packed_bytes, tests::Bytes;

class Combined : public tests::StridedMessage {
 protected:
  static void SetUpTestSuite() {
    ::setenv("PMIX_NAMESPACE", ("test-of-combined-" + std::to_string(::getpid())).c_str(), 1);
    headers::listen(0, 2);
  }

  Combined() {
    EXPECT_TRUE(headers::is_listening());
    make_places();
    others_ = make(true);
    // A peer is told of an allocation once several messages have come out of it.
    for (int times = 0; times < 3; ++times) {
      for (void* const memory : {out_, others_}) {
        CombinedOffer early;
        std::vector<std::byte> description;
        const Buffer one[] = {buffer(memory)};
        if (early.secure(one, headers::own_inbox(), description)) take_back(early, description);
      }
    }
  }
  ~Combined() override {
    gpu_.release(others_);
    drain_pools();
  }

  static void take_back(CombinedOffer& offer, const std::vector<std::byte>& description) {
    offer.offer();
    CombinedFetch fetch;
    EXPECT_EQ(Result::ok, fetch.read(description, 1));
    fetch.end();
    EXPECT_EQ(Result::ok, offer.poll());
  }

  /// A row of the block's length in the place of block `k`.
  Buffer row(void* memory, layout::Offset k) const {
    return {&row_, 1, static_cast<std::byte*>(memory) + k * stride, {device::MemoryKind::device, 0}};
  }

  Result fetch_all(const std::vector<std::byte>& description, const std::vector<Buffer>& into) {
    CombinedFetch fetch;
    Result result = fetch.read(description, into.size());
    if (result == Result::ok) result = fetch.poll();
    std::vector<pack::PairJob> jobs;
    for (std::size_t i = 0; result == Result::ok && i < into.size(); ++i) {
      const layout::Offset bytes = fetch.size_of(i, 0);
      result = bytes < 0 || bytes > into[i].size() ? Result::peer_failed : fetch.copy(i, into[i], jobs);
    }
    if (result == Result::ok && !jobs.empty()) result = run_on_gpu(jobs, 0);
    fetch.end();
    return result;
  }

  Described row_{layout::block(0, block), layout::facts_of(*layout::block(0, block)), block, true};
  void* others_ = nullptr;
};

TEST_F(Combined, PartsOfSeveralAllocationsAreReadByOneLaunch) {
  // Part 0 is all but the blocks of the others, which come out of another allocation, backwards.
  constexpr layout::Offset rows = 24;
  std::vector<Buffer> from, into;
  const Described front{layout::repeat(layout::block(0, block), blocks - rows, stride),
                        layout::facts_of(*layout::repeat(layout::block(0, block), blocks - rows, stride)), 0};
  from.push_back({&front, 1, out_, {device::MemoryKind::device, 0}});
  into.push_back({&front, 1, in_, {device::MemoryKind::device, 0}});
  for (layout::Offset k = 1; k <= rows; ++k) {
    from.push_back(row(k % 2 == 0 ? out_ : others_, blocks - k));
    into.push_back(row(in_, blocks - k));
  }
  CombinedOffer offer;
  std::vector<std::byte> description;
  ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
  EXPECT_LE(description.size(), longest_description(from.size()));
  offer.offer();
  EXPECT_EQ(Result::under_way, offer.poll());
  gpu_.reset_counts();
  EXPECT_EQ(Result::ok, fetch_all(description, into));
  EXPECT_EQ(1, gpu_.count("launches"));
  EXPECT_EQ(0, gpu_.count("copies"));
  EXPECT_EQ(0, gpu_.count("allocations"));
  EXPECT_EQ(Result::ok, offer.poll());
  expect_arrived(packed_bytes);
}

TEST_F(Combined, WhatIsUnpackedBesideCopiesJoinsTheirLaunch) {
  const Described half{layout::repeat(layout::block(0, block), blocks / 2, stride),
                       layout::facts_of(*layout::repeat(layout::block(0, block), blocks / 2, stride)), 0};
  const auto half_of = [&](void* memory, layout::Offset which) {
    std::byte* const first = static_cast<std::byte*>(memory) + which * (blocks / 2) * stride;
    return Buffer{&half, 1, first, {device::MemoryKind::device, 0}};
  };
  Operation arrived(half_of(in_, 1), Side::receiver, Scheme::oneshot);
  ASSERT_EQ(Result::ok, arrived.reserve());
  for (std::size_t i = 0; i < packed_bytes / 2; ++i) {
    const std::size_t in_all = packed_bytes / 2 + i;
    arrived.packed_data()[i] = std::byte{value(in_all / block * stride + in_all % block)};
  }
  Batch batch;
  batch.add(copying(half_of(out_, 0), half_of(in_, 0)), 0);
  arrived.finish_in(batch, arrived.packed_size());
  gpu_.reset_counts();
  EXPECT_EQ(Result::ok, batch.run());
  EXPECT_EQ(1, gpu_.count("launches"));
  expect_arrived(packed_bytes);
}

TEST_F(Combined, ShorterPartsThanAreReceived) {
  const Described half{layout::repeat(layout::block(0, block), blocks / 2, stride),
                       layout::facts_of(*layout::repeat(layout::block(0, block), blocks / 2, stride)), 0};
  const Buffer from[] = {{&half, 1, out_, {device::MemoryKind::device, 0}}};
  CombinedOffer offer;
  std::vector<std::byte> description;
  ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
  offer.offer();
  EXPECT_EQ(Result::ok, fetch_all(description, {buffer(in_)}));
  EXPECT_EQ(Result::ok, offer.poll());
  expect_arrived(packed_bytes / 2);
}

TEST_F(Combined, PartsInHostMemory) {
  const Buffer from[] = {buffer(out_)};
  CombinedOffer offer;
  std::vector<std::byte> description, packed(packed_bytes);
  ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
  offer.offer();
  CombinedFetch fetch;
  ASSERT_EQ(Result::ok, fetch.read(description, 1));
  ASSERT_EQ(Result::ok, fetch.poll());
  ASSERT_EQ(layout::Offset{packed_bytes}, fetch.size_of(0, 0));
  EXPECT_EQ(Result::ok, fetch.copy(0, packed.data()));
  fetch.end();
  EXPECT_EQ(Result::ok, offer.poll());
  for (std::size_t i = 0; i < packed.size(); ++i)
    ASSERT_EQ(value(i / block * stride + i % block), static_cast<unsigned char>(packed[i])) << i;
}

TEST_F(Combined, AreNotOfferedWhereOneCannotBeRead) {
  void* const unknown = make(true);
  const Buffer from[] = {buffer(out_), buffer(unknown)};
  CombinedOffer offer;
  std::vector<std::byte> description;
  EXPECT_FALSE(offer.secure(from, headers::own_inbox(), description));
  Bytes bytes(extent());
  const Buffer on_host[] = {{&described_, 1, bytes.data(), {}}};
  EXPECT_FALSE(offer.secure(on_host, headers::own_inbox(), description));
  gpu_.release(unknown);
}

TEST_F(Combined, AreWaitedForUntilTheyAreOfferedOrFail) {
  const Buffer from[] = {buffer(out_)};
  for (const bool fails : {false, true}) {
    CombinedOffer offer;
    std::vector<std::byte> description;
    ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
    CombinedFetch fetch;
    ASSERT_EQ(Result::ok, fetch.read(description, 1));
    EXPECT_EQ(Result::under_way, fetch.poll());
    fails ? offer.fail() : offer.offer();
    EXPECT_EQ(fails ? Result::peer_failed : Result::ok, fetch.poll());
    fetch.end();
    EXPECT_EQ(fails ? Result::device_failed : Result::ok, offer.poll());
  }
}

TEST_F(Combined, HaveSoManyWordsAtATime) {
  const Buffer from[] = {buffer(out_)};
  std::vector<std::byte> description;
  {
    std::vector<CombinedOffer> all(headers::pull_count);
    unsigned offered = 0;
    for (CombinedOffer& offer : all) {
      if (!offer.secure(from, headers::own_inbox(), description)) continue;
      offer.offer();
      ++offered;
    }
    // One has failed in another test, and its words are never used again.
    EXPECT_GE(offered, headers::pull_count - 1);
    CombinedOffer another;
    EXPECT_FALSE(another.secure(from, headers::own_inbox(), description));
    for (headers::PullWords& words : headers::own_inbox().head().pulls) {
      headers::PullWords::State offered_state = headers::PullWords::State::offered;
      words.state.compare_exchange_strong(offered_state, headers::PullWords::State::done);
    }
  }
  CombinedOffer offer;
  EXPECT_TRUE(offer.secure(from, headers::own_inbox(), description));
  take_back(offer, description);
}

TEST_F(Combined, OfSendersThatLieAreErrorsOfTheReceiver) {
  // As they are sent: a head of 16 bytes, one handle, and a part with one mode.
  constexpr std::size_t part = 16 + sizeof(device::MemoryHandle);
  using Lie = std::function<void(std::vector<std::byte>&)>;
  const auto set = [](std::size_t at, auto value) {
    return [=](std::vector<std::byte>& bytes) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  };
  const std::vector<Lie> lies{
      [](auto& bytes) { bytes.clear(); },
      [](auto& bytes) { bytes.pop_back(); },
      [](auto& bytes) { bytes.push_back({}); },
      set(0, std::uint32_t{2}),
      set(4, std::uint32_t{2}),
      set(4, std::uint32_t{0}),
      set(8, std::int32_t{7}),
      set(part, std::uint64_t{16}),
      set(part + 8, std::int64_t{0}),
      set(part + 8, std::int64_t{1} << 62),
      set(part + 24, std::int64_t{-1}),
      set(part + 32, std::int64_t{0}),
      set(part + 32, std::int64_t{1} << 40),
      set(part + 40, std::uint32_t{1}),
      set(part + 44, std::uint32_t{9}),
      set(part + 44, std::uint32_t{2}),
  };
  const Buffer from[] = {buffer(out_)};
  for (std::size_t k = 0; k < lies.size(); ++k) {
    CombinedOffer offer;
    std::vector<std::byte> description;
    ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
    ASSERT_EQ(part + 48 + sizeof(layout::Mode), description.size());
    offer.offer();
    std::vector<std::byte> lie = description;
    lies[k](lie);
    EXPECT_EQ(Result::peer_failed, fetch_all(lie, {buffer(in_)})) << k;
    if (offer.poll() == Result::under_way) {
      EXPECT_EQ(Result::ok, fetch_all(description, {buffer(others_)})) << k;
    }
  }
  expect_arrived(0);
}

TEST_F(Combined, ThatAGpuCannotReadFail) {
  const Buffer from[] = {buffer(out_)};
  CombinedOffer offer;
  std::vector<std::byte> description;
  ASSERT_TRUE(offer.secure(from, headers::own_inbox(), description));
  offer.offer();
  gpu_.fail("run", 0, 1);
  EXPECT_EQ(Result::device_failed, fetch_all(description, {buffer(in_)}));
  EXPECT_EQ(Result::ok, offer.poll());
}

}  // namespace
}  // namespace gapless::transfer::pulls

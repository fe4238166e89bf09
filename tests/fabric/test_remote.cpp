// Grouped and cached registrations, and that the loopback fabric is as strict as the tests above it rely on.
#include <gtest/gtest.h>

#include <array>

#include "fabric/remote/group.hpp"
#include "fabric/remote/loopback.hpp"
#include "fabric/remote/registration_cache.hpp"

namespace gapless::fabric {
namespace {

constexpr RegistrationCost cost{.operation_ns = 1000, .page_ns = 100};  // nine pages of gap pay, ten do not

std::vector<Range> grouped(std::vector<Range> blocks) {
  group(blocks, cost);
  return blocks;
}

TEST(Group, BlocksJoinWhereTheGapIsCheap) {
  using Ranges = std::vector<Range>;
  EXPECT_EQ(grouped({}), Ranges{});
  EXPECT_EQ(grouped({{5, 9}}), (Ranges{{5, 9}}));
  EXPECT_EQ(grouped({{0, 4096}, {10 * 4096, 11 * 4096}}), (Ranges{{0, 11 * 4096}}));
  EXPECT_EQ(grouped({{0, 4096}, {11 * 4096, 12 * 4096}}), (Ranges{{0, 4096}, {11 * 4096, 12 * 4096}}));
  EXPECT_EQ(grouped({{0, 4095}, {11 * 4096 - 1, 12 * 4096}}), (Ranges{{0, 12 * 4096}})) << "partial pages";
}

TEST(Group, OrderAndOverlapDoNotMatter) {
  EXPECT_EQ(grouped({{90000, 90008}, {0, 8}, {4, 100}, {2, 6}}), (std::vector<Range>{{0, 100}, {90000, 90008}}));
}

class Cache : public testing::Test {
 protected:
  LoopbackNetwork network;
  LoopbackEndpoint endpoint{network, {}};
  alignas(4096) std::array<std::byte, 16 * 4096> memory{};
  std::byte* page(int i) { return memory.data() + i * 4096; }
};

TEST_F(Cache, WhatIsCoveredIsNotRegisteredAgain) {
  RegistrationCache cache(endpoint, {});
  const Region* all = cache.acquire(page(0), 4 * 4096);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(cache.acquire(page(1) + 7, 5000), all);
  EXPECT_NE(cache.acquire(page(3), 4097), all);
  EXPECT_EQ(cache.registrations(), 2u);
}

TEST_F(Cache, TheOneUsedLongestAgoGoesFirst) {
  RegistrationCache cache(endpoint, {.regions = 2});
  const auto use = [&](int i) { cache.release(cache.acquire(page(i), 1)); };
  use(0);
  use(1);
  use(0);
  use(2);  // evicts 1
  EXPECT_EQ(cache.size(), 2u);
  use(0);
  EXPECT_EQ(cache.registrations(), 3u);
  use(1);
  EXPECT_EQ(cache.registrations(), 4u);
  EXPECT_EQ(endpoint.regions(), 2u);
}

TEST_F(Cache, BytesAreBoundedToo) {
  RegistrationCache cache(endpoint, {.bytes = 3 * 4096});
  for (int i = 0; i < 5; ++i) cache.release(cache.acquire(page(2 * i), 2 * 4096));
  EXPECT_EQ(endpoint.regions(), 1u);
}

TEST_F(Cache, WhatIsHeldIsNeverEvicted) {
  RegistrationCache cache(endpoint, {.regions = 1});
  const Region* first = cache.acquire(page(0), 1);
  const Region* second = cache.acquire(page(1), 1);
  EXPECT_TRUE(first->covers(page(0), 4096));
  EXPECT_EQ(endpoint.regions(), 2u);
  EXPECT_EQ(cache.held(), 2u);
  cache.release(second);
  EXPECT_EQ(cache.held(), 1u);
  cache.release(first);
  EXPECT_EQ(cache.held(), 0u);
  EXPECT_EQ(endpoint.regions(), 1u);
}

TEST_F(Cache, ARefusalEvictsWhatIsUnusedAndTriesAgain) {
  RegistrationCache cache(endpoint, {});
  cache.release(cache.acquire(page(0), 1));
  endpoint.faults.registrations_left = 0;
  EXPECT_EQ(cache.acquire(page(1), 1), nullptr);
  EXPECT_EQ(endpoint.regions(), 0u);
}

TEST_F(Cache, WhatIsRevokedEndsWithItsLastUserAndIsNobodyElses) {
  RegistrationCache cache(endpoint, {});
  const Region* first = cache.acquire(page(0), 1);
  const Region* second = cache.acquire(page(0), 1);
  ASSERT_EQ(first, second);
  cache.revoke(first);
  EXPECT_TRUE(second->covers(page(0), 4096));
  EXPECT_NE(cache.acquire(page(0), 1), second);
  EXPECT_EQ(cache.held(), 2u);
  EXPECT_EQ(endpoint.regions(), 2u);
  cache.release(second);
  EXPECT_EQ(cache.held(), 1u);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(endpoint.regions(), 1u);
}

TEST_F(Cache, WhatIsAcquiredAloneEndsAtOnceAndTakesNothingFromOthers) {
  RegistrationCache cache(endpoint, {});
  const Region* shared = cache.acquire(page(0), 4096);
  const Region* alone = cache.acquire(page(0), 4096, Use::alone);
  const Region* another = cache.acquire(page(0), 4096, Use::alone);
  EXPECT_TRUE(shared != alone && alone != another && another != shared);
  EXPECT_EQ(cache.acquire(page(0), 1), shared);
  cache.revoke(alone);
  EXPECT_EQ(endpoint.regions(), 2u);
  EXPECT_TRUE(shared->covers(page(0), 4096) && another->covers(page(0), 4096));
  // What is held by nobody is kept for either use.
  cache.release(another);
  EXPECT_EQ(cache.acquire(page(0), 4096, Use::alone), another);
  cache.release(another);
  EXPECT_EQ(cache.registrations(), 3u);
}

TEST_F(Cache, WherePagesArePinnedNothingIsKept) {
  LoopbackShape shape;
  shape.limits.follows_mappings = false;
  LoopbackEndpoint pinning(network, shape);
  RegistrationCache cache(pinning, {});
  cache.release(cache.acquire(page(0), 1));
  EXPECT_EQ(pinning.regions(), 0u);
}

/// The program may map new memory in the middle of a group that a message has registered.
TEST_F(Cache, WherePagesArePinnedNothingIsShared) {
  LoopbackShape shape;
  shape.limits.follows_mappings = false;
  LoopbackEndpoint pinning(network, shape);
  RegistrationCache cache(pinning, {});
  const Region* group = cache.acquire(page(0), 3 * 4096);
  const Region* between = cache.acquire(page(1), 4096);
  EXPECT_NE(group, between);
  EXPECT_EQ(pinning.regions(), 2u);
  cache.release(between);
  EXPECT_EQ(pinning.regions(), 1u);
  EXPECT_TRUE(group->covers(page(0), 3 * 4096));
  cache.release(group);
  RegistrationCache of_what_stays(pinning, {.memory_stays = true});
  group = of_what_stays.acquire(page(0), 3 * 4096);
  EXPECT_EQ(of_what_stays.acquire(page(1), 4096), group);
}

class Loopback : public Cache {
 protected:
  Loopback() {
    peer = endpoint.open_peer();
    EXPECT_EQ(endpoint.connect(peer, other.local_address(0)), Status::ok);
    EXPECT_EQ(endpoint.register_memory(page(0), 4096, ours), Status::ok);
    EXPECT_EQ(other.register_memory(page(1), 4096, theirs), Status::ok);
  }

  Status outcome(Post post, std::vector<Piece> pieces) {
    post.local = pieces;
    const Posted posted = endpoint.post(peer, {&post, 1});
    if (posted.count == 0) return posted.status;
    std::array<Completion, 4> completions;
    EXPECT_EQ(endpoint.poll(completions), 1u);
    return completions[0].status;
  }
  Post write(std::uint64_t offset) const {
    Post post;
    post.remote = theirs.address + offset;
    post.key = theirs.key;
    return post;
  }

  LoopbackEndpoint other{network, {}};
  int peer;
  Region ours, theirs;
};

TEST_F(Loopback, ChecksKeysBoundsAndLimits) {
  const Piece piece{page(0), 100, &ours};
  EXPECT_EQ(outcome(write(0), {piece}), Status::ok);
  EXPECT_EQ(outcome(write(4096 - 100), {piece}), Status::ok);
  EXPECT_EQ(outcome(write(4096 - 99), {piece}), Status::failed) << "beyond the region";
  Post wrong_key = write(0);
  wrong_key.key ^= 1 << 8;
  EXPECT_EQ(outcome(wrong_key, {piece}), Status::failed);
  EXPECT_EQ(endpoint.misuses(), 0u);
  EXPECT_EQ(outcome(write(0), std::vector(5, piece)), Status::failed) << "more pieces than may be gathered";
  EXPECT_EQ(outcome(write(0), {{page(1), 100, &ours}}), Status::failed) << "not in its region";
  EXPECT_EQ(outcome(write(0), {{page(0), 0, &ours}}), Status::failed) << "nothing";
  EXPECT_EQ(endpoint.misuses(), 3u);
  other.deregister(theirs);
  EXPECT_EQ(outcome(write(0), {piece}), Status::failed) << "not registered any more";
  other.faults.is_dead = true;
  EXPECT_EQ(outcome(write(0), {piece}), Status::peer_failed);
}

TEST_F(Loopback, TakesNoMoreThanTheQueueHolds) {
  const Piece piece{page(0), 1, &ours};
  std::vector<Post> list(70, write(0));
  for (Post& post : list) post.local = {&piece, 1};
  const Posted posted = endpoint.post(peer, list);
  EXPECT_EQ(posted.count, 64u);
  EXPECT_EQ(posted.status, Status::again);
}

}  // namespace
}  // namespace gapless::fabric

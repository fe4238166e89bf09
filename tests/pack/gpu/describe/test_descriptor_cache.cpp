// Serialised layouts are uploaded once, shared and forgotten in time.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "host_descriptors.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu/plan/plan.hpp"

namespace gapless::tests {
namespace {

using layout::LayoutPointer;
using layout::Offset;
using pack::Direction;
using pack::Job;
using pack::gpu::DescriptorCache;
using pack::gpu::Planner;

TEST(DescriptorCache, UploadsOnceAndForgetsTheLeastRecentlyUsed) {
  const auto memory = std::make_shared<HostDescriptors>();
  std::vector<LayoutPointer> kept;
  {
    DescriptorCache cache(memory, 4000);
    const auto ragged = [](Offset gap) {
      return layout::segments(std::vector<layout::Segment>{{0, 4}, {10 + gap, 12}, {100 + gap * 2, 4}, {300, 20}});
    };
    for (Offset gap = 0; gap < 50; ++gap) {
      kept.push_back(ragged(gap));
      ASSERT_NE(cache.find(*kept.back(), 0), nullptr);
      ASSERT_NE(cache.find(*kept.front(), 0), nullptr);
    }
    EXPECT_EQ(memory->uploads, 50) << "the first was used all the time and must have stayed";
    EXPECT_LE(cache.bytes(), 4000u);
    EXPECT_EQ(memory->uploads - memory->releases, static_cast<int>(cache.entries()));
    cache.find(*kept.front(), 1);
    EXPECT_EQ(memory->uploads, 51) << "another device needs its own";
    const auto first = cache.find(*kept.front(), 0);
    cache.hold(first);
    cache.hold(first);
    for (Offset gap = 50; gap < 100; ++gap) {
      kept.push_back(ragged(gap));
      cache.find(*kept.back(), 0);
    }
    EXPECT_EQ(first.use_count(), 2) << "captured work may still use it";
  }
  EXPECT_EQ(memory->uploads, memory->releases);
}

TEST(DescriptorCache, ANewLayoutAtAnOldAddressIsAnotherLayout) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  alignas(layout::Layout) std::byte storage[sizeof(layout::Layout)];
  const auto place = [&](Offset gap) {
    const auto wanted = layout::segments(std::vector<layout::Segment>{{0, 4}, {10 + gap, 12}, {100, 4}});
    return LayoutPointer(new (storage) layout::Layout(*wanted), [](const layout::Layout* l) { l->~Layout(); });
  };
  auto layout = place(0);
  const auto first = cache.find(*layout, 0);
  EXPECT_EQ(cache.find(*layout, 0), first);
  layout.reset();
  layout = place(7);
  EXPECT_NE(cache.find(*layout, 0), first);
}

TEST(DescriptorCache, EqualLayoutsShareWhatLivesAsLongAsOneOfThem) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  const auto ragged = [](Offset gap) {
    return layout::segments(std::vector<layout::Segment>{{0, 4}, {10 + gap, 12}, {100, 4}});
  };
  auto one = ragged(0), other = ragged(0);
  EXPECT_EQ(cache.find(*one, 0), cache.find(*other, 0));
  EXPECT_EQ(memory->uploads, 1);
  one.reset();
  EXPECT_NE(cache.find(*other, 0), nullptr);
  EXPECT_EQ(cache.find(*ragged(0), 0), cache.find(*other, 0));
  EXPECT_EQ(memory->uploads, 1);
  other.reset();
  for (Offset gap = 1; gap < 8; ++gap) cache.find(*ragged(gap), 0);
  EXPECT_LE(cache.entries(), 2u) << "types that come and go leave nothing behind";
  EXPECT_EQ(memory->uploads - memory->releases, static_cast<int>(cache.entries()));
}

TEST(DescriptorCache, LayoutsOfOneHashAreToldApart) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  // Of a long list the hash looks at some runs only, and the second is none of them.
  const auto ragged = [](Offset shift) {
    std::vector<layout::Segment> runs;
    for (Offset i = 0; i < 1000; ++i) runs.push_back({i * 100 + i * i % 7 * 4 + (i == 1 ? shift : 0), 4 + i % 5 * 4});
    return layout::segments(runs);
  };
  const auto one = ragged(0), other = ragged(8);
  ASSERT_EQ(layout::hash(*one), layout::hash(*other));
  EXPECT_NE(cache.find(*one, 0), cache.find(*other, 0));
  EXPECT_EQ(memory->uploads, 2);
}

TEST(DescriptorCache, ALayoutNobodySharesIsServedAndNotRemembered) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  const layout::Layout own = *layout::segments(std::vector<layout::Segment>{{0, 4}, {10, 12}, {100, 4}});
  EXPECT_NE(cache.find(own, 0), nullptr);
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(memory->uploads, memory->releases);
}

TEST(DescriptorCache, AnUploadIsFollowedUntilItHasArrived) {
  const auto memory = std::make_shared<HostDescriptors>();
  DescriptorCache cache(memory, 1 << 20);
  memory->late = true;
  const auto ragged = layout::segments(std::vector<layout::Segment>{{0, 4}, {10, 12}, {100, 4}});
  const auto descriptor = cache.find(*ragged, 0);
  EXPECT_TRUE(descriptor->follow(nullptr));
  EXPECT_TRUE(descriptor->follow(nullptr));
  EXPECT_EQ(memory->followed, 2) << "another stream may be meant";
  memory->late = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(descriptor->follow(nullptr));
  EXPECT_EQ(memory->followed, 3);
}

TEST(DescriptorCache, NoMemoryIsReported) {
  const auto memory = std::make_shared<HostDescriptors>();
  memory->full = true;
  DescriptorCache cache(memory, 1 << 20);
  Planner planner(cache);
  const auto ragged = layout::segments(std::vector<layout::Segment>{{0, 4}, {10, 12}, {100, 4}});
  const Job job{
      ragged.get(), {1, 0}, 0, 20, Direction::pack, reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(0x2000)};
  EXPECT_TRUE(planner.plan(job, 0).out_of_memory);
  memory->full = false;
  EXPECT_FALSE(planner.plan(job, 0).out_of_memory) << "a failure is not remembered";
}

}  // namespace
}  // namespace gapless::tests

// Parts of layouts that reach and count beyond 32 bits, through every regime and every other way, against plain
// division.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "exercise.hpp"
#include "far_layout.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "pack/gpu/route/copy_plan.hpp"
#include "seed.hpp"
#include "simulated_engines.hpp"

namespace gapless::tests {
namespace {

/// The packed bytes of some of the layout's inner modes.
Offset period_of(FarLayouts& random, const Layout& layout) {
  Offset period = layout.core_size;
  for (const Mode& mode : layout.modes) {
    if (random.one_in(2)) break;
    period *= mode.count;
  }
  return period;
}

/// Some bytes of a packed stream: often where a number of bytes or words leaves 31 or 32 bits, or repetitions meet.
std::pair<Offset, Offset> range_of(FarLayouts& random, Offset size, const Layout& once) {
  const Offset length = random.one_in(8) ? random.number(0, 20000) : random.magnitude(12);
  Offset middle = random.number(0, size);
  if (random.one_in(3)) middle = Offset{1} << random.number(29, 37);
  if (random.one_in(2)) {
    const Offset period = period_of(random, once);
    middle = random.number(0, size / period) * period;
  }
  if (random.one_in(6)) middle = random.one_in(2) ? 0 : size;
  // A few words beside it, or anywhere near.
  const Offset near = random.number(0, 3) * (Offset{1} << random.number(0, 4));
  const Offset after = random.one_in(3) ? near : random.one_in(2) ? length - near : random.number(0, length);
  const Offset end = std::clamp<Offset>(middle + after, 0, size);
  return {std::max<Offset>(end - length, 0), end};
}

/// By copies of boxes, if there are few enough.
void expect_copied(Exercise& exercise) {
  for (const auto direction : {Direction::pack, Direction::unpack}) {
    CopyPlan plan;
    if (!plan_copies(exercise.job(direction), plan)) continue;
    const auto move = [&](const WatchedSpace& space) {
      copy_boxes(plan, [&](std::uintptr_t to, std::uintptr_t from, std::uint64_t bytes) {
        for (std::uint64_t i = 0; i < bytes; ++i) *space.at<char>(to + i) = *space.at<const char>(from + i);
      });
    };
    ASSERT_NO_FATAL_FAILURE(exercise.expect_to_move_once(move, direction, false)) << "copies";
  }
}

template <class Work>
int count_of(const EveryRegime& every) {
  const auto found = every.launches.find(Launch(Work{}).index());
  return found == every.launches.end() ? 0 : found->second;
}

TEST(FarJobs, MoveEachByteOfTheirRangeOnce) {
  FarLayouts random(random_seed());
  EveryRegime every;
  for (int i = 0; i < 500; ++i) {
    const FarSample once = random.next();
    const Mode outer = random.outer(once);
    const FarSample all = outer.count > 0 ? repeated(once, outer.count, outer.stride) : once;
    const Offset size = once.size() * outer.count;
    const auto [begin, end] = range_of(random, size, *once.layout);
    SCOPED_TRACE("sample " + std::to_string(i) + ", bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                 " of " + std::to_string(size));
    Exercise exercise(*once.layout, all.where, outer, begin, end, random.one_in(4) ? random.number(0, 15) : 0,
                      random.one_in(4) ? random.number(0, 31) : begin % 16);
    ASSERT_NO_FATAL_FAILURE(every.run(exercise));
    ASSERT_NO_FATAL_FAILURE(expect_copied(exercise));
  }
  EXPECT_GT(count_of<NestWork<std::uint32_t>>(every), 0);
  EXPECT_GT(count_of<NestWork<std::uint64_t>>(every), 0);
  EXPECT_GT(count_of<SegmentsWork<NarrowRun>>(every), 0);
  EXPECT_GT(count_of<SegmentsWork<pack::gpu::Run>>(every), 0);
  EXPECT_GT(count_of<ShiftedWork>(every), 0);
  EXPECT_GT(count_of<SectorsWork>(every), 0);
  EXPECT_GT(count_of<TransposeWork>(every), 0);
  EXPECT_GT(count_of<InterleavedWork>(every), 0);
  EXPECT_GT(count_of<TreeWork>(every), 0);
  EXPECT_GT(count_of<OrderedWork>(every), 0);
}

// ---- Copies between two layouts ----

/// Runs the bodies of a copy on the CPU.
struct PairInterpreter {
  const WatchedSpace& space;

  void operator()(std::monostate) const {}
  void operator()(const ContiguousWork& work) const { Interpreter{space}(work); }
  template <class Places>
  void operator()(const PairWork<Places>& work) const {
    visit_word(work.word_shift, [&](auto word) {
      for (std::uint64_t tile = 0; tile < work.tiles(); ++tile) {
        run_pair_tile<decltype(word)>(work, tile, SequentialBlock<WatchedSpace>{space});
      }
    });
  }
  void operator()(const OrderedPairWork& work) const { run_pair_tile(work, SequentialBlock<WatchedSpace>{space}); }
};

/// One side of a copy.
struct Side {
  FarSample once;
  Mode outer;
  std::uintptr_t origin;

  std::vector<std::uintptr_t> addresses() const {
    const FarSample all = repeated(once, outer.count, outer.stride);
    std::vector<std::uintptr_t> addresses;
    for (Offset k = 0; k < all.size(); ++k) addresses.push_back(origin + static_cast<std::uintptr_t>(all.where(k)));
    return addresses;
  }
};

FarSample short_sample(FarLayouts& random) {
  constexpr Offset most = 5000;
  FarSample sample = random.next();
  while (sample.size() > most) sample = random.next();
  return sample;
}

/// Two sides of one size, which is not large.
std::pair<Side, Side> sides(FarLayouts& random) {
  constexpr Offset most = 20000;
  constexpr std::uintptr_t from = std::uintptr_t{1} << 60, to = std::uintptr_t{1} << 61;
  while (true) {
    const FarSample source = short_sample(random), destination = short_sample(random);
    const Offset size = std::lcm(source.size(), destination.size());
    if (size > most) continue;
    const auto skew = [&] { return static_cast<std::uintptr_t>(random.one_in(4) ? random.number(0, 15) : 0); };
    return {{source, {size / source.size(), random.stride(source)}, from + skew()},
            {destination, {size / destination.size(), random.stride(destination)}, to + skew()}};
  }
}

TEST(FarJobs, CopiesBetweenLayoutsMoveEachByteOnce) {
  FarLayouts random(random_seed());
  DescriptorCache cache(std::make_shared<HostDescriptors>(), 1 << 20);
  Planner planner(cache);
  std::map<std::size_t, int> launches;
  for (int i = 0; i < 500; ++i) {
    const auto [source, destination] = sides(random);
    const pack::PairJob job{
        source.once.layout.get(),      source.outer,      reinterpret_cast<const void*>(source.origin),
        destination.once.layout.get(), destination.outer, reinterpret_cast<void*>(destination.origin)};
    const PairLaunch launch = plan_pair(planner, job, 0).launch;
    SCOPED_TRACE(i);
    expect_to_move_once(MovedBytes(source.addresses()), MovedBytes(destination.addresses()),
                        [&](const WatchedSpace& space) { std::visit(PairInterpreter{space}, launch); });
    ASSERT_FALSE(HasFailure());
    ++launches[launch.index()];
  }
  EXPECT_EQ(launches.size(), std::variant_size_v<PairLaunch> - 1) << "all but the one that moves nothing";
}

}  // namespace
}  // namespace gapless::tests

// Single tiles of jobs of many gigabytes: the numbers of words, rows and tiles come near 32 bits or leave them.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "far_layout.hpp"
#include "host_descriptors.hpp"
#include "job_on_paper.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "seed.hpp"
#include "sequential_kernels.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;
using pack::Direction;
using pack::Job;

/// Memory of which every byte is a function of its address, and nothing is there but what a tile reads and writes.
class TileSpace {
 public:
  /// all: what the job's layout and its repetitions name.
  TileSpace(const FarSample& all, const Job& job) : all_(all), job_(job) {}

  template <class T>
  T* at(std::uintptr_t address) const {
    EXPECT_EQ(address % alignof(T), 0u);
    Access& access = (std::is_const_v<T> ? reads_ : writes_).emplace_back(address, sizeof(T));
    if constexpr (std::is_const_v<T>) fill(access);
    return reinterpret_cast<T*>(&access.word);
  }
  std::uint64_t word_around(std::uintptr_t address) const {
    Access& access = looks_.emplace_back(address, sizeof(std::uint64_t));
    fill(access);
    return access.word.low;
  }

  /// That what was written is what the job has there.
  void expect_right() const { job_.direction == Direction::pack ? expect_packed() : expect_unpacked(); }

 private:
  struct Access {
    std::uintptr_t address;
    std::size_t bytes;
    Word16 word{};

    Access(std::uintptr_t address, std::size_t bytes) : address(address), bytes(bytes) {}
    char* byte(std::size_t i) { return reinterpret_cast<char*>(&word) + i; }
  };
  using Accesses = std::deque<Access>;  // whose words stay where they are

  static char byte_at(std::uintptr_t address) { return static_cast<char>(address * 0x9e3779b97f4a7c15u >> 56); }
  static void fill(Access& access) {
    for (std::size_t i = 0; i < access.bytes; ++i) *access.byte(i) = byte_at(access.address + i);
  }
  template <class Use>
  static void for_bytes(Accesses& accesses, const Use& use) {
    for (Access& access : accesses) {
      for (std::size_t i = 0; i < access.bytes; ++i) use(access.address + i, *access.byte(i));
    }
  }

  /// Where packed byte k lies.
  std::uintptr_t memory(Offset k) const {
    return reinterpret_cast<std::uintptr_t>(job_.memory) + static_cast<std::uintptr_t>(all_.where(k));
  }
  /// The packed byte at an address; nothing if it is none of the job's.
  std::optional<Offset> packed_byte(std::uintptr_t address) const {
    const Offset k = static_cast<Offset>(address - reinterpret_cast<std::uintptr_t>(job_.packed)) + job_.begin;
    return k >= job_.begin && k < job_.end ? std::optional(k) : std::nullopt;
  }

  void expect_packed() const {
    std::unordered_set<std::uintptr_t> sources;
    int wrong = 0, strange = 0;
    for_bytes(writes_, [&](std::uintptr_t address, char value) {
      const std::optional<Offset> k = packed_byte(address);
      if (k) sources.insert(memory(*k));
      if (!k || value != byte_at(memory(*k))) ++wrong;
    });
    for_bytes(reads_, [&](std::uintptr_t address, char) { strange += sources.contains(address) ? 0 : 1; });
    EXPECT_EQ(wrong, 0) << "bytes written";
    EXPECT_EQ(strange, 0) << "bytes read that are not written";
  }

  void expect_unpacked() const {
    std::unordered_map<std::uintptr_t, char> expected;
    int wrong = 0, strange = 0;
    const auto note = [&](std::uintptr_t address, char value) {
      const std::optional<Offset> k = packed_byte(address);
      if (k) expected[memory(*k)] = value;
      return k.has_value();
    };
    for_bytes(looks_, note);
    for_bytes(reads_, [&](std::uintptr_t address, char value) { strange += note(address, value) ? 0 : 1; });
    for_bytes(writes_, [&](std::uintptr_t address, char value) {
      const auto found = expected.find(address);
      if (found == expected.end() || found->second != value) ++wrong;
    });
    EXPECT_EQ(wrong, 0) << "bytes written";
    EXPECT_EQ(strange, 0) << "bytes read that are none of the job's";
  }

  const FarSample& all_;
  const Job& job_;
  mutable Accesses reads_, writes_, looks_;
};

/// Runs the first tile, the last one and those that are not there, and some between.
class SomeTiles {
 public:
  SomeTiles(FarLayouts& random, const FarSample& all, const Job& job) : random_(random), all_(all), job_(job) {}

  // What has no tiles, or one for all bytes.
  void operator()(std::monostate) const {}
  void operator()(const ContiguousWork&) const {}
  void operator()(const OrderedWork&) const {}

  template <class Work>
  void operator()(const Work& work) const {
    const std::uint64_t count = work.tiles();
    const auto any = static_cast<std::uint64_t>(random_.number(0, static_cast<Offset>(count) - 1));
    for (const TileRange tiles : {TileRange{0, 1}, {count - 1, count + 4}, {any, any + 1}}) {
      const TileSpace space(all_, job_);
      SequentialKernels<TileSpace>(space, tiles)(work);
      space.expect_right();
    }
  }

 private:
  FarLayouts& random_;
  const FarSample& all_;
  const Job& job_;
};

TEST(FarTiles, MoveWhatTheirJobHasThere) {
  FarLayouts random(random_seed());
  const auto memory = std::make_shared<HostDescriptors>();
  std::map<std::size_t, int> launches;
  for (int i = 0; i < 300; ++i) {
    const bool is_rows = i % 2 == 0;
    const FarSample once = is_rows ? random.many_rows() : random.next();
    const layout::Mode outer = is_rows ? layout::Mode{1, 0} : random.outer(once);
    if (outer.count == 0) continue;
    const FarSample all = repeated(once, outer.count, outer.stride);
    const Offset longest = is_rows ? all.size() - random.number(0, 100) : random.magnitude(41);
    const Offset length = std::min(longest, all.size()), begin = random.number(0, all.size() - length);
    for (const auto& [name, forced] : named_regimes) {
      DescriptorCache cache(memory, 1 << 20, forced);
      Planner planner(cache);
      for (const auto direction : {Direction::pack, Direction::unpack}) {
        SCOPED_TRACE("sample " + std::to_string(i) + " " + std::string(name) + ", bytes " + std::to_string(begin) +
                     " to " + std::to_string(begin + length) + " of " + std::to_string(all.size()));
        const auto skew = static_cast<std::uintptr_t>(random.one_in(4) ? random.number(0, 15) : 0);
        const Job job{once.layout.get(),
                      outer,
                      begin,
                      begin + length,
                      direction,
                      reinterpret_cast<void*>((std::uintptr_t{1} << 60) + skew),
                      reinterpret_cast<void*>((std::uintptr_t{1} << 61) + static_cast<std::uintptr_t>(begin % 16))};
        const auto planned = planner.plan(job, 0);
        ++launches[planned.launch.index()];
        std::visit(SomeTiles(random, all, job), planned.launch);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  for (const Launch& usual : {Launch(NestWork<std::uint32_t>{}), Launch(NestWork<std::uint64_t>{}),
                              Launch(ShiftedWork{}), Launch(SectorsWork{}), Launch(TreeWork{})}) {
    EXPECT_GT(launches[usual.index()], 0) << "kind " << usual.index();
  }
}

/// A part at the beginning has few tiles. A shape stands for the list: such a one's descriptor fills a machine.
TEST(FarTiles, OfAListThatHasMoreThan32BitsCountAreATrees) {
  const LayoutPointer list = layout::segments(std::vector<layout::Segment>{{0, 8}, {24, 16}, {56, 8}, {72, 24}});
  DescriptorCache cache(std::make_shared<HostDescriptors>(), 1 << 20, Regime::segments);
  const auto descriptor = cache.find(*list, 0);
  ASSERT_NE(descriptor, nullptr);
  Shape shape = shape_of(descriptor->described(*list), {1, 0}, descriptor->alignment_bits());
  const Job job = job_of(list, {1, 0}, 0, 32, Direction::pack);
  EXPECT_TRUE(std::holds_alternative<SegmentsWork<NarrowRun>>(prepare(job, shape, descriptor.get(), Regime::segments)));
  shape.list_size = Offset{1} << 50;
  EXPECT_TRUE(std::holds_alternative<TreeWork>(prepare(job, shape, descriptor.get(), Regime::segments)));
}

}  // namespace
}  // namespace gapless::tests

// Runs jobs' kernels on the CPU, in memory that is watched, and compares with plain lists of offsets.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host_descriptors.hpp"
#include "pack/gpu/batch/resident_share.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "sequential_kernels.hpp"

namespace gapless::tests {

using namespace pack::gpu;
using layout::Layout;
using layout::Mode;
using pack::Direction;
using pack::Job;

/// Memory that kernel bodies run on, watched: every access must be aligned and lie inside, every byte of the
/// destination is counted.
class WatchedSpace {
 public:
  WatchedSpace(std::span<const char> source, std::span<char> destination)
      : source_(source), destination_(destination), written_(destination.size()) {}

  template <class T>
  T* at(std::uintptr_t address) const {
    static std::remove_const_t<T> nowhere{};
    EXPECT_EQ(address % alignof(T), 0u);
    if constexpr (std::is_const_v<T>) {
      const auto begin = reinterpret_cast<std::uintptr_t>(source_.data());
      const bool inside = address >= begin && address + sizeof(T) <= begin + source_.size();
      EXPECT_TRUE(inside) << "reads outside of the source";
      return inside ? reinterpret_cast<T*>(address) : &nowhere;
    } else {
      const auto begin = reinterpret_cast<std::uintptr_t>(destination_.data());
      const bool inside = address >= begin && address + sizeof(T) <= begin + destination_.size();
      EXPECT_TRUE(inside) << "writes outside of the destination";
      if (!inside) return &nowhere;
      for (std::size_t i = 0; i < sizeof(T); ++i) ++written_[address - begin + i];
      return reinterpret_cast<T*>(address);
    }
  }

  /// Precondition of kernels: the word holds a byte of the layout, so it is no farther away than the guard zone.
  std::uint64_t word_around(std::uintptr_t address) const { return *at<const std::uint64_t>(address); }

  int written(std::size_t position) const { return written_[position]; }

 private:
  std::span<const char> source_;
  std::span<char> destination_;
  mutable std::vector<int> written_;
};

/// Runs the bodies of a launch on the CPU.
struct Interpreter {
  const WatchedSpace& space;

  void operator()(std::monostate) const {}
  void operator()(const ContiguousWork& work) const {
    for (std::uint64_t i = 0; i < work.bytes; ++i) {
      *space.at<char>((work.unpack ? work.memory : work.packed) + i) =
          *space.at<const char>((work.unpack ? work.packed : work.memory) + i);
    }
  }
  template <class Work>
  void operator()(const Work& work) const {
    SequentialKernels<WatchedSpace>{space}(work);
  }
};

/// A job on memory of its own, with a guard zone on either side of both buffers.
class Exercise {
 public:
  static constexpr Offset guard = 64;

  /// The layout's offset 0 lies at an address that is `memory_skew` modulo 16, packed byte `begin` at `packed_skew`.
  Exercise(const Layout& layout, const std::vector<Offset>& map, Mode outer, Offset begin, Offset end,
           Offset memory_skew, Offset packed_skew)
      : map_(map), begin_(begin), end_(end) {
    low_ = map.empty() ? 0 : *std::min_element(map.begin(), map.end());
    const Offset high = map.empty() ? 0 : *std::max_element(map.begin(), map.end()) + 1;
    memory_.resize(static_cast<std::size_t>((high - low_) / 16 * 16 + 16 + 3 * guard) / 16);
    packed_.resize(static_cast<std::size_t>((end - begin) / 16 * 16 + 16 + 3 * guard) / 16);
    origin_ = guard - low_ + ((low_ + memory_skew) % 16 + 16) % 16;
    packed_origin_ = guard + packed_skew;
    job_ = {&layout, outer, begin, end, Direction::pack, bytes(memory_) + origin_, bytes(packed_) + packed_origin_};
  }

  Job job(Direction direction) {
    job_.direction = direction;
    return job_;
  }

  void expect_moved_once(const Launch& launch, Direction direction, bool may_repeat) {
    expect_to_move_once([&](const WatchedSpace& space) { std::visit(Interpreter{space}, launch); }, direction,
                        may_repeat);
  }

  /// For what moves the job's bytes in the space it is called with.
  template <class Move>
  void expect_to_move_once(const Move& move, Direction direction, bool may_repeat) {
    fill(memory_, 1);
    fill(packed_, 101);
    const auto memory_before = memory_, packed_before = packed_;
    auto& source = direction == Direction::pack ? memory_ : packed_;
    auto& destination = direction == Direction::pack ? packed_ : memory_;
    const WatchedSpace space({bytes(source), source.size() * 16}, {bytes(destination), destination.size() * 16});
    move(space);
    auto expected = direction == Direction::pack ? packed_before : memory_before;
    std::vector<int> writes(destination.size() * 16);
    for (Offset k = begin_; k < end_; ++k) {
      const Offset memory = origin_ + map_[static_cast<std::size_t>(k)], packed = packed_origin_ + k - begin_;
      const Offset to = direction == Direction::pack ? packed : memory;
      const Offset from = direction == Direction::pack ? memory : packed;
      bytes(expected)[to] = (direction == Direction::pack ? bytes(memory_) : bytes(packed_))[from];
      ++writes[static_cast<std::size_t>(to)];
    }
    ASSERT_EQ(std::memcmp(expected.data(), destination.data(), expected.size() * 16), 0);
    for (std::size_t i = 0; i < writes.size() && !may_repeat; ++i) ASSERT_EQ(space.written(i), writes[i]) << i;
  }

 private:
  using Bytes = std::vector<Word16>;

  static char* bytes(Bytes& of) { return reinterpret_cast<char*>(of.data()); }
  static void fill(Bytes& of, unsigned seed) {
    for (std::size_t i = 0; i < of.size() * 16; ++i) bytes(of)[i] = static_cast<char>((i + seed) * 2654435761u >> 13);
  }

  const std::vector<Offset>& map_;
  Offset begin_, end_, low_ = 0, origin_ = 0, packed_origin_ = 0;
  Bytes memory_, packed_;
  Job job_{};
};

inline std::string name_of(const std::optional<Regime>& regime) {
  return regime ? "regime " + std::to_string(static_cast<int>(*regime)) : "chosen";
}

/// The launch, and as it would be for a job so large that its tiles are larger.
inline std::vector<Launch> small_and_large(const Launch& launch) {
  std::vector<Launch> both{launch};
  const auto add_nests = [&](const auto& nest) {
    for (const int words : {2, 4}) {
      auto large = nest;
      large.words_per_thread = words;
      both.emplace_back(large);
    }
  };
  if (const auto* nest = std::get_if<NestWork<std::uint32_t>>(&launch)) add_nests(*nest);
  if (const auto* nest = std::get_if<NestWork<std::uint64_t>>(&launch)) add_nests(*nest);
  if (const auto* sectors = std::get_if<SectorsWork>(&launch); sectors != nullptr && sectors->unpack) {
    SectorsWork large = *sectors;
    large.words_per_thread = SectorsWork::most_words_per_thread(std::size_t{1} << large.shift);
    both.emplace_back(large);
  }
  if (const auto* shifted = std::get_if<ShiftedWork>(&launch)) {
    ShiftedWork large = *shifted;
    large.words_per_thread = ShiftedWork::most_words_per_thread(sizeof(std::uint64_t));
    both.emplace_back(large);
  }
  if (const auto* transpose = std::get_if<TransposeWork>(&launch);
      transpose != nullptr && transpose->word_shift() < 2) {
    TransposeWork large = *transpose;
    large.side = large_side;
    large.inner_tiles = make_divider((large.inner + large_side - 1) / large_side);
    large.across_tiles = make_divider((large.across + large_side - 1) / large_side);
    both.emplace_back(large);
  }
  return both;
}

/// In tiles of so many words a thread.
template <int words_per_thread>
void run_small_nest(const SmallNest& nest, const WatchedSpace& space) {
  constexpr std::uint64_t words = words_per_thread * threads_per_block;
  const SequentialBlock<WatchedSpace> block{space};
  for (std::uint64_t tile = 0; tile == 0 || tile * words < nest.word_count; ++tile) {
    run_small_tile<words_per_thread>(nest, tile, block);
  }
}

/// In shares of that many blocks at most.
template <std::uint32_t most_blocks>
void run_small_nest_in_shares(const SmallNest& nest, const WatchedSpace& space) {
  const ResidentShares shares = shares_of(nest.word_count, most_blocks);
  for (std::uint32_t i = 0; i < shares.blocks; ++i) {
    run_share(nest, shares.words, i, SequentialBlock<WatchedSpace>{space});
  }
}

/// Both directions of one job, each regime forced in turn; counts the launches by kind and by word.
class EveryRegime {
 public:
  static constexpr std::array<std::optional<Regime>, 7> regimes{
      std::nullopt,        Regime::shifted,  Regime::sectors, Regime::transpose,
      Regime::interleaved, Regime::segments, Regime::tree};

  void run(Exercise& exercise) {
    for (std::size_t r = 0; r < regimes.size(); ++r) {
      for (const auto direction : {Direction::pack, Direction::unpack}) {
        const auto planned = planners_[r].plan(exercise.job(direction), 0);
        const bool ordered = std::holds_alternative<OrderedWork>(planned.launch);
        for (const Launch& launch : small_and_large(planned.launch)) {
          ASSERT_NO_FATAL_FAILURE(exercise.expect_moved_once(launch, direction, ordered)) << name_of(regimes[r]);
        }
        const std::optional<FusedWork> fused_work = fused(planned.launch);
        if (const auto* small = fused_work ? std::get_if<SmallNest>(&*fused_work) : nullptr) {
          for (const auto& run :
               {run_small_nest<fused_words_per_thread>, run_small_nest_in_shares<2>, run_small_nest_in_shares<16>}) {
            const auto move = [&](const WatchedSpace& space) { run(*small, space); };
            ASSERT_NO_FATAL_FAILURE(exercise.expect_to_move_once(move, direction, false)) << "a small nest";
          }
        }
        ++launches[planned.launch.index()];
        const auto note = [&](const auto& work) {
          if constexpr (requires { work.word_shift(); }) ++word_shifts[planned.launch.index()][work.word_shift()];
        };
        std::visit(note, planned.launch);
      }
    }
  }

  std::map<std::size_t, int> launches;
  std::map<std::size_t, std::map<int, int>> word_shifts;

 private:
  std::shared_ptr<HostDescriptors> memory_ = std::make_shared<HostDescriptors>();
  template <std::size_t... r>
  static std::array<DescriptorCache, sizeof...(r)> caches(const std::shared_ptr<HostDescriptors>& memory,
                                                          std::index_sequence<r...>) {
    return {DescriptorCache{memory, 1 << 20, regimes[r]}...};
  }
  template <std::size_t... r>
  static std::array<Planner, sizeof...(r)> planners(std::array<DescriptorCache, sizeof...(r)>& caches,
                                                    std::index_sequence<r...>) {
    return {Planner{caches[r]}...};
  }
  using Each = std::make_index_sequence<regimes.size()>;
  std::array<DescriptorCache, regimes.size()> caches_ = caches(memory_, Each{});
  std::array<Planner, regimes.size()> planners_ = planners(caches_, Each{});
};

}  // namespace gapless::tests

// Runs jobs' kernels on the CPU, in memory that is watched, and compares with where their bytes lie.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

/// Where bytes at addresses of a test's choice, however far apart, lie in one buffer: in pieces, with a guard zone on
/// either side of each.
class Pieces {
 public:
  static constexpr std::size_t outside = ~std::size_t{0};

  explicit Pieces(std::vector<std::uintptr_t> addresses) {
    constexpr std::uintptr_t guard = 64, line = sizeof(Word16);
    std::sort(addresses.begin(), addresses.end());
    for (const std::uintptr_t address : addresses) {
      const std::uintptr_t begin = (address - guard) / line * line, end = (address + guard) / line * line + line;
      if (pieces_.empty() || pieces_.back().end < begin) pieces_.push_back({begin, end, is_named_.size()});
      Piece& piece = pieces_.back();
      piece.end = end;
      is_named_.resize(piece.position + (end - piece.begin));
      is_named_[piece.position + (address - piece.begin)] = 1;
    }
  }

  std::size_t size() const { return is_named_.size(); }
  /// `outside` where not all of the bytes are in the buffer.
  std::size_t find(std::uintptr_t address, std::size_t count) const {
    if (!has(last_, address) && !look_for(address)) return outside;
    const Piece& piece = pieces_[last_];
    return address + count <= piece.end ? piece.position + (address - piece.begin) : outside;
  }
  /// How many of the bytes there were asked for.
  std::size_t named(std::size_t position, std::size_t count) const {
    std::size_t named = 0;
    for (std::size_t i = position; i < position + count; ++i) named += is_named_[i];
    return named;
  }

 private:
  struct Piece {
    std::uintptr_t begin, end;
    std::size_t position;
  };

  bool has(std::size_t piece, std::uintptr_t address) const {
    return piece < pieces_.size() && pieces_[piece].begin <= address && address < pieces_[piece].end;
  }
  bool look_for(std::uintptr_t address) const {
    const auto after = std::ranges::upper_bound(pieces_, address, {}, &Piece::begin);
    last_ = static_cast<std::size_t>(after - pieces_.begin()) - 1;
    return has(last_, address);
  }

  std::vector<Piece> pieces_;            // by address
  std::vector<unsigned char> is_named_;  // by position
  mutable std::size_t last_ = 0;
};

/// The bytes of pieces.
class PieceBytes {
 public:
  explicit PieceBytes(const Pieces& pieces) : words_(pieces.size() / sizeof(Word16)) {}

  char* data() { return reinterpret_cast<char*>(words_.data()); }
  std::size_t size() const { return words_.size() * sizeof(Word16); }
  void fill(unsigned seed) {
    for (std::size_t i = 0; i < size(); ++i) data()[i] = static_cast<char>((i + seed) * 2654435761u >> 13);
  }
  bool is_same(PieceBytes& other) { return std::equal(data(), data() + size(), other.data(), other.data() + size()); }

 private:
  std::vector<Word16> words_;
};

/// Memory that kernel bodies run on, watched: every access must be aligned, only bytes that are asked for are read, and
/// every byte that is written is counted.
class WatchedSpace {
 public:
  WatchedSpace(const Pieces& from, PieceBytes& source, const Pieces& to, PieceBytes& destination)
      : from_(from), to_(to), source_(source), destination_(destination), written_(to.size()) {}

  template <class T>
  T* at(std::uintptr_t address) const {
    static std::remove_const_t<T> nowhere{};
    constexpr bool reads = std::is_const_v<T>;
    const std::size_t position = (reads ? from_ : to_).find(address, sizeof(T));
    const bool is_right = address % alignof(T) == 0 && position != Pieces::outside &&
                          (!reads || from_.named(position, sizeof(T)) == sizeof(T));
    if (!is_right) {
      ADD_FAILURE() << (reads ? "reads " : "writes ") << sizeof(T) << " bytes that it should not";
      return &nowhere;
    }
    if constexpr (!reads) {
      for (std::size_t i = 0; i < sizeof(T); ++i) ++written_[position + i];
    }
    return reinterpret_cast<T*>((reads ? source_ : destination_).data() + position);
  }

  /// Precondition of kernels: the word holds a byte of the layout.
  std::uint64_t word_around(std::uintptr_t address) const {
    std::uint64_t word = 0;
    const std::size_t position = from_.find(address, sizeof word);
    if (address % sizeof word != 0 || position == Pieces::outside || from_.named(position, sizeof word) == 0) {
      ADD_FAILURE() << "reads a word that holds none of the bytes";
    } else {
      std::memcpy(&word, source_.data() + position, sizeof word);
    }
    return word;
  }

  /// How often each byte has been written, by position.
  const std::vector<int>& written() const { return written_; }

 private:
  const Pieces &from_, &to_;
  PieceBytes &source_, &destination_;
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

/// Bytes in the order in which they are moved, and the pieces that they lie in.
struct MovedBytes {
  explicit MovedBytes(std::vector<std::uintptr_t> addresses) : at(std::move(addresses)), pieces(at) {}

  std::vector<std::uintptr_t> at;
  Pieces pieces;
};

/// For what moves the bytes in the space it is called with: each that is written is the one it should be, and is
/// written as often as it is named.
template <class Move>
void expect_to_move_once(const MovedBytes& from, const MovedBytes& to, const Move& move, bool may_repeat = false) {
  PieceBytes source(from.pieces), destination(to.pieces);
  source.fill(1);
  destination.fill(101);
  PieceBytes expected = destination;
  std::vector<int> writes(to.pieces.size());
  for (std::size_t k = 0; k < from.at.size(); ++k) {
    const std::size_t position = to.pieces.find(to.at[k], 1);
    expected.data()[position] = source.data()[from.pieces.find(from.at[k], 1)];
    ++writes[position];
  }
  const WatchedSpace space(from.pieces, source, to.pieces, destination);
  move(space);
  ASSERT_TRUE(destination.is_same(expected));
  ASSERT_TRUE(may_repeat || space.written() == writes) << "a byte is written more than once, or another is";
}

/// A job on memory of its own, of which no more is there than the job's bytes and what is beside them.
class Exercise {
 public:
  /// Where packed byte k lies.
  using Map = std::function<Offset(Offset k)>;

  /// The layout's offset 0 lies at an address that is `memory_skew` modulo 16, packed byte `begin` at `packed_skew`.
  Exercise(const Layout& layout, const Map& map, Mode outer, Offset begin, Offset end, Offset memory_skew,
           Offset packed_skew)
      : job_(job_of(layout, outer, begin, end, memory_skew, packed_skew)),
        memory_(addresses(job_.memory, map)),
        packed_(addresses(job_.packed, [begin](Offset k) { return k - begin; })) {}
  Exercise(const Layout& layout, const std::vector<Offset>& map, Mode outer, Offset begin, Offset end,
           Offset memory_skew, Offset packed_skew)
      : Exercise(
            layout, [&map](Offset k) { return map[static_cast<std::size_t>(k)]; }, outer, begin, end, memory_skew,
            packed_skew) {}

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
    const bool packs = direction == Direction::pack;
    tests::expect_to_move_once(packs ? memory_ : packed_, packs ? packed_ : memory_, move, may_repeat);
  }

 private:
  static Job job_of(const Layout& layout, Mode outer, Offset begin, Offset end, Offset memory_skew,
                    Offset packed_skew) {
    constexpr Offset memory = Offset{1} << 60, packed = Offset{1} << 61;
    return {&layout,
            outer,
            begin,
            end,
            Direction::pack,
            reinterpret_cast<void*>(memory + memory_skew),
            reinterpret_cast<void*>(packed + packed_skew)};
  }

  template <class OffsetOf>
  std::vector<std::uintptr_t> addresses(const void* origin, const OffsetOf& offset_of) const {
    std::vector<std::uintptr_t> all;
    for (Offset k = job_.begin; k < job_.end; ++k)
      all.push_back(reinterpret_cast<std::uintptr_t>(origin) + static_cast<std::uintptr_t>(offset_of(k)));
    return all;
  }

  Job job_;
  MovedBytes memory_, packed_;
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

/// As one of a batch, of which only the bytes that are worth carrying are there.
inline void run_fused(const FusedWork& work, const WatchedSpace& space) {
  const auto bytes = bytes_of(work);
  std::vector<std::uint64_t> carried(sizeof(FusedWork) / sizeof(std::uint64_t) + 1, ~std::uint64_t{0});
  std::memcpy(carried.data(), bytes.data(), bytes.size());
  for (std::uint64_t tile = 0; tile < tiles_of(work); ++tile) {
    run_fused_tile(tag_of(work), reinterpret_cast<const std::byte*>(carried.data()), tile,
                   SequentialBlock<WatchedSpace>{space});
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
        if (fused_work) {
          const auto move = [&](const WatchedSpace& space) { run_fused(*fused_work, space); };
          ASSERT_NO_FATAL_FAILURE(exercise.expect_to_move_once(move, direction, ordered)) << "one of a batch";
        }
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

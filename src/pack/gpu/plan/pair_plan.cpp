// Each side is planned as a pack would be, with a packed address made up to ask for the word that suits both.
#include "pack/gpu/plan/pair_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/hash.hpp"
#include "base/per_thread.hpp"
#include "layout/algebra/facts.hpp"
#include "layout/algebra/refine.hpp"
#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

constexpr Offset limit32 = Offset{1} << 31;

// ---- One nest for both ----

/// What a thread has cached of a pair of layouts.
struct CachedPair {
  PairJob job{};
  std::weak_ptr<const Layout> source_alive, destination_alive;
  std::optional<layout::PairedStrided> common;
  bool injective = false;

  bool is_for(const PairJob& wanted) const noexcept {
    return job.source == wanted.source && job.destination == wanted.destination &&
           job.source_outer == wanted.source_outer && job.destination_outer == wanted.destination_outer &&
           !source_alive.expired() && !destination_alive.expired();
  }
};

const CachedPair& cached_pair(const PairJob& job) {
  // A halo has 26 pairs, which should seldom be in each other's way.
  constexpr unsigned set_bits = 7;
  using Set = std::array<CachedPair, 2>;
  const std::uintptr_t both =
      reinterpret_cast<std::uintptr_t>(job.source) + 3 * reinterpret_cast<std::uintptr_t>(job.destination);
  Set& set = of_this_thread<std::array<Set, std::size_t{1} << set_bits>>()[slot_of(both, set_bits)];
  for (const CachedPair& cached : set) {
    if (cached.is_for(job)) return cached;
  }
  set[1] = std::move(set[0]);
  CachedPair& cached = set[0];
  cached = {};
  cached.injective = layout::is_injective(*job.destination, job.destination_outer);
  cached.common = layout::refine(*job.source, job.source_outer, *job.destination, job.destination_outer);
  cached.source_alive = job.source->weak_from_this();
  cached.destination_alive = job.destination->weak_from_this();
  cached.job = job;
  return cached;
}

PairPlace origin_of(const PairJob& job, Offset source_base, Offset destination_base) {
  return {reinterpret_cast<std::uintptr_t>(job.source_memory) + unsigned_(source_base),
          reinterpret_cast<std::uintptr_t>(job.destination_memory) + unsigned_(destination_base)};
}

bool fits_32_bits(const layout::PairedStrided& common, Offset words) {
  const auto fits = [](Offset stride) { return stride < limit32 && stride >= -limit32; };
  return words < limit32 && std::all_of(common.modes.begin(), common.modes.end(), [&](const layout::PairedMode& mode) {
           return fits(mode.source_stride) && fits(mode.destination_stride);
         });
}

/// monostate if the pair is none, or too large.
PairLaunch refined(const PairJob& job, const layout::PairedStrided& common) {
  const PairPlace origin = origin_of(job, common.source_base, common.destination_base);
  const Offset size = job.source->size * job.source_outer.count;
  if (common.modes.empty()) return ContiguousWork{origin.source, origin.destination, unsigned_(size), false};
  std::uint64_t bits = origin.source | origin.destination | unsigned_(common.length);
  for (const auto& mode : common.modes) bits |= unsigned_(mode.source_stride) | unsigned_(mode.destination_stride);
  const int shift = std::min(largest_word_shift, std::countr_zero(bits));
  if (common.modes.size() + 1 > max_levels || !fits_32_bits(common, size >> shift)) return {};
  const std::uint64_t words = unsigned_(size >> shift);
  PairWork<RefinedPair> work{words, shift, pair_words_per_thread(words), {origin, 1, {}}};
  RefinedPair& pair = work.places;
  pair.levels[0] = {make_divider(static_cast<std::uint32_t>(common.length >> shift)), 1 << shift, 1 << shift};
  for (const auto& mode : common.modes) {
    pair.levels[pair.level_count++] = {make_divider(static_cast<std::uint32_t>(mode.count)),
                                       static_cast<std::int32_t>(mode.source_stride),
                                       static_cast<std::int32_t>(mode.destination_stride)};
  }
  return work;
}

// ---- Two sides ----

struct Side {
  Planner::Planned planned;
  std::uintptr_t memory = 0;
  int word_shift = 0;
};

/// The side's work for words of at most 2^word_shift bytes.
Side plan_side(Planner& planner, const Layout& layout, Mode outer, const void* memory, int word_shift, int device) {
  // Nothing is packed: only the alignment of this address counts.
  void* const packed = reinterpret_cast<void*>(std::uintptr_t{1} << word_shift);
  const Job job{&layout, outer, 0, layout.size * outer.count, Direction::pack, const_cast<void*>(memory), packed};
  Side side{planner.plan(job, device, Regime::nest), 0, 0};
  std::visit(
      [&](const auto& work) {
        if constexpr (requires { work.range.memory; }) {
          side.memory = work.range.memory;
          side.word_shift = work.word_shift();
        }
      },
      side.planned.launch);
  if (const auto* work = std::get_if<ContiguousWork>(&side.planned.launch)) {
    side.memory = work->memory;
    side.word_shift = std::min(word_shift, std::countr_zero(work->memory | work->bytes));
  }
  return side;
}

std::optional<Nest<std::uint32_t>> narrow_nest(const Side& side, std::uint64_t words) {
  if (const auto* work = std::get_if<NestWork<std::uint32_t>>(&side.planned.launch)) return work->nest;
  const bool is_row = std::holds_alternative<ContiguousWork>(side.planned.launch);
  if (is_row && words < unsigned_(limit32)) return row_nest<std::uint32_t>(side.word_shift);
  return {};
}

Nest<std::uint64_t> widened(const Nest<std::uint32_t>& narrow) {
  Nest<std::uint64_t> wide{};
  wide.table = narrow.table;
  wide.level_count = narrow.level_count;
  wide.table_level = narrow.table_level;
  wide.word_shift = narrow.word_shift;
  for (int i = 0; i < narrow.level_count; ++i) {
    wide.levels[i] = {make_divider(std::uint64_t{narrow.levels[i].count.divisor}), narrow.levels[i].stride};
  }
  return wide;
}

AnySide any_side(const Side& side) {
  AnySide any{};
  std::visit(
      [&](const auto& work) {
        if constexpr (requires { work.tree; }) {
          any.is_tree = true;
          any.tree = work.tree;
        } else if constexpr (std::is_same_v<decltype(work), const NestWork<std::uint64_t>&>) {
          any.nest = work.nest;
        } else if constexpr (std::is_same_v<decltype(work), const NestWork<std::uint32_t>&>) {
          any.nest = widened(work.nest);
        } else {
          any.nest = row_nest<std::uint64_t>(side.word_shift);
        }
      },
      side.planned.launch);
  return any;
}

PlannedPair two_sides(Planner& planner, const PairJob& job, int device) {
  int shift = largest_word_shift;
  Side source, destination;
  // Once for each side's own word, and again where the other's is narrower.
  do {
    source = plan_side(planner, *job.source, job.source_outer, job.source_memory, shift, device);
    destination = plan_side(planner, *job.destination, job.destination_outer, job.destination_memory, shift, device);
    if (source.planned.out_of_memory || destination.planned.out_of_memory) return {{}, nullptr, nullptr, true};
    shift = std::min(source.word_shift, destination.word_shift);
  } while (source.word_shift != destination.word_shift);

  const std::uint64_t words = unsigned_(job.source->size * job.source_outer.count) >> shift;
  const PairPlace origin{source.memory, destination.memory};
  PlannedPair planned{{}, source.planned.descriptor, destination.planned.descriptor, false};
  const auto from = narrow_nest(source, words), to = narrow_nest(destination, words);
  if (from && to) {
    planned.launch = PairWork<NestPair>{words, shift, pair_words_per_thread(words), {origin, *from, *to}};
  } else {
    planned.launch = PairWork<AnyPair>{
        words, shift, pair_words_per_thread(words), {origin, any_side(source), any_side(destination)}};
  }
  return planned;
}

PlannedPair ordered(Planner& planner, const PairJob& job, int device) {
  PlannedPair planned{{}, planner.describe(*job.source, device), planner.describe(*job.destination, device), false};
  if (!planned.source || !planned.destination) return {{}, nullptr, nullptr, true};
  const auto tree = [](const Descriptor& descriptor, const Layout& layout, Mode outer) {
    return Tree{descriptor.bytes(), make_divider(unsigned_(layout.size)), outer.stride, 0};
  };
  planned.launch = OrderedPairWork{origin_of(job, 0, 0), tree(*planned.source, *job.source, job.source_outer),
                                   tree(*planned.destination, *job.destination, job.destination_outer),
                                   unsigned_(job.source->size * job.source_outer.count)};
  return planned;
}

}  // namespace

int pair_words_per_thread(std::uint64_t words) noexcept {
  constexpr std::uint64_t tile_words = most_pair_words_per_thread * threads_per_block;
  return words < model::gpu_tuning.few_pair_tiles * tile_words ? 1 : most_pair_words_per_thread;
}

PlannedPair plan_pair(Planner& planner, const PairJob& job, int device) {
  if (job.source->size * job.source_outer.count == 0) return {};
  const CachedPair& cached = cached_pair(job);
  if (!cached.injective) return ordered(planner, job, device);
  if (cached.common) {
    PairLaunch launch = refined(job, *cached.common);
    if (!std::holds_alternative<std::monostate>(launch)) return {launch, nullptr, nullptr, false};
  }
  return two_sides(planner, job, device);
}

}  // namespace gapless::pack::gpu

// Facts are gathered by one walk over the layout's description, never over its repetitions.
#include "layout/algebra/facts.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "layout/algebra/build.hpp"
#include "layout/algebra/cursor.hpp"

namespace gapless::layout {

namespace {

/// What a walk over all blocks gathers. `differences` is the bitwise or of every length and offset difference: its
/// lowest set bit is the largest power of two that divides them all.
struct Blocks {
  Offset shortest = std::numeric_limits<Offset>::max();
  Offset longest = 0;
  std::uint64_t differences = 0;

  void add_length(Offset length) {
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
    differences |= static_cast<std::uint64_t>(length);
  }
  void add_difference(Offset difference) { differences |= static_cast<std::uint64_t>(difference); }

  void gather_offsets(const OffsetTable& offsets) {
    if (!offsets.has_runs()) {
      const Offset first = offsets[0];
      offsets.with_entries([&](auto entries) {
        for (const Offset offset : entries) add_difference(offset - first);
      });
      return;
    }
    for (std::size_t i = 0; i < offsets.run_count(); ++i) {
      const OffsetRun run = offsets.run(i);
      add_difference(run.offset - offsets[0]);
      add_difference(run.stride);
    }
  }

  void gather(const Layout& layout) {
    for (const Mode& mode : layout.modes) add_difference(mode.stride);
    switch (layout.core) {
      case Core::block:
        add_length(layout.length);
        break;
      case Core::index:
        gather_offsets(layout.offsets);
        gather(*layout.child);
        break;
      case Core::segments:
        gather_offsets(layout.offsets);
        layout.ends.with_entries([&](auto ends) {
          Offset packed = 0;
          for (const Offset end : ends) {
            add_length(end - packed);
            packed = end;
          }
        });
        break;
      case Core::sum:
        for (const Part& part : layout.parts) {
          add_difference(part.layout->base - layout.parts[0].layout->base);
          gather(*part.layout);
        }
        break;
    }
  }
};

constexpr Offset cache_line = 64;

/// How many lines a stride apart a first-level cache of eight 4 KiB ways holds: few where the stride is a multiple of a
/// large power of two, so that they share sets.
Offset lines_held(Offset stride) {
  constexpr Offset way = 4096, ways = 8;
  return ways * way / std::max(std::gcd(stride, way), cache_line);
}

/// Is each block alone in its cache line, and is that line gone when a neighbour of another row comes?
bool is_large_transpose(const std::vector<Mode>& modes) {
  const auto is_short = [](const Mode& mode) { return -cache_line < mode.stride && mode.stride < cache_line; };
  return !modes.empty() && !is_short(modes[0]) && modes[0].count > lines_held(modes[0].stride) &&
         std::any_of(modes.begin() + 1, modes.end(), is_short);
}

Offset row_count(const Layout& layout) {
  const Offset repetitions = layout.size / layout.core_size;
  switch (layout.core) {
    case Core::block:
      return layout.modes.empty() || is_large_transpose(layout.modes) ? repetitions
                                                                      : repetitions / layout.modes[0].count;
    case Core::index:
      return repetitions * static_cast<Offset>(layout.offsets.size()) * row_count(*layout.child);
    case Core::segments:
      return repetitions * static_cast<Offset>(layout.offsets.size());
    case Core::sum:
      return std::accumulate(layout.parts.begin(), layout.parts.end(), Offset{0},
                             [](Offset rows, const Part& part) { return rows + row_count(*part.layout); }) *
             repetitions;
  }
  return repetitions;
}

}  // namespace

Facts facts_of(const Layout& layout) {
  Facts facts;
  if (layout.is_empty()) return facts;
  facts.size = layout.size;
  const build::Hull hull = build::hull_of(layout);
  facts.true_lower_bound = hull.begin;
  facts.true_upper_bound = hull.end;
  facts.block_count = segment_count(layout);
  facts.row_count = row_count(layout);
  Blocks blocks;
  blocks.gather(layout);
  facts.shortest_block = blocks.shortest;
  facts.longest_block = blocks.longest;
  constexpr std::uint64_t widest = 16;
  const std::uint64_t bits = blocks.differences | widest;
  facts.alignment = static_cast<Offset>(bits & (~bits + 1));
  return facts;
}

}  // namespace gapless::layout

// Whether a layout names any byte twice. Modes are shown to be free of overlap by nesting: taken from the smallest
// stride to the largest, each steps over everything inside it. Where that fails, few enough runs are compared exactly.
#include <algorithm>
#include <optional>

#include "layout/build.hpp"
#include "layout/canonical.hpp"
#include "layout/cursor.hpp"
#include "layout/facts.hpp"

namespace gapless::layout {

namespace {

using Unsigned = std::uint64_t;

Unsigned magnitude(Offset value) {
  return value < 0 ? Unsigned{0} - static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
}

/// Do repetitions of something `span` bytes long stay apart?
bool modes_nest(std::vector<Mode> modes, Offset span) {
  std::ranges::sort(modes, {}, [](const Mode& mode) { return magnitude(mode.stride); });
  auto reach = static_cast<Unsigned>(span);
  for (const Mode& mode : modes) {
    const Unsigned stride = magnitude(mode.stride);
    if (stride < reach) return false;
    Unsigned steps;
    if (__builtin_mul_overflow(static_cast<Unsigned>(mode.count - 1), stride, &steps) ||
        __builtin_add_overflow(steps, reach, &reach)) {
      return false;
    }
  }
  return true;
}

bool are_disjoint(std::vector<Segment>& runs) {
  const auto ends_before = [](const Segment& a, const Segment& b) { return a.offset + a.length <= b.offset; };
  const auto overlap = [&](const Segment& a, const Segment& b) { return !ends_before(a, b); };
  if (std::ranges::adjacent_find(runs, overlap) == runs.end()) return true;
  std::ranges::sort(runs, {}, &Segment::offset);
  return std::ranges::adjacent_find(runs, overlap) == runs.end();
}

bool core_is_injective(const Layout& layout);

/// One repetition is free of overlap and repetitions stay apart.
bool is_nested(const Layout& layout, std::vector<Mode> modes) {
  if (!core_is_injective(layout)) return false;
  Layout core = layout;
  core.modes.clear();
  core.size = core.core_size;
  const build::Hull hull = build::hull_of(core);
  return modes_nest(std::move(modes), hull.end - hull.begin);
}

bool core_is_injective(const Layout& layout) {
  std::vector<Segment> runs;
  switch (layout.core) {
    case Core::block:
      return true;
    case Core::index: {
      if (!is_nested(*layout.child, layout.child->modes)) return false;
      const build::Hull child = build::hull_of(*layout.child);
      runs.reserve(layout.offsets.size());
      for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
        runs.push_back({layout.offsets[i] + child.begin, child.end - child.begin});
      }
      return are_disjoint(runs);
    }
    case Core::segments: {
      Offset packed = 0;
      runs.reserve(layout.offsets.size());
      for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
        runs.push_back({layout.offsets[i], layout.ends[i] - packed});
        packed = layout.ends[i];
      }
      return are_disjoint(runs);
    }
    case Core::sum:
      for (const Part& part : layout.parts) {
        if (!is_nested(*part.layout, part.layout->modes)) return false;
        const build::Hull hull = build::hull_of(*part.layout);
        runs.push_back({hull.begin, hull.end - hull.begin});
      }
      return are_disjoint(runs);
  }
  return false;
}

/// By listing every run, if there are few enough.
std::optional<bool> compare_runs(const Layout& layout, Mode outer) {
  constexpr auto most = static_cast<Offset>(recognition_budget);
  const Offset runs = segment_count(layout);
  if (runs > most || outer.count > most / runs) return std::nullopt;
  Layout repeated = layout;
  build::repeat_in_place(repeated, outer.count, outer.stride);
  build::hull_of(repeated);
  std::vector<Segment> list;
  build::append_runs(repeated, 0, list, recognition_budget);
  return are_disjoint(list);
}

}  // namespace

bool is_injective(const Layout& layout, Mode outer) {
  if (layout.is_empty() || outer.count == 0) return true;
  std::vector<Mode> modes = layout.modes;
  if (outer.count > 1) modes.push_back(outer);
  if (is_nested(layout, std::move(modes))) return true;
  return compare_runs(layout, outer).value_or(false);
}

}  // namespace gapless::layout

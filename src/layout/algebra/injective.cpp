// Whether a layout names any byte twice. Three arguments are tried, the first that holds decides:
//   nesting   taken from the smallest stride to the largest, each mode steps over everything inside it
//   strands   every entry of a list or sum, followed through all modes, keeps clear of the others: by where it lies, or
//   by
//             its residue modulo all strides (the x of every particle, then the y, then the z)
//   listing   few enough runs are compared exactly
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "layout/algebra/build.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/algebra/facts.hpp"

namespace gapless::layout {

namespace {

using Unsigned = std::uint64_t;

Unsigned magnitude(Offset value) {
  return value < 0 ? Unsigned{0} - static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
}

/// Do repetitions of something `span` bytes long stay apart? Precondition: they reach over no more than 63 bits.
bool modes_nest(std::vector<Mode> modes, Offset span) {
  std::ranges::sort(modes, {}, [](const Mode& mode) { return magnitude(mode.stride); });
  auto reach = static_cast<Unsigned>(span);
  for (const Mode& mode : modes) {
    const Unsigned stride = magnitude(mode.stride);
    if (stride < reach) return false;
    reach += static_cast<Unsigned>(mode.count - 1) * stride;
  }
  return true;
}

/// One bit for every `cell` bytes that the runs lie in. Precondition: `cell` divides all lengths and distances.
template <class List>
bool are_disjoint_cells(const List& runs, Offset begin, Offset cells, Offset cell) {
  std::vector<bool> is_taken(static_cast<std::size_t>(cells));
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const Segment run = runs[k];
    const Offset first = (run.offset - begin) / cell;
    for (Offset i = first; i < first + run.length / cell; ++i) {
      if (is_taken[static_cast<std::size_t>(i)]) return false;
      is_taken[static_cast<std::size_t>(i)] = true;
    }
  }
  return true;
}

/// Whether the runs are disjoint, if that can be told without sorting them. List: size() and operator[].
template <class List>
std::optional<bool> are_disjoint_as_listed(const List& runs) {
  if (runs.size() == 0) return true;
  const Segment first = runs[0];
  Offset begin = first.offset, end = first.offset + first.length;
  auto differences = static_cast<Unsigned>(first.length);
  bool is_ascending = true;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Segment run = runs[i];
    is_ascending = is_ascending && run.offset >= end;
    begin = std::min(begin, run.offset);
    end = std::max(end, run.offset + run.length);
    differences |= static_cast<Unsigned>(run.length) | static_cast<Unsigned>(run.offset - first.offset);
  }
  if (is_ascending) return true;
  const auto cell = static_cast<Offset>(differences & (~differences + 1));
  // Where the runs lie densely, marking them in a bit map is much faster than sorting them.
  const Offset cells = (end - begin) / cell;
  if (cells / 64 > static_cast<Offset>(runs.size())) return std::nullopt;
  return are_disjoint_cells(runs, begin, cells, cell);
}

bool are_disjoint(std::vector<Segment>& runs) {
  if (const std::optional<bool> known = are_disjoint_as_listed(runs)) return *known;
  const auto overlap = [](const Segment& a, const Segment& b) { return a.offset + a.length > b.offset; };
  std::ranges::sort(runs, {}, &Segment::offset);
  return std::ranges::adjacent_find(runs, overlap) == runs.end();
}

bool nests(const Layout& layout);
bool strands_stay_apart(const Layout& layout);

bool is_shown_injective(const Layout& layout) { return nests(layout) || strands_stay_apart(layout); }

Segment as_segment(const build::Hull& hull) { return {hull.begin, hull.end - hull.begin}; }

/// Longest list whose entries are compared one by one although it is stored in runs.
constexpr std::size_t most_listed = std::size_t{1} << 22;

bool is_listed(const OffsetTable& offsets) { return !offsets.has_runs() || offsets.size() <= most_listed; }

/// Where each child of an index core lies.
std::optional<std::vector<Segment>> listed_entries(const Layout& layout) {
  if (!is_shown_injective(*layout.child)) return std::nullopt;
  const Segment child = as_segment(build::hull_of(*layout.child));
  const OffsetTable offsets = layout.offsets.expanded();
  std::vector<Segment> entries;
  entries.reserve(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) entries.push_back({offsets[i] + child.offset, child.length});
  return entries;
}

/// Where each run of the list lies.
std::optional<std::vector<Segment>> runs_as_entries(const Layout& layout) {
  const Segment child = as_segment(build::hull_of(*layout.child));
  std::vector<Segment> entries;
  entries.reserve(layout.offsets.run_count());
  Offset longest = 1;
  for (std::size_t i = 0; i < layout.offsets.run_count(); ++i) {
    const OffsetRun run = layout.offsets.run(i);
    const Offset reach = (run.count - 1) * run.stride;
    entries.push_back({run.offset + std::min(reach, Offset{0}) + child.offset, child.length + std::abs(reach)});
    longest = std::max(longest, run.count);
  }
  Layout longest_run = *layout.child;
  build::repeat_in_place(longest_run, longest, layout.offsets.run(0).stride);
  return is_shown_injective(longest_run) ? std::optional(std::move(entries)) : std::nullopt;
}

/// Where each entry of the core lies; nothing if an entry overlaps itself. Precondition: what is stored in runs may be
/// listed.
std::optional<std::vector<Segment>> entries_of(const Layout& layout) {
  std::vector<Segment> entries;
  switch (layout.core) {
    case Core::block:
      entries.push_back({0, layout.length});
      break;
    case Core::index:
      return listed_entries(layout);
    case Core::segments: {
      Offset packed = 0;
      entries.reserve(layout.offsets.size());
      for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
        entries.push_back({layout.offsets[i], layout.ends[i] - packed});
        packed = layout.ends[i];
      }
      break;
    }
    case Core::sum:
      for (const Part& part : layout.parts) {
        if (!is_shown_injective(*part.layout)) return std::nullopt;
        entries.push_back(as_segment(build::hull_of(*part.layout)));
      }
      break;
  }
  return entries;
}

/// The entries of a long list, read from its tables.
template <class Offsets, class LengthOf>
struct TableRuns {
  Offsets offsets;
  LengthOf length_of;
  std::size_t size() const { return offsets.size(); }
  Segment operator[](std::size_t i) const { return {offsets[i], length_of(i)}; }
};

/// Whether the entries of a list core are disjoint, if the tables tell without being copied.
std::optional<bool> entries_are_disjoint_as_listed(const Layout& layout) {
  if (layout.core == Core::index && !layout.offsets.has_runs()) {
    if (!is_shown_injective(*layout.child)) return false;
    const Segment child = as_segment(build::hull_of(*layout.child));
    return layout.offsets.with_entries([&](auto offsets) {
      return are_disjoint_as_listed(TableRuns{offsets, [&](std::size_t) { return child.length; }});
    });
  }
  if (layout.core != Core::segments) return std::nullopt;
  return layout.offsets.with_entries([&](auto offsets) {
    return layout.ends.with_entries([&](auto ends) {
      const auto length_of = [ends](std::size_t i) { return Offset{ends[i]} - (i == 0 ? 0 : Offset{ends[i - 1]}); };
      return are_disjoint_as_listed(TableRuns{offsets, length_of});
    });
  });
}

bool entries_are_disjoint(const Layout& layout) {
  if (const std::optional<bool> known = entries_are_disjoint_as_listed(layout)) return *known;
  if (layout.core == Core::index && layout.offsets.has_runs()) {
    // Runs are few beside their entries, and mostly lie apart as wholes.
    std::optional<std::vector<Segment>> runs = runs_as_entries(layout);
    if (runs && are_disjoint(*runs)) return true;
    if (!is_listed(layout.offsets)) return false;
  }
  std::optional<std::vector<Segment>> entries = entries_of(layout);
  return entries && are_disjoint(*entries);
}

bool nests(const Layout& layout) {
  if (!entries_are_disjoint(layout)) return false;
  if (layout.modes.empty()) return true;
  Layout core = layout;
  core.modes.clear();
  core.size = core.core_size;
  return modes_nest(layout.modes, as_segment(build::hull_of(core)).length);
}

/// The blocks that a list or sum begins its strands with, each strand's hull, and what divides every stride.
class Strands {
 public:
  /// Adds strands whose blocks all take the same modes, if these do not overlap themselves.
  bool add(const std::vector<Segment>& more, const std::vector<Mode>& modes) {
    const auto by_length = [](const Segment& a, const Segment& b) { return a.length < b.length; };
    if (!modes_nest(modes, std::ranges::max(more, by_length).length)) return false;
    Offset below = 0, above = 0;
    for (const Mode& mode : modes) {
      const Offset reach = (mode.count - 1) * mode.stride;
      (reach < 0 ? below : above) += reach;
      divisor_ = std::gcd(divisor_, mode.stride);
    }
    blocks_.insert(blocks_.end(), more.begin(), more.end());
    for (const Segment& block : more) hulls_.push_back({block.offset + below, block.length + above - below});
    return true;
  }

  bool stay_apart() { return are_disjoint(hulls_) || differ_by_residue(); }

 private:
  bool differ_by_residue() {
    if (divisor_ == 0) return false;
    for (Segment& block : blocks_) {
      if (block.length > divisor_) return false;
      block.offset %= divisor_;
      if (block.offset < 0) block.offset += divisor_;
    }
    std::ranges::sort(blocks_, {}, &Segment::offset);
    // Residues are a circle: the last block must end before the first begins again.
    blocks_.push_back({blocks_[0].offset + divisor_, blocks_[0].length});
    return are_disjoint(blocks_);
  }

  std::vector<Segment> blocks_;
  std::vector<Segment> hulls_;
  Offset divisor_ = 0;
};

std::vector<Mode> joined(std::vector<Mode> inner, const std::vector<Mode>& outer) {
  inner.insert(inner.end(), outer.begin(), outer.end());
  return inner;
}

/// Do the runs of an index core, a strand each, stay apart?
bool runs_stay_apart(const Layout& layout) {
  const Layout& child = *layout.child;
  Strands strands;
  for (std::size_t i = 0; i < layout.offsets.run_count(); ++i) {
    const OffsetRun run = layout.offsets.run(i);
    std::vector<Mode> modes = child.modes;
    if (run.count > 1) modes.push_back({run.count, run.stride});
    if (!strands.add({{run.offset, child.length}}, joined(std::move(modes), layout.modes))) return false;
  }
  return strands.stay_apart();
}

bool strands_stay_apart(const Layout& layout) {
  Strands strands;
  if (layout.core == Core::sum) {
    for (const Part& part : layout.parts) {
      if (!part.layout->is_strided()) return false;
      const std::vector<Segment> block = {{part.layout->base, part.layout->length}};
      if (!strands.add(block, joined(part.layout->modes, layout.modes))) return false;
    }
  } else {
    if (layout.core == Core::index && !layout.child->is_strided()) return false;
    if (layout.core == Core::index && layout.offsets.has_runs()) {
      if (runs_stay_apart(layout)) return true;
      if (!is_listed(layout.offsets)) return false;
    }
    const Layout* child = layout.child.get();
    std::optional<std::vector<Segment>> entries = entries_of(layout);
    if (!entries) return false;
    if (child) {
      const Segment hull = as_segment(build::hull_of(*child));
      for (Segment& entry : *entries) entry = {entry.offset - hull.offset, child->length};
    }
    if (!strands.add(*entries, child ? joined(child->modes, layout.modes) : layout.modes)) return false;
  }
  return strands.stay_apart();
}

/// By listing every run, if there are few enough.
std::optional<bool> compare_runs(const Layout& layout) {
  if (segment_count(layout) > static_cast<Offset>(recognition_budget)) return std::nullopt;
  build::RunList list;
  build::append_runs(layout, 0, list, recognition_budget);
  std::vector<Segment> runs;
  const build::Runs all = list.runs();
  for (std::size_t i = 0; i < all.size(); ++i) runs.push_back(all[i]);
  return are_disjoint(runs);
}

}  // namespace

bool is_injective(const Layout& layout, Mode outer) {
  if (layout.is_empty() || outer.count == 0) return true;
  if (outer.count == 1) return is_shown_injective(layout) || compare_runs(layout).value_or(false);
  Layout repeated = layout;
  try {
    build::repeat_in_place(repeated, outer.count, outer.stride);
    build::hull_of(repeated);
  } catch (const std::overflow_error&) {
    return false;
  }
  return is_injective(repeated, {1, 0});
}

}  // namespace gapless::layout

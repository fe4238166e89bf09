// Algebra on layouts under construction.
#include "layout/algebra/build.hpp"

#include <algorithm>
namespace gapless::layout::build {

namespace {

Hull hull_of_table(const OffsetTable& offsets) {
  if (!offsets.has_runs()) {
    return offsets.with_entries([](auto entries) {
      const auto [least, greatest] = std::ranges::minmax(entries);
      return Hull{least, greatest};
    });
  }
  Hull hull{offsets[0], offsets[0]};
  for (std::size_t i = 0; i < offsets.run_count(); ++i) {
    const OffsetRun run = offsets.run(i);
    const Offset last = checked::add(run.offset, checked::multiply(run.count - 1, run.stride));
    hull.begin = std::min({hull.begin, run.offset, last});
    hull.end = std::max({hull.end, run.offset, last});
  }
  return hull;
}

Hull hull_of_segments(const Layout& layout) {
  return layout.offsets.with_entries([&](auto offsets) {
    return layout.ends.with_entries([&](auto ends) {
      Hull hull{offsets[0], offsets[0]};
      Offset packed = 0;
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const Offset offset = offsets[i], end = ends[i];
        hull.begin = std::min(hull.begin, offset);
        hull.end = std::max(hull.end, checked::add(offset, end - packed));
        packed = end;
      }
      return hull;
    });
  });
}

Hull hull_of_core(const Layout& layout) {
  switch (layout.core) {
    case Core::block:
      return {0, layout.length};
    case Core::index: {
      const Hull starts = hull_of_table(layout.offsets);
      const Hull child = hull_of(*layout.child);
      return {checked::add(starts.begin, child.begin), checked::add(starts.end, child.end)};
    }
    case Core::segments:
      return hull_of_segments(layout);
    case Core::sum: {
      Hull hull = hull_of(*layout.parts.front().layout);
      for (const Part& part : layout.parts) {
        const Hull other = hull_of(*part.layout);
        hull = {std::min(hull.begin, other.begin), std::max(hull.end, other.end)};
      }
      return hull;
    }
  }
  return {};
}

}  // namespace

Hull hull_of(const Layout& layout) {
  if (layout.is_empty()) return {};
  Hull hull = hull_of_core(layout);
  for (const Mode& mode : layout.modes) {
    const Offset reach = checked::multiply(mode.count - 1, mode.stride);
    Offset& end = reach < 0 ? hull.begin : hull.end;
    end = checked::add(end, reach);
  }
  hull = {checked::add(hull.begin, layout.base), checked::add(hull.end, layout.base)};
  checked::subtract(hull.end, hull.begin);
  return hull;
}

Layout make_block(Offset base, Offset length) {
  Layout layout;
  if (length == 0) return layout;
  layout.size = layout.core_size = layout.length = length;
  layout.base = base;
  return layout;
}

void repeat_in_place(Layout& layout, Offset count, Offset stride) {
  if (count == 0) layout = Layout{};
  if (layout.is_empty() || count == 1) return;
  layout.size = checked::multiply(layout.size, count);
  if (layout.modes.empty()) {
    if (layout.core == Core::block && stride == layout.length) {
      layout.length = layout.core_size = layout.size;
      return;
    }
    layout.modes.reserve(4);
  } else if (Mode& last = layout.modes.back(); checked::product_equals(last.count, last.stride, stride)) {
    last.count = checked::multiply(last.count, count);
    return;
  }
  layout.modes.push_back({count, stride});
}

void shift_in_place(Layout& layout, Offset distance) {
  if (!layout.is_empty()) layout.base = checked::add(layout.base, distance);
}

namespace {

bool append_core(const Layout& layout, Offset origin, RunList& list, std::size_t limit) {
  switch (layout.core) {
    case Core::block:
      list.append({origin, layout.length});
      return list.size() <= limit;
    case Core::index:
      for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
        if (!append_runs(*layout.child, origin + layout.offsets[i], list, limit)) return false;
      }
      return true;
    case Core::segments: {
      Offset packed = 0;
      for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
        list.append({origin + layout.offsets[i], layout.ends[i] - packed});
        packed = layout.ends[i];
        if (list.size() > limit) return false;
      }
      return true;
    }
    case Core::sum:
      return std::ranges::all_of(layout.parts,
                                 [&](const Part& part) { return append_runs(*part.layout, origin, list, limit); });
  }
  return false;
}

bool append_modes(const Layout& layout, std::size_t modes, Offset origin, RunList& list, std::size_t limit) {
  if (modes == 0) return append_core(layout, origin, list, limit);
  const Mode mode = layout.modes[modes - 1];
  for (Offset i = 0; i < mode.count; ++i) {
    if (!append_modes(layout, modes - 1, origin + i * mode.stride, list, limit)) return false;
  }
  return true;
}

}  // namespace

bool append_runs(const Layout& layout, Offset distance, RunList& list, std::size_t limit) {
  if (layout.is_empty()) return true;
  return append_modes(layout, layout.modes.size(), checked::add(layout.base, distance), list, limit);
}

LayoutPointer finish(Layout&& layout) {
  static_cast<void>(hull_of(layout));  // throws where the layout reaches beyond 63 bits
  return std::make_shared<const Layout>(std::move(layout));
}

LayoutPointer finish_list(RunList&& list) {
  if (list.empty()) return std::make_shared<const Layout>();
  const Runs runs = list.runs();
  Hull hull{runs.offset(0), runs.offset(0)};
  Offset size = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Segment run = runs[i];
    hull.begin = std::min(hull.begin, run.offset);
    hull.end = std::max(hull.end, checked::add(run.offset, run.length));
    size = checked::add(size, run.length);
  }
  checked::subtract(hull.end, hull.begin);
  return std::make_shared<const Layout>(recognise(std::move(list)));
}

}  // namespace gapless::layout::build

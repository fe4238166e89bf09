#include "pack/gpu/describe/form.hpp"

#include <numeric>
#include <vector>

#include "layout/algebra/canonical.hpp"
#include "layout/algebra/cursor.hpp"

namespace gapless::pack::gpu {
namespace {

using layout::Core;
using layout::Layout;
using layout::LayoutPointer;
using layout::Offset;
using layout::OffsetTable;
using layout::Segment;

/// One repetition of the core at offset 0.
Layout core_of(const Layout& layout) {
  Layout core = layout;
  core.modes.clear();
  core.base = 0;
  core.size = layout.core_size;
  return core;
}

/// Of a list of runs: its tables, each entry by itself.
struct List {
  OffsetTable offsets, ends;

  explicit List(const Layout& layout) : offsets(layout.offsets.expanded()), ends(layout.ends.expanded()) {}

  /// Calls use(offset, length) for each run until that is false.
  template <class Use>
  void for_each_run(Use&& use) const {
    offsets.with_entries([&](auto starts) {
      ends.with_entries([&](auto run_ends) {
        Offset begin = 0;
        for (std::size_t i = 0; i < starts.size(); ++i) {
          const Offset end = run_ends[i];
          if (!use(Offset{starts[i]}, end - begin)) return;
          begin = end;
        }
      });
    });
  }
};

std::vector<Segment> runs_of(const Layout& core) {
  std::vector<Segment> runs;
  if (core.core == Core::segments) {
    runs.reserve(core.offsets.size());
    List(core).for_each_run([&](Offset offset, Offset length) {
      runs.push_back({offset, length});
      return true;
    });
    return runs;
  }
  layout::Cursor cursor(core, {1, 0}, 0, core.size);
  for (Segment run; cursor.next(run);) runs.push_back(run);
  return runs;
}

/// The longest block that every run is a whole number of.
class CommonBlock {
 public:
  void add(Offset length) noexcept {
    // Most runs are whole numbers of the block that those before them have; few processors divide 64 bits as soon
    // as 32.
    const bool is_short = block_ != 0 && (block_ | length) >> 32 == 0;
    const Offset rest =
        is_short ? Offset{static_cast<std::uint32_t>(length) % static_cast<std::uint32_t>(block_)} : length;
    if (rest != 0) block_ = std::gcd(block_, rest);
  }
  Offset bytes() const noexcept { return block_; }

 private:
  Offset block_ = 0;
};

/// Has a list of runs a common block that is long enough for a table? Mostly the first few runs tell.
bool may_be_table(const Layout& layout) {
  CommonBlock block;
  const auto is_long_enough = [&] { return layout.core_size / block.bytes() <= table_entries_limit; };
  List(layout).for_each_run([&](Offset, Offset length) {
    block.add(length);
    return is_long_enough();
  });
  return is_long_enough();
}

/// The layout with another core in place of its own.
Layout with_core(const Layout& layout, Core core) {
  Layout result;
  result.size = layout.size;
  result.base = layout.base;
  result.modes = layout.modes;
  result.core = core;
  result.core_size = layout.core_size;
  return result;
}

LayoutPointer table_of(const Layout& layout, const std::vector<Segment>& runs, Offset block) {
  std::vector<Offset> offsets;
  offsets.reserve(static_cast<std::size_t>(layout.core_size / block));
  for (const Segment& run : runs) {
    for (Offset i = 0; i < run.length; i += block) offsets.push_back(run.offset + i);
  }
  Layout child;
  child.size = child.core_size = child.length = block;
  Layout result = with_core(layout, Core::index);
  result.offsets = OffsetTable(offsets);
  result.child = std::make_shared<const Layout>(std::move(child));
  return std::make_shared<const Layout>(std::move(result));
}

LayoutPointer list_of(const Layout& layout, const std::vector<Segment>& runs) {
  std::vector<Offset> offsets, ends;
  offsets.reserve(runs.size());
  ends.reserve(runs.size());
  for (const Segment& run : runs) {
    offsets.push_back(run.offset);
    ends.push_back((ends.empty() ? 0 : ends.back()) + run.length);
  }
  Layout result = with_core(layout, Core::segments);
  result.offsets = OffsetTable(offsets);
  result.ends = OffsetTable(ends);
  return std::make_shared<const Layout>(std::move(result));
}

/// The layout with each run of its list as a part of a sum.
LayoutPointer sum_of_runs(const Layout& layout) {
  Layout result = with_core(layout, Core::sum);
  Offset start = 0;
  for (std::size_t i = 0; i < layout.offsets.run_count(); ++i) {
    const layout::OffsetRun run = layout.offsets.run(i);
    const LayoutPointer part = layout::shift(layout::repeat(layout.child, run.count, run.stride), run.offset);
    result.parts.push_back({start, part});
    start += part->size;
  }
  return std::make_shared<const Layout>(std::move(result));
}

/// Has the layout a long table that is longer than a sum of its runs, each of which repeats the child's description?
bool is_shorter_as_sum(const Layout& layout) {
  const layout::OffsetTable& offsets = layout.offsets;
  if (layout.core != Core::index || !offsets.has_runs()) return false;
  const std::size_t part_bytes = sizeof(Layout) + layout::memory_bytes(*layout.child);
  return offsets.size() > static_cast<std::size_t>(listed_runs_limit) &&
         offsets.run_count() < offsets.size() * sizeof(std::int32_t) / part_bytes;
}

}  // namespace

LayoutPointer kernel_form(const Layout& layout, bool always_list) {
  if (is_shorter_as_sum(layout)) return sum_of_runs(layout);
  const bool is_nest = layout.is_strided() || (layout.core == Core::index && layout.child->is_strided());
  if (is_nest) return nullptr;
  const bool is_list = layout.core == Core::segments;
  if (is_list && (always_list || !may_be_table(layout))) return nullptr;
  const Layout core = core_of(layout);
  if (layout::segment_count(core) > listed_runs_limit) return nullptr;
  const std::vector<Segment> runs = runs_of(core);
  CommonBlock block;
  for (const Segment& run : runs) block.add(run.length);
  if (!always_list && layout.core_size / block.bytes() <= table_entries_limit) {
    return table_of(layout, runs, block.bytes());
  }
  return list_of(layout, runs);
}

}  // namespace gapless::pack::gpu

// The contiguous runs of a job, one after the other in packed order: recursion over levels, and no allocation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layout/place.hpp"
#include "pack/gpu/kernel/words.hpp"
#include "pack/job.hpp"

namespace gapless::pack::gpu {

/// Calls `add(memory address, bytes)` for each run, none empty, until it returns false.
template <class Add>
class JobRuns {
 public:
  explicit JobRuns(Add add) : add_(add) {}

  /// False if `add` returned false. Runs that touch are not joined, so there are as many calls as steps.
  bool visit(const Job& job) {
    const auto memory = reinterpret_cast<std::uintptr_t>(job.memory);
    return visit_equal(job.layout->size, job.begin, job.end, [&](Offset i, Offset begin, Offset end) {
      return visit(*job.layout, memory + unsigned_(i) * unsigned_(job.outer.stride), begin, end);
    });
  }

 private:
  /// Packed bytes [begin, end) of a layout whose offset 0 is at `memory`.
  bool visit(const Layout& layout, std::uintptr_t memory, Offset begin, Offset end) {
    return visit_modes(layout, layout.modes.size(), layout.size, memory + unsigned_(layout.base), begin, end);
  }

  /// Of its first `level` modes, which hold `size` bytes.
  bool visit_modes(const Layout& layout, std::size_t level, Offset size, std::uintptr_t memory, Offset begin,
                   Offset end) {
    if (level == 0) return visit_core(layout, memory, begin, end);
    const Mode& mode = layout.modes[level - 1];
    const Offset unit = size / mode.count;
    return visit_equal(unit, begin, end, [&](Offset i, Offset from, Offset to) {
      return visit_modes(layout, level - 1, unit, memory + unsigned_(i) * unsigned_(mode.stride), from, to);
    });
  }

  bool visit_core(const Layout& layout, std::uintptr_t memory, Offset begin, Offset end) {
    switch (layout.core) {
      case layout::Core::block:
        return add_(memory + unsigned_(begin), end - begin);
      case layout::Core::index:
        return visit_equal(layout.child->size, begin, end, [&](Offset i, Offset from, Offset to) {
          return visit(*layout.child, memory + unsigned_(layout.offsets[static_cast<std::size_t>(i)]), from, to);
        });
      case layout::Core::segments:
        return visit_entries(layout, begin, end, [&](std::size_t i, Offset& start) {
          const Offset run_end = layout.ends[i], from = std::max(begin - start, Offset{0});
          const Offset to = std::min(run_end, end) - start;
          start = run_end;
          return add_(memory + unsigned_(layout.offsets[i] + from), to - from);
        });
      case layout::Core::sum:
        return visit_entries(layout, begin, end, [&](std::size_t i, Offset& start) {
          const Layout& part = *layout.parts[i].layout;
          const Offset part_begin = start;
          start += part.size;
          return visit(part, memory, std::max(begin - part_begin, Offset{0}), std::min(end - part_begin, part.size));
        });
    }
    return true;
  }

  /// Entries of a list or sum, each of which moves `start`, where it begins, to where the next one does.
  template <class Visit>
  static bool visit_entries(const Layout& layout, Offset begin, Offset end, const Visit& visit) {
    const layout::Place first = layout::place_in_core(layout, begin);
    Offset start = begin - first.inside;
    for (std::size_t i = first.entry; start < end; ++i) {
      if (!visit(i, start)) return false;
    }
    return true;
  }

  /// The parts of [begin, end) in each of many equal units.
  template <class Visit>
  static bool visit_equal(Offset unit, Offset begin, Offset end, const Visit& visit) {
    for (Offset at = begin; at < end;) {
      const Offset i = at / unit, from = at - i * unit, to = std::min(unit, end - i * unit);
      if (!visit(i, from, to)) return false;
      at += to - from;
    }
    return true;
  }

  Add add_;
};

}  // namespace gapless::pack::gpu

// The builders: modes by algebra; lists and sums from their runs, if these are few enough to list, else by algebra too.
#include "layout/algebra/canonical.hpp"

#include <algorithm>
#include <stdexcept>

#include "layout/algebra/build.hpp"
#include "layout/algebra/cursor.hpp"

namespace gapless::layout {

namespace {

/// Longest list that is searched for structure: the user's own description is linear anyway.
std::size_t run_limit(std::size_t description) { return std::max(recognition_budget, description); }

/// Fusing runs with those of the next repetition leaves half of them at least.
bool may_fit(std::size_t runs, std::size_t limit) { return runs / 2 <= limit; }

/// Appends the runs of the child at each offset; false once there are more than `limit`.
bool append_at(const Layout& child, std::span<const Offset> offsets, build::RunList& list, std::size_t limit) {
  if (!child.is_contiguous()) {
    return std::ranges::all_of(offsets, [&](Offset o) { return build::append_runs(child, o, list, limit); });
  }
  for (const Offset offset : offsets) list.append({checked::add(child.base, offset), child.length});
  return list.size() <= limit;
}

}  // namespace

LayoutPointer empty() {
  static const LayoutPointer layout = std::make_shared<const Layout>();
  return layout;
}

LayoutPointer block(Offset base, Offset length) {
  if (length < 0) throw std::invalid_argument("block of negative length");
  return build::finish(build::make_block(base, length));
}

LayoutPointer shift(const LayoutPointer& child, Offset distance) {
  Layout layout = *child;
  build::shift_in_place(layout, distance);
  return build::finish(std::move(layout));
}

LayoutPointer repeat(const LayoutPointer& child, Offset count, Offset stride) {
  if (count < 0) throw std::invalid_argument("negative repetition count");
  if (count == 1) return child;
  Layout layout = *child;
  build::repeat_in_place(layout, count, stride);
  return build::finish(std::move(layout));
}

LayoutPointer index(const LayoutPointer& child, std::span<const Offset> offsets) {
  if (child->is_empty() || offsets.empty()) return empty();
  if (offsets.size() == 1) return shift(child, offsets[0]);
  checked::multiply(child->size, static_cast<Offset>(offsets.size()));
  const std::size_t limit = run_limit(offsets.size());
  const std::size_t runs = static_cast<std::size_t>(segment_count(*child)) * offsets.size();
  if (may_fit(runs, limit)) {
    build::RunList list;
    list.reserve(std::min(runs, limit + 1));
    if (append_at(*child, offsets, list, limit)) return build::finish_list(std::move(list));
  }
  return build::finish(build::index_of(*child, offsets));
}

LayoutPointer segments(std::span<const Segment> runs) {
  build::RunList list;
  list.reserve(runs.size());
  for (const Segment& run : runs) {
    if (run.length < 0) throw std::invalid_argument("run of negative length");
    list.append(run);
  }
  return build::finish_list(std::move(list));
}

LayoutPointer concatenate(std::span<const LayoutPointer> terms) {
  const std::size_t limit = run_limit(terms.size());
  Offset size = 0;
  for (const LayoutPointer& term : terms) size = checked::add(size, term->size);
  std::size_t runs = 0;
  for (const LayoutPointer& term : terms) runs += static_cast<std::size_t>(segment_count(*term));
  if (may_fit(runs, limit)) {
    build::RunList list;
    list.reserve(std::min(runs, limit + 1));
    if (std::ranges::all_of(terms, [&](const LayoutPointer& t) { return build::append_runs(*t, 0, list, limit); })) {
      return build::finish_list(std::move(list));
    }
  }
  return build::finish(build::sum_of(terms));
}

}  // namespace gapless::layout

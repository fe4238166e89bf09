// Layouts at listed offsets, and one after the other, by algebra alone: what is too large to be listed run by run.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "layout/algebra/build.hpp"

namespace gapless::layout::build {

namespace {

/// The layout at offsets that count from its own base.
Layout at_offsets(Layout&& layout, OffsetTable offsets) {
  Layout result;
  result.core = Core::index;
  result.base = layout.base;
  layout.base = 0;
  result.size = result.core_size = checked::multiply(layout.size, static_cast<Offset>(offsets.size()));
  result.offsets = std::move(offsets);
  result.child = std::make_shared<const Layout>(std::move(layout));
  return result;
}

}  // namespace

Layout index_of(const Layout& child, std::span<const Offset> offsets) {
  const auto [least, greatest] = std::ranges::minmax(offsets);
  checked::subtract(greatest, least);
  Layout layout = child;
  shift_in_place(layout, offsets[0]);

  std::vector<Mode> modes;
  const auto exists = [&](std::size_t i) { return i < offsets.size(); };
  const auto offset = [&](std::size_t i) { return offsets[i]; };
  if (leading_modes(exists, offset, modes) == offsets.size()) {
    for (const Mode& mode : modes) repeat_in_place(layout, mode.count, mode.stride);
    return layout;
  }
  const auto gap = [&](std::size_t i) { return offsets[i + 1] - offsets[i]; };
  const std::size_t period = smallest_period(
      offsets.size(), [&](std::size_t i, std::size_t j) { return gap(i) == gap(j); }, [](std::size_t) { return true; });
  if (period != 0) {
    layout = index_of(child, offsets.first(period));
    repeat_in_place(layout, static_cast<Offset>(offsets.size() / period), offsets[period] - offsets[0]);
    return layout;
  }
  std::vector<Offset> relative(offsets.begin(), offsets.end());
  for (Offset& entry : relative) entry -= offsets[0];
  return at_offsets(std::move(layout), OffsetTable::compressed(relative));
}

Layout index_of(const Layout& child, std::span<const OffsetRun> runs) {
  Layout layout = child;
  shift_in_place(layout, runs[0].offset);
  if (runs.size() == 1) {
    repeat_in_place(layout, runs[0].count, runs[0].stride);
    return layout;
  }
  std::vector<OffsetRun> relative(runs.begin(), runs.end());
  for (OffsetRun& run : relative) run.offset = checked::subtract(run.offset, runs[0].offset);
  return at_offsets(std::move(layout), OffsetTable::of_runs(relative));
}

namespace {

/// Gathers terms that are too many runs to list. Contiguous runs are kept as lists between the larger terms, so that a
/// long list next to one large field stays a list.
class SumBuilder {
 public:
  void add(const Layout& term, Offset distance) {
    if (term.is_empty()) return;
    if (term.modes.empty() && (term.core == Core::block || term.core == Core::segments)) {
      append_runs(term, distance, pending_, std::numeric_limits<std::size_t>::max());
    } else if (term.modes.empty() && term.core == Core::sum) {
      for (const Part& part : term.parts) add(*part.layout, checked::add(distance, term.base));
    } else {
      flush();
      push(term, distance);
    }
  }

  Layout result() {
    flush();
    if (parts_.empty()) return {};
    if (parts_.size() == 1) return std::move(parts_.front());
    if (std::optional<Layout> same = repeated_shape()) return *std::move(same);
    Layout sum;
    sum.core = Core::sum;
    sum.base = parts_.front().base;
    sum.parts.reserve(parts_.size());
    for (Layout& part : parts_) {
      part.base = checked::subtract(part.base, sum.base);
      const Offset start = sum.size;
      sum.size = checked::add(sum.size, part.size);
      sum.parts.push_back({start, std::make_shared<const Layout>(std::move(part))});
    }
    sum.core_size = sum.size;
    return sum;
  }

 private:
  void push(const Layout& term, Offset distance) {
    parts_.push_back(term);
    shift_in_place(parts_.back(), distance);
  }

  void flush() {
    if (pending_.empty()) return;
    const LayoutPointer list = finish_list(std::move(pending_));
    pending_ = {};
    if (list->modes.empty() && list->core == Core::sum) {
      for (const Part& part : list->parts) push(*part.layout, list->base);
    } else {
      push(*list, 0);
    }
  }

  /// Parts that differ in their base only are one layout at listed offsets.
  std::optional<Layout> repeated_shape() const {
    Layout shape = parts_.front();
    std::vector<Offset> offsets;
    offsets.reserve(parts_.size());
    for (const Layout& part : parts_) {
      offsets.push_back(part.base);
      shape.base = part.base;
      if (shape != part) return std::nullopt;
    }
    shape.base = 0;
    return index_of(shape, offsets);
  }

  RunList pending_;
  std::vector<Layout> parts_;
};

}  // namespace

Layout sum_of(std::span<const LayoutPointer> terms) {
  SumBuilder sum;
  for (const LayoutPointer& term : terms) sum.add(*term, 0);
  return sum.result();
}

}  // namespace gapless::layout::build

// MPI's constructors except the array ones: each is algebra on the child's layout plus the rule for bounds.
#include "layout/datatype/datatype.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "layout/algebra/build.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/datatype/bounds.hpp"

namespace gapless::layout {

namespace {

void require_count(Offset count, std::size_t argument, const char* what) {
  if (count < 0) throw ArgumentError(what, argument);
}

/// Of the list that is the first argument.
void require_block_lengths(Numbers lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) throw ArgumentError("negative block length", 0, i);
  }
}

void require_size_of_first(std::size_t size, std::size_t first, std::size_t argument) {
  if (size != first) throw ArgumentError("lists of different lengths", argument);
}

Datatype with_bounds(LayoutPointer layout, const Bounds& bounds) {
  Datatype type;
  type.layout = std::move(layout);
  bounds.store(type);
  return type;
}

/// `count` blocks of `block_length` children, `stride` bytes apart.
Datatype strided(Offset count, Offset block_length, Offset stride, const Datatype& child) {
  Layout layout = *child.layout;
  build::repeat_in_place(layout, block_length, child.extent());
  build::repeat_in_place(layout, count, stride);
  Bounds bounds;
  if (count > 0) {
    bounds.add(child, block_length, 0);
    bounds.add(child, block_length, checked::multiply(count - 1, stride));
  }
  return with_bounds(build::finish(std::move(layout)), bounds);
}

bool repeats_contiguously(const Datatype& type) { return type.layout->is_contiguous() && type.extent() == type.size(); }

/// The first and the last of many children in memory, which decide the bounds of all.
class Extremes {
 public:
  void add(Offset first, Offset reach) {
    const Offset last = checked::add(first, reach);
    least_ = std::min({least_, first, last});
    greatest_ = std::max({greatest_, first, last});
  }
  Bounds bounds_of(const Datatype& child) const {
    Bounds bounds;
    if (least_ > greatest_) return bounds;
    bounds.add(child, 1, least_);
    bounds.add(child, 1, greatest_);
    return bounds;
  }

 private:
  Offset least_ = std::numeric_limits<Offset>::max(), greatest_ = std::numeric_limits<Offset>::min();
};

/// Blocks of one child at byte displacements, given as functions of the block's number.
class BlockList {
 public:
  BlockList(std::size_t count, const Datatype& child) : count_(count), child_(child) {}

  template <class LengthOf, class DisplacementOf>
  Datatype build(LengthOf length, DisplacementOf displacement) const {
    Extremes extremes;
    bool is_uniform = true;
    Offset common = 0, elements = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Offset n = length(i);
      if (n == 0) continue;
      extremes.add(displacement(i), checked::multiply(n - 1, child_.extent()));
      elements = checked::add(elements, n);
      is_uniform = is_uniform && (common == 0 || common == n);
      if (common == 0) common = n;
    }
    const Bounds bounds = extremes.bounds_of(child_);
    if (child_.layout->is_empty()) return with_bounds(empty(), bounds);
    checked::multiply(elements, child_.size());
    if (repeats_contiguously(child_)) return with_bounds(as_runs(length, displacement), bounds);
    if (is_uniform) return with_bounds(as_index(common, length, displacement), bounds);
    const Offset affordable = std::max(static_cast<Offset>(recognition_budget), 64 * static_cast<Offset>(count_));
    const bool are_few = elements <= affordable;
    return with_bounds(are_few ? as_elements(elements, length, displacement) : as_long_runs(length, displacement),
                       bounds);
  }

 private:
  template <class LengthOf, class DisplacementOf>
  LayoutPointer as_runs(LengthOf length, DisplacementOf displacement) const {
    build::RunList list;
    list.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      list.append({checked::add(displacement(i), child_.layout->base), length(i) * child_.size()});
    }
    return build::finish_list(std::move(list));
  }

  template <class LengthOf, class DisplacementOf>
  LayoutPointer as_index(Offset common, LengthOf length, DisplacementOf displacement) const {
    std::vector<Offset> offsets;
    offsets.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (length(i) != 0) offsets.push_back(displacement(i));
    }
    return index(repeat(child_.layout, common, child_.extent()), offsets);
  }

  template <class LengthOf, class DisplacementOf>
  LayoutPointer as_elements(Offset elements, LengthOf length, DisplacementOf displacement) const {
    std::vector<Offset> offsets;
    offsets.reserve(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < count_; ++i) {
      for (Offset j = 0; j < length(i); ++j) {
        offsets.push_back(checked::add(displacement(i), checked::multiply(j, child_.extent())));
      }
    }
    return index(child_.layout, offsets);
  }

  /// Of more elements than are worth being listed, one by one, even for a while.
  template <class LengthOf, class DisplacementOf>
  LayoutPointer as_long_runs(LengthOf length, DisplacementOf displacement) const {
    std::vector<OffsetRun> runs;
    Offset first = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (length(i) == 0) continue;
      const Offset offset = displacement(i);
      const Offset last = checked::multiply(length(i) - 1, child_.extent());
      checked::add(offset, last);
      if (!runs.empty() && offset - child_.extent() == runs.back().offset + (runs.back().count - 1) * child_.extent()) {
        runs.back().count += length(i);
      } else {
        runs.push_back({first, offset, length(i), child_.extent()});
      }
      first += length(i);
    }
    return build::finish(build::index_of(*child_.layout, runs));
  }

  std::size_t count_;
  const Datatype& child_;
};

}  // namespace

Datatype named(Offset size, Offset extent) {
  require_count(size, 0, "negative size");
  Datatype type;
  type.layout = block(0, size);
  type.upper_bound = extent;
  type.true_upper_bound = size;
  return type;
}

Datatype pair(Offset value_size, Offset index_size, Offset index_offset, Offset extent) {
  const Segment runs[] = {{0, value_size}, {index_offset, index_size}};
  Datatype type;
  type.layout = segments(runs);
  type.upper_bound = extent;
  const build::Hull hull = build::hull_of(*type.layout);
  type.true_lower_bound = hull.begin;
  type.true_upper_bound = hull.end;
  return type;
}

Datatype contiguous(Offset count, const Datatype& child) {
  require_count(count, 0, "negative count");
  return strided(1, count, 0, child);
}

Datatype vector(Offset count, Offset block_length, Offset stride, const Datatype& child) {
  return hvector(count, block_length, checked::multiply(stride, child.extent()), child);
}

Datatype hvector(Offset count, Offset block_length, Offset stride_bytes, const Datatype& child) {
  require_count(count, 0, "negative count");
  require_count(block_length, 1, "negative block length");
  return strided(count, block_length, stride_bytes, child);
}

Datatype indexed(Numbers block_lengths, Numbers displacements, const Datatype& child) {
  require_size_of_first(displacements.size(), block_lengths.size(), 1);
  require_block_lengths(block_lengths);
  return BlockList(block_lengths.size(), child)
      .build([&](std::size_t i) { return block_lengths[i]; },
             [&](std::size_t i) { return checked::multiply(displacements[i], child.extent()); });
}

Datatype hindexed(Numbers block_lengths, Numbers displacements_bytes, const Datatype& child) {
  require_size_of_first(displacements_bytes.size(), block_lengths.size(), 1);
  require_block_lengths(block_lengths);
  return BlockList(block_lengths.size(), child)
      .build([&](std::size_t i) { return block_lengths[i]; }, [&](std::size_t i) { return displacements_bytes[i]; });
}

Datatype indexed_block(Offset block_length, Numbers displacements, const Datatype& child) {
  require_count(block_length, 0, "negative block length");
  return BlockList(displacements.size(), child)
      .build([&](std::size_t) { return block_length; },
             [&](std::size_t i) { return checked::multiply(displacements[i], child.extent()); });
}

Datatype hindexed_block(Offset block_length, Numbers displacements_bytes, const Datatype& child) {
  require_count(block_length, 0, "negative block length");
  return BlockList(displacements_bytes.size(), child)
      .build([&](std::size_t) { return block_length; }, [&](std::size_t i) { return displacements_bytes[i]; });
}

namespace {

template <class ChildOf>
Datatype structure_of(Numbers block_lengths, Numbers displacements_bytes, std::size_t count, ChildOf child_of) {
  require_size_of_first(displacements_bytes.size(), block_lengths.size(), 1);
  require_size_of_first(count, block_lengths.size(), 2);
  require_block_lengths(block_lengths);
  bool is_list = true;
  for (std::size_t i = 0; i < count && is_list; ++i) is_list = repeats_contiguously(child_of(i));
  Bounds bounds;
  build::RunList runs;
  std::vector<LayoutPointer> terms;
  (is_list ? static_cast<void>(runs.reserve(count)) : terms.reserve(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Datatype& child = child_of(i);
    const Offset n = block_lengths[i];
    bounds.add(child, n, displacements_bytes[i]);
    if (is_list) {
      const Offset begin = checked::add(displacements_bytes[i], child.layout->base);
      runs.append({begin, checked::multiply(n, child.size())});
    } else if (n > 0) {
      terms.push_back(shift(repeat(child.layout, n, child.extent()), displacements_bytes[i]));
    }
  }
  return with_bounds(is_list ? build::finish_list(std::move(runs)) : concatenate(terms), bounds);
}

}  // namespace

Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype> children) {
  return structure_of(block_lengths, displacements_bytes, children.size(),
                      [children](std::size_t i) -> const Datatype& { return children[i]; });
}

Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype* const> kinds,
                   std::span<const std::uint32_t> kind_of) {
  return structure_of(block_lengths, displacements_bytes, kind_of.size(),
                      [kinds, kind_of](std::size_t i) -> const Datatype& { return *kinds[kind_of[i]]; });
}

Datatype resized(const Datatype& child, Offset lower_bound, Offset extent) {
  Datatype type = child;
  type.lower_bound = lower_bound;
  type.upper_bound = checked::add(lower_bound, extent);
  type.has_explicit_bounds = true;
  return type;
}

}  // namespace gapless::layout

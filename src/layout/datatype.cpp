// MPI's constructors except the array ones: each is algebra on the child's layout plus the rule for bounds.
#include "layout/datatype.hpp"

#include <algorithm>
#include <stdexcept>

#include "layout/bounds.hpp"
#include "layout/build.hpp"
#include "layout/canonical.hpp"

namespace gapless::layout {

namespace {

void require_count(Offset count, const char* what) {
  if (count < 0) throw std::invalid_argument(what);
}

void require_counts(std::span<const Offset> counts) {
  for (const Offset count : counts) require_count(count, "negative block length");
}

void require_same_size(std::size_t a, std::size_t b) {
  if (a != b) throw std::invalid_argument("lists of different lengths");
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

/// Blocks of one child at byte displacements, given as functions of the block's number.
class BlockList {
 public:
  BlockList(std::size_t count, const Datatype& child) : count_(count), child_(child) {}

  template <class LengthOf, class DisplacementOf>
  Datatype build(LengthOf length, DisplacementOf displacement) const {
    Bounds bounds;
    bool is_uniform = true;
    Offset common = 0, elements = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Offset n = length(i);
      if (n == 0) continue;
      bounds.add(child_, n, displacement(i));
      elements = checked::add(elements, n);
      is_uniform = is_uniform && (common == 0 || common == n);
      if (common == 0) common = n;
    }
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
    std::vector<Segment> list;
    list.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      build::append_fused(list, {checked::add(displacement(i), child_.layout->base), length(i) * child_.size()});
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
  require_count(size, "negative size");
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
  require_count(count, "negative count");
  return strided(1, count, 0, child);
}

Datatype vector(Offset count, Offset block_length, Offset stride, const Datatype& child) {
  return hvector(count, block_length, checked::multiply(stride, child.extent()), child);
}

Datatype hvector(Offset count, Offset block_length, Offset stride_bytes, const Datatype& child) {
  require_count(count, "negative count");
  require_count(block_length, "negative block length");
  return strided(count, block_length, stride_bytes, child);
}

Datatype indexed(std::span<const Offset> block_lengths, std::span<const Offset> displacements, const Datatype& child) {
  require_same_size(block_lengths.size(), displacements.size());
  require_counts(block_lengths);
  return BlockList(block_lengths.size(), child)
      .build([&](std::size_t i) { return block_lengths[i]; },
             [&](std::size_t i) { return checked::multiply(displacements[i], child.extent()); });
}

Datatype hindexed(std::span<const Offset> block_lengths, std::span<const Offset> displacements_bytes,
                  const Datatype& child) {
  require_same_size(block_lengths.size(), displacements_bytes.size());
  require_counts(block_lengths);
  return BlockList(block_lengths.size(), child)
      .build([&](std::size_t i) { return block_lengths[i]; }, [&](std::size_t i) { return displacements_bytes[i]; });
}

Datatype indexed_block(Offset block_length, std::span<const Offset> displacements, const Datatype& child) {
  require_count(block_length, "negative block length");
  return BlockList(displacements.size(), child)
      .build([&](std::size_t) { return block_length; },
             [&](std::size_t i) { return checked::multiply(displacements[i], child.extent()); });
}

Datatype hindexed_block(Offset block_length, std::span<const Offset> displacements_bytes, const Datatype& child) {
  require_count(block_length, "negative block length");
  return BlockList(displacements_bytes.size(), child)
      .build([&](std::size_t) { return block_length; }, [&](std::size_t i) { return displacements_bytes[i]; });
}

Datatype structure(std::span<const Offset> block_lengths, std::span<const Offset> displacements_bytes,
                   std::span<const Datatype> children) {
  require_same_size(block_lengths.size(), displacements_bytes.size());
  require_same_size(block_lengths.size(), children.size());
  require_counts(block_lengths);
  Bounds bounds;
  std::vector<Segment> runs;
  std::vector<LayoutPointer> terms;
  runs.reserve(children.size());
  const bool is_list = std::ranges::all_of(children, repeats_contiguously);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Datatype& child = children[i];
    const Offset count = block_lengths[i];
    bounds.add(child, count, displacements_bytes[i]);
    if (is_list) {
      const Offset begin = checked::add(displacements_bytes[i], child.layout->base);
      build::append_fused(runs, {begin, checked::multiply(count, child.size())});
    } else if (count > 0) {
      terms.push_back(shift(repeat(child.layout, count, child.extent()), displacements_bytes[i]));
    }
  }
  return with_bounds(is_list ? build::finish_list(std::move(runs)) : concatenate(terms), bounds);
}

Datatype resized(const Datatype& child, Offset lower_bound, Offset extent) {
  Datatype type = child;
  type.lower_bound = lower_bound;
  type.upper_bound = checked::add(lower_bound, extent);
  type.has_explicit_bounds = true;
  return type;
}

}  // namespace gapless::layout

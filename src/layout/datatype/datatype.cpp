// MPI's constructors except the array ones: each is algebra on the child's layout plus the rule for bounds.
#include "layout/datatype/datatype.hpp"

#include <algorithm>
#include <limits>

#include "layout/algebra/build.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/datatype/bounds.hpp"

namespace gapless::layout {

namespace {

void require_count(Offset count, std::size_t argument, const char* what) {
  if (count < 0) throw ArgumentError(what, argument);
}

/// Throws if one of the block lengths, a constructor's first list, is negative.
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
  void add_to(Bounds& bounds, const Datatype& child) const {
    if (least_ > greatest_) return;
    bounds.add(child, 1, least_);
    bounds.add(child, 1, greatest_);
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
    Bounds bounds;
    extremes.add_to(bounds, child_);
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

  /// For blocks of more children than should be listed one by one, even for a while.
  template <class LengthOf, class DisplacementOf>
  LayoutPointer as_long_runs(LengthOf length, DisplacementOf displacement) const {
    std::vector<OffsetRun> runs;
    Offset first = 0, next = 0;  // next: where the last run would go on, if that is an offset
    bool may_go_on = false;
    for (std::size_t i = 0; i < count_; ++i) {
      if (length(i) == 0) continue;
      const Offset offset = displacement(i);
      const Offset last = checked::multiply(length(i) - 1, child_.extent());
      if (may_go_on && offset == next) {
        runs.back().count += length(i);
      } else {
        runs.push_back({first, offset, length(i), child_.extent()});
      }
      first += length(i);
      may_go_on = !__builtin_add_overflow(checked::add(offset, last), child_.extent(), &next);
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
  store_true_bounds(type);
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

/// The fields of a struct as a list of runs, where each field is contiguous however often it is repeated. `kinds` are
/// the different datatypes, and `kind_of` says which one each field has.
class FieldList {
 public:
  FieldList(std::span<const Datatype* const> kinds, std::span<const std::uint32_t> kind_of)
      : kinds_(kinds), kind_of_(kind_of) {}

  Datatype build(Numbers block_lengths, Numbers displacements) const {
    std::vector<Extremes> extremes(kinds_.size());
    build::RunList runs;
    runs.reserve(kind_of_.size());
    for (std::size_t i = 0; i < kind_of_.size(); ++i) {
      const Offset n = block_lengths[i], displacement = displacements[i];
      if (n == 0) continue;
      const Datatype& kind = *kinds_[kind_of_[i]];
      extremes[kind_of_[i]].add(displacement, checked::multiply(n - 1, kind.extent()));
      runs.append({checked::add(displacement, kind.layout->base), checked::multiply(n, kind.size())});
    }
    Bounds bounds;
    for (std::size_t k = 0; k < kinds_.size(); ++k) extremes[k].add_to(bounds, *kinds_[k]);
    return with_bounds(build::finish_list(std::move(runs)), bounds);
  }

 private:
  std::span<const Datatype* const> kinds_;
  std::span<const std::uint32_t> kind_of_;
};

}  // namespace

Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype> children) {
  std::vector<const Datatype*> kinds;
  std::vector<std::uint32_t> kind_of;
  for (const Datatype& child : children) {
    kind_of.push_back(static_cast<std::uint32_t>(kinds.size()));
    kinds.push_back(&child);
  }
  return structure(block_lengths, displacements_bytes, kinds, kind_of);
}

Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype* const> kinds,
                   std::span<const std::uint32_t> kind_of) {
  require_size_of_first(displacements_bytes.size(), block_lengths.size(), 1);
  require_size_of_first(kind_of.size(), block_lengths.size(), 2);
  require_block_lengths(block_lengths);
  if (std::ranges::all_of(kinds, [](const Datatype* kind) { return repeats_contiguously(*kind); })) {
    return FieldList(kinds, kind_of).build(block_lengths, displacements_bytes);
  }
  Bounds bounds;
  std::vector<LayoutPointer> terms;
  terms.reserve(kind_of.size());
  for (std::size_t i = 0; i < kind_of.size(); ++i) {
    const Datatype& child = *kinds[kind_of[i]];
    const Offset n = block_lengths[i];
    bounds.add(child, n, displacements_bytes[i]);
    if (n > 0) terms.push_back(shift(repeat(child.layout, n, child.extent()), displacements_bytes[i]));
  }
  return with_bounds(concatenate(terms), bounds);
}

Datatype resized(const Datatype& child, Offset lower_bound, Offset extent) {
  Datatype type = child;
  type.lower_bound = lower_bound;
  type.upper_bound = checked::add(lower_bound, extent);
  type.has_explicit_bounds = true;
  return type;
}

}  // namespace gapless::layout

// MPI's rules for the bounds of a constructed datatype (MPI 5.0, 5.1.7): gathered block by block, or taken from the
// layout.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "layout/algebra/build.hpp"
#include "layout/datatype/datatype.hpp"

namespace gapless::layout {

class Bounds {
 public:
  /// A block of `count` children, one extent apart, the first at `displacement`. Empty blocks do not count, nor do
  /// children without bytes, unless their bounds were put there explicitly.
  void add(const Datatype& child, Offset count, Offset displacement) {
    const bool has_bytes = !child.layout->is_empty();
    if (count == 0 || (!has_bytes && !child.has_explicit_bounds)) return;
    // The extremes lie in the first or the last child.
    const Offset last = checked::add(displacement, checked::multiply(count - 1, child.extent()));
    const auto [least, greatest] = std::minmax(displacement, last);
    Interval& bounds = child.has_explicit_bounds ? explicit_ : natural_;
    bounds.include(checked::add(least, child.lower_bound), checked::add(greatest, child.upper_bound));
    if (has_bytes) {
      true_.include(checked::add(least, child.true_lower_bound), checked::add(greatest, child.true_upper_bound));
    }
  }

  void store(Datatype& type) const {
    const Interval& bounds = explicit_.is_set ? explicit_ : natural_;
    type.lower_bound = bounds.lower;
    type.upper_bound = bounds.upper;
    checked::subtract(bounds.upper, bounds.lower);
    type.true_lower_bound = true_.lower;
    type.true_upper_bound = true_.upper;
    type.has_explicit_bounds = explicit_.is_set;
  }

 private:
  struct Interval {
    bool is_set = false;
    Offset lower = 0;
    Offset upper = 0;

    void include(Offset begin, Offset end) {
      lower = is_set ? std::min(lower, begin) : begin;
      upper = is_set ? std::max(upper, end) : end;
      is_set = true;
    }
  };

  Interval natural_, explicit_, true_;
};

/// Takes the true bounds from the datatype's layout.
inline void store_true_bounds(Datatype& type) {
  const build::Hull hull = build::hull_of(*type.layout);
  type.true_lower_bound = hull.begin;
  type.true_upper_bound = hull.end;
}

}  // namespace gapless::layout

// What the builders of this layer share: algebra on layouts under construction, and the two ways to finish one.
//
// A layout under construction is a plain value: a nest of k constructors costs one allocation of modes and one of the
// result, not k of each.
#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "layout/run_list.hpp"

namespace gapless::layout::build {

/// Memory that a layout lies in: [begin, end), or {0, 0} for the empty one.
struct Hull {
  Offset begin = 0;
  Offset end = 0;
};

/// Throws std::overflow_error if any offset, or the distance between any two, leaves 63 bits.
Hull hull_of(const Layout& layout);

/// Postcondition: f(k) == base + k. Precondition: length >= 0.
Layout make_block(Offset base, Offset length);

/// Algebraic only: appends a mode, merging it where it continues the last one. Precondition: count >= 0.
void repeat_in_place(Layout& layout, Offset count, Offset stride);

void shift_in_place(Layout& layout, Offset distance);

/// Appends the runs of layout, all moved by `distance`. Gives up and returns false once the list is longer than
/// `limit`.
bool append_runs(const Layout& layout, Offset distance, RunList& list, std::size_t limit);

/// The canonical layout of a fully fused list: a deterministic function of it, so of the layout's function. Of long
/// lists the tables become those of the layout. Precondition: the list is not empty.
Layout recognise(RunList&& list);

/// child at each of the offsets, by algebra alone: modes and periods are looked for in the offsets, not in the runs.
Layout index_of(const Layout& child, std::span<const Offset> offsets);

/// child at offsets that are given as runs of one stride; no other structure is looked for. Preconditions: as
/// OffsetTable::of_runs; neither the runs nor the child are empty.
Layout index_of(const Layout& child, std::span<const OffsetRun> runs);

/// The terms one after the other, by algebra alone. Runs between larger terms are gathered in lists.
Layout sum_of(std::span<const LayoutPointer> terms);

/// Shares the result of algebra. Throws std::overflow_error where it reaches beyond 63 bits.
///
/// Repeating and shifting a canonical layout by algebra gives a canonical one, so no list is made. For an irregular
/// one: recognise() takes the smallest period of a function as its outermost mode. The repeated function has the
/// child's size as a period. A smaller one would divide that size, so it would be the child's own outermost mode with
/// the repetition continuing it, and then repeat_in_place merges the two.
LayoutPointer finish(Layout&& layout);

/// As segments(), for a list that is fused.
LayoutPointer finish_list(RunList&& list);

/// The modes, innermost first, of the longest nest of repetitions that `offset(0), offset(1) …` begins with. A mode
/// takes as many whole repetitions as there are, so a function that is one nest of modes is found exactly: the next
/// outer stride differs from count * stride, hence the longest arithmetic prefix ends where the mode does. `exists(j)`
/// says whether there is a j-th offset; it is asked in increasing order of new j. Returns how many offsets the nest
/// covers.
template <class Exists, class OffsetOf>
std::size_t leading_modes(Exists&& exists, OffsetOf&& offset, std::vector<Mode>& modes) {
  std::size_t covered = 1;
  while (exists(covered)) {
    const Offset stride = offset(covered) - offset(0);
    std::size_t matched = covered;
    while (exists(matched) && offset(matched) - offset(matched - covered) == stride) ++matched;
    const std::size_t repetitions = matched / covered;
    if (repetitions < 2) break;
    modes.push_back({static_cast<Offset>(repetitions), stride});
    covered *= repetitions;
  }
  return covered;
}

/// The smallest p < count that divides count, where item i equals item i + p for every i < count - p - 1 and
/// `last_equal(count - 1 - p)` holds: the last item is compared by that looser rule. 0 if there is none.
///
/// If p and q are such periods, so is their greatest common divisor (Fine and Wilf), and so are all multiples of a
/// period that divide the count. So the smallest is found by taking out one prime factor after the other, each
/// comparison ending where it fails: at once, mostly.
template <class Equal, class LastEqual>
std::size_t smallest_period(std::size_t count, Equal&& equal, LastEqual&& last_equal) {
  const auto is_period = [&](std::size_t p) {
    for (std::size_t i = 0; i + p + 1 < count; ++i) {
      if (!equal(i, i + p)) return false;
    }
    return static_cast<bool>(last_equal(count - 1 - p));
  };
  std::size_t period = count;
  const auto take_out = [&](std::size_t prime) {
    while (period % prime == 0 && is_period(period / prime)) period /= prime;
  };
  std::size_t rest = count;
  for (std::size_t factor = 2; factor <= rest / factor; ++factor) {
    if (rest % factor != 0) continue;
    take_out(factor);
    while (rest % factor == 0) rest /= factor;
  }
  if (rest > 1) take_out(rest);
  return period < count ? period : 0;
}

}  // namespace gapless::layout::build

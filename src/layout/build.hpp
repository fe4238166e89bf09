// What the builders of this layer share: algebra on layouts under construction, and the two ways to finish one.
//
// A layout under construction is a plain value: a nest of k constructors costs one allocation of modes and one of the
// result, not k of each.
#pragma once

#include <limits>
#include <vector>

#include "layout/checked.hpp"
#include "layout/layout.hpp"

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

/// Appends the run to the list, fused with the last run where it continues it; empty runs are dropped.
inline void append_fused(std::vector<Segment>& list, Segment run) {
  if (run.length == 0) return;
  checked::add(run.offset, run.length);
  if (!list.empty() && list.back().offset + list.back().length == run.offset) {
    list.back().length = checked::add(list.back().length, run.length);
  } else {
    list.push_back(run);
  }
}

/// Appends the runs of layout, all moved by `distance`. Gives up and returns false once the list is longer than
/// `limit`.
bool append_runs(const Layout& layout, Offset distance, std::vector<Segment>& list, std::size_t limit);

/// The canonical layout of a fully fused list: a deterministic function of it, so of the layout's function.
Layout recognise(std::span<const Segment> list);

/// child at each of the offsets, by algebra alone: modes and periods are looked for in the offsets, not in the runs.
Layout index_of(const Layout& child, std::span<const Offset> offsets);

/// The same for offsets in runs of one stride, which is all the structure that is looked for. Preconditions: as
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

/// As segments(), for a list that append_fused made.
LayoutPointer finish_list(std::vector<Segment>&& list);

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
/// `last_equal(count - 1 - p)` holds: the last item is compared by that looser rule. 0 if there is none. O(count).
template <class Equal, class LastEqual>
std::size_t smallest_period(std::size_t count, Equal&& equal, LastEqual&& last_equal) {
  if (count < 2 || count > std::numeric_limits<std::uint32_t>::max()) return 0;
  // Knuth, Morris and Pratt's borders of the first count - 1 items: each border b is a period count - 1 - b of them.
  const std::size_t compared = count - 1;
  std::vector<std::uint32_t> border(compared + 1, 0);
  std::size_t length = 0;
  for (std::size_t i = 1; i < compared; ++i) {
    while (length > 0 && !equal(i, length)) length = border[length];
    if (equal(i, length)) ++length;
    border[i + 1] = static_cast<std::uint32_t>(length);
  }
  for (std::size_t b = border[compared];; b = border[b]) {
    const std::size_t period = compared - b;
    if (period < count && count % period == 0 && last_equal(count - 1 - period)) return period;
    if (b == 0) return 0;
  }
}

}  // namespace gapless::layout::build

// Counting the distinct lines of a list of runs by sorting it.
#include "api/traffic.hpp"

#include <algorithm>
#include <vector>

#include "layout/algebra/cursor.hpp"

namespace gapless::api {
namespace {

using layout::Offset;

/// The lines [first, last] of a contiguous run.
struct Lines {
  Offset first;
  Offset last;
};

constexpr Offset line_of(Offset byte) { return byte >> 6; }

Offset count_distinct(std::vector<Lines>& runs) {
  std::sort(runs.begin(), runs.end(), [](const Lines& a, const Lines& b) { return a.first < b.first; });
  Offset distinct = 0;
  Offset next = runs.empty() ? 0 : runs.front().first;  // first line not yet counted
  for (const Lines& run : runs) {
    const Offset first = std::max(run.first, next);
    if (run.last >= first) {
      distinct += run.last - first + 1;
      next = run.last + 1;
    }
  }
  return distinct;
}

}  // namespace

Offset lines_touched(const layout::Layout& layout, layout::Mode outer, Offset first, Offset end,
                     std::size_t run_budget) {
  const Offset size = layout.size * outer.count;
  if (size == 0) return 0;

  layout::Cursor cursor(layout, outer, 0, size);
  std::vector<Lines> runs;
  Offset seen = 0;
  layout::Segment run;
  while (runs.size() < run_budget && cursor.next(run)) {
    runs.push_back({line_of(run.offset), line_of(run.offset + run.length - 1)});
    seen += run.length;
  }
  const Offset distinct = count_distinct(runs);
  if (seen == size) return distinct;

  // A later run may share lines with the sample (a transpose's do), so the span bounds the estimate.
  const double scaled = static_cast<double>(distinct) * (static_cast<double>(size) / static_cast<double>(seen));
  const Offset span = line_of(end - 1) - line_of(first) + 1;
  return scaled < static_cast<double>(span) ? static_cast<Offset>(scaled) : span;
}

}  // namespace gapless::api

// The common refinement of two layouts: what lets one loop or one kernel go from noncontiguous to noncontiguous.
//
// Two layouts of the same packed size N factor the same stream differently. Where the boundaries of one divide those of
// the other, a single nest of modes with two strides each describes the copy; that is a PairedStrided. Otherwise both
// are walked together (PairCursor), or packed and unpacked in pieces.
#pragma once

#include <optional>
#include <vector>

#include "layout/algebra/cursor.hpp"
#include "layout/layout.hpp"

namespace gapless::layout {

struct PairedMode {
  Offset count;
  Offset source_stride;
  Offset destination_stride;
  friend bool operator==(const PairedMode&, const PairedMode&) = default;
};

/// Copies `length` contiguous bytes per innermost repetition; modes innermost first.
struct PairedStrided {
  Offset length = 0;
  Offset source_base = 0;
  Offset destination_base = 0;
  std::vector<PairedMode> modes;
};

/// Postcondition: enumerating the result gives (source.f(k), destination.f(k)) for k = 0 … N-1 in order.
/// Empty when the sizes differ, either layout is not strided, or the factors do not divide each other.
std::optional<PairedStrided> refine(const Layout& source, const Layout& destination);
/// The same of repeated layouts.
std::optional<PairedStrided> refine(const Layout& source, Mode source_outer, const Layout& destination,
                                    Mode destination_outer);

/// One run contiguous on both sides.
struct PairedRun {
  Offset source;
  Offset destination;
  Offset length;
};

/// The merged walk of [begin, end) of two repeated layouts; works for every pair.
class PairCursor {
 public:
  PairCursor(Cursor source, Cursor destination) noexcept;
  bool next(PairedRun& run) noexcept;

 private:
  Cursor source_, destination_;
  Segment source_run_{0, 0}, destination_run_{0, 0};
};

}  // namespace gapless::layout

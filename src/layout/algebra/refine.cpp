// Both layouts are read as lists of factors of the packed stream, the block being the factor (length, stride 1).
// Walking the lists together, the smaller factor splits the larger one where it divides it.
#include "layout/algebra/refine.hpp"

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "layout/algebra/canonical.hpp"

namespace gapless::layout {

namespace {

/// Takes factors off a strided layout, innermost first, in pieces.
class Factors {
 public:
  explicit Factors(const Layout& layout) : modes_(layout.modes), present_{layout.length, 1} {}

  Mode present() {
    while (present_.count == 1 && next_ < modes_.size()) present_ = modes_[next_++];
    return present_;
  }

  /// Precondition: count divides present().count.
  void take(Offset count) {
    present_ = {present_.count / count, count == present_.count ? 0 : present_.stride * count};
  }

 private:
  const std::vector<Mode>& modes_;
  std::size_t next_ = 0;
  Mode present_;
};

bool continues(const PairedMode& last, const PairedMode& next) {
  return checked::product_equals(last.count, last.source_stride, next.source_stride) &&
         checked::product_equals(last.count, last.destination_stride, next.destination_stride);
}

}  // namespace

std::optional<PairedStrided> refine(const Layout& source, const Layout& destination) {
  if (source.size != destination.size || !source.is_strided() || !destination.is_strided()) return std::nullopt;
  PairedStrided paired;
  if (source.is_empty()) return paired;
  paired.source_base = source.base;
  paired.destination_base = destination.base;
  paired.length = 1;

  Factors from(source), to(destination);
  for (;;) {
    const Mode a = from.present(), b = to.present();
    if (a.count == 1 && b.count == 1) return paired;
    const Offset count = std::min(a.count, b.count);
    if (std::max(a.count, b.count) % count != 0) return std::nullopt;
    const PairedMode mode{count, a.stride, b.stride};
    if (paired.modes.empty() && a.stride == paired.length && b.stride == paired.length) {
      paired.length *= count;
    } else if (!paired.modes.empty() && continues(paired.modes.back(), mode)) {
      paired.modes.back().count *= count;
    } else {
      paired.modes.push_back(mode);
    }
    from.take(count);
    to.take(count);
  }
}

std::optional<PairedStrided> refine(const Layout& source, Mode source_outer, const Layout& destination,
                                    Mode destination_outer) {
  const auto repeated = [](const Layout& layout, Mode outer) {
    // Not owned: the result lives no longer than the caller's layout.
    const LayoutPointer borrowed(LayoutPointer{}, &layout);
    return outer.count == 1 ? borrowed : repeat(borrowed, outer.count, outer.stride);
  };
  if (!source.is_strided() || !destination.is_strided()) return std::nullopt;
  return refine(*repeated(source, source_outer), *repeated(destination, destination_outer));
}

PairCursor::PairCursor(Cursor source, Cursor destination) noexcept
    : source_(std::move(source)), destination_(std::move(destination)) {}

bool PairCursor::next(PairedRun& run) noexcept {
  if (source_run_.length == 0 && !source_.next(source_run_)) return false;
  if (destination_run_.length == 0 && !destination_.next(destination_run_)) return false;
  run = {source_run_.offset, destination_run_.offset, std::min(source_run_.length, destination_run_.length)};
  for (Segment* side : {&source_run_, &destination_run_}) {
    side->offset += run.length;
    side->length -= run.length;
  }
  return true;
}

}  // namespace gapless::layout

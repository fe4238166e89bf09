// Building layouts so that equal functions get equal forms.
//
// Every builder returns a canonical layout. For nests of modes around a block the form is found in one pass, innermost
// first: a mode of count 1 is dropped, and a mode whose stride equals previous.count * previous.stride (or the block's
// length) is merged. That form is unique. Irregular layouts of up to `recognition_budget` segments are rebuilt from
// their segment list, which is unique too; larger ones keep the form their construction gave them.
#pragma once

#include <span>

#include "layout/layout.hpp"

namespace gapless::layout {

/// Longest fused segment list that is searched for structure, unless the description given was itself longer.
inline constexpr std::size_t recognition_budget = 1u << 14;

/// No bytes at all.
LayoutPointer empty();

/// `length` contiguous bytes at `base`. Postcondition: f(k) == base + k.
LayoutPointer block(Offset base, Offset length);

/// Postcondition: f(k) == child.f(k) + distance.
LayoutPointer shift(const LayoutPointer& child, Offset distance);

/// Postcondition: f(r * child.size + k) == child.f(k) + r * stride, 0 <= r < count.
LayoutPointer repeat(const LayoutPointer& child, Offset count, Offset stride);

/// Postcondition: f(i * child.size + k) == child.f(k) + offsets[i].
LayoutPointer index(const LayoutPointer& child, std::span<const Offset> offsets);

/// Contiguous runs in packed order; empty ones are dropped, adjacent ones fused.
LayoutPointer segments(std::span<const Segment> runs);

/// The terms one after the other in packed order.
LayoutPointer concatenate(std::span<const LayoutPointer> terms);

}  // namespace gapless::layout

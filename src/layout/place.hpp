// Which entry of a layout's core holds a packed byte.
#pragma once

#include <algorithm>

#include "layout/layout.hpp"

namespace gapless::layout {

struct Place {
  std::size_t entry;  ///< of the core's list or sum; 0 for a block
  Offset inside;      ///< packed byte within that entry
};

/// Precondition: 0 <= k < layout.core_size. O(1) for blocks and index lists, O(log entries) otherwise.
inline Place place_in_core(const Layout& layout, Offset k) noexcept {
  switch (layout.core) {
    case Core::block:
      return {0, k};
    case Core::index:
      return {static_cast<std::size_t>(k / layout.child->size), k % layout.child->size};
    case Core::segments: {
      std::size_t low = 0, high = layout.ends.size() - 1;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (k < layout.ends[middle]) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      return {low, low == 0 ? k : k - layout.ends[low - 1]};
    }
    case Core::sum: {
      const auto after = std::ranges::upper_bound(layout.parts, k, {}, &Part::start);
      const auto entry = static_cast<std::size_t>(after - layout.parts.begin()) - 1;
      return {entry, k - layout.parts[entry].start};
    }
  }
  return {0, k};
}

}  // namespace gapless::layout

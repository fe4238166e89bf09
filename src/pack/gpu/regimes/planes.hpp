// Elements in two orders: one mode runs fastest through the packed stream, another through memory, in smaller steps.
// What the regimes for such nests share: where the elements lie in either order, and which part of them is moved.
#pragma once

#include "pack/gpu/regimes/nest.hpp"

namespace gapless::pack::gpu {

/// The mode that runs fastest through the packed stream is `inner`, the one that runs through memory `across`; all
/// other modes (outer) number the planes that those two span. Places in the packed stream are counted in elements.
struct Planes {
  Range range;                  ///< one word is one element
  std::uint32_t inner, across;  ///< elements
  std::uint32_t across_packed;  ///< from one element to the next in memory order
  std::uint32_t first_outer, outer_count;
  std::int32_t inner_stride, across_stride;
  Nest<std::uint32_t> places;  ///< of words, for the edges
  Nest<std::uint32_t> outer_places, outer_packed;

  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return places.word_shift; }
};

/// A rectangle of a plane's elements.
struct PlanePart {
  std::uintptr_t memory;                ///< address of its first element
  std::uint32_t packed;                 ///< packed number of its first element
  std::uint32_t inner_end, across_end;  ///< how many of its elements exist in either direction
  bool is_whole;                        ///< all elements exist and belong to the range

  GAPLESS_HOST_DEVICE std::uint32_t element(const Planes& planes, std::uint32_t inner,
                                            std::uint32_t across) const noexcept {
    return packed + across * planes.across_packed + inner;
  }
  GAPLESS_HOST_DEVICE bool has(const Planes& planes, std::uint32_t inner, std::uint32_t across) const noexcept {
    if (inner >= inner_end || across >= across_end) return false;
    return element(planes, inner, across) - static_cast<std::uint32_t>(planes.range.first_word) <
           static_cast<std::uint32_t>(planes.range.word_count);
  }
};

/// The part of `inner_side` x `across_side` elements that begins at element (inner, across) of a plane.
GAPLESS_HOST_DEVICE PlanePart plane_part(const Planes& planes, std::uint32_t plane, std::uint32_t inner,
                                         std::uint32_t across, std::uint32_t inner_side,
                                         std::uint32_t across_side) noexcept {
  const std::uint32_t outer = planes.first_outer + plane;
  const Offset offset =
      planes.outer_places.at(outer) + distance(inner, planes.inner_stride) + distance(across, planes.across_stride);
  PlanePart part;
  part.memory = planes.range.memory + static_cast<std::uintptr_t>(offset);
  part.packed = static_cast<std::uint32_t>(planes.outer_packed.at(outer)) + across * planes.across_packed + inner;
  part.inner_end = planes.inner - inner < inner_side ? planes.inner - inner : inner_side;
  part.across_end = planes.across - across < across_side ? planes.across - across : across_side;
  const std::uint64_t last =
      std::uint64_t{part.packed} + std::uint64_t{across_side - 1} * planes.across_packed + inner_side - 1;
  part.is_whole = part.inner_end == inner_side && part.across_end == across_side &&
                  part.packed >= planes.range.first_word && last < planes.range.first_word + planes.range.word_count;
  return part;
}

}  // namespace gapless::pack::gpu

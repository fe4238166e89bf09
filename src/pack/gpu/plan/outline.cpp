#include "pack/gpu/plan/outline.hpp"

#include <algorithm>
#include <bit>

#include "layout/algebra/facts.hpp"
#include "pack/gpu/plan/plan.hpp"

namespace gapless::pack::gpu {
namespace {

/// As Planner::plan() has it, without a descriptor in GPU memory.
Shape shape_without_gpu(const Layout& layout, Mode outer) {
  const bool as_tree = forced_regime() == Regime::tree;
  if (!as_tree && !needs_descriptor(layout)) return shape_of(layout, outer, {});
  const layout::LayoutPointer form = form_for(layout, forced_regime());
  const Layout& described = form ? *form : layout;
  return shape_of(described, outer, serialise(described).alignment_bits, as_tree);
}

}  // namespace

Outline outline(const Layout& layout, Mode outer, Direction direction) {
  Shape shape = shape_without_gpu(layout, outer);
  shape.injective = direction == Direction::pack || layout::is_injective(layout, outer);
  const Job job{&layout, outer, 0, layout.size * outer.count, direction, nullptr, nullptr};
  const std::uint64_t bits = shape.alignment_bits | static_cast<std::uint64_t>(shape.base);
  return {regime_of(job, shape, forced_regime()), 1 << std::min(largest_word_shift, std::countr_zero(bits))};
}

const char* reason_for(Regime regime) noexcept {
  switch (regime) {
    case Regime::contiguous:
      return "bytes in a row on both sides";
    case Regime::nest:
      return "rows a fixed distance apart, or in a short table: each packed word works out its place";
    case Regime::shifted:
      return "rows whose lengths or addresses are odd: whole words are put together from aligned ones";
    case Regime::sectors:
      return "rows that are no whole 32-byte sectors: threads are given to the words of rows";
    case Regime::transpose:
      return "neighbours in one order lie far apart in the other: tiles of both pass through shared memory";
    case Regime::interleaved:
      return "fields of an array of structs: tiles of all fields pass through shared memory";
    case Regime::segments:
      return "a long list of blocks: a tile's blocks say in shared memory how far away each word lies";
    case Regime::tree:
      return "neither rows nor a list: each word is looked for from the root of the layout";
    case Regime::ordered:
      return "a byte may be named twice: one block after the other, for the last one counts";
  }
  return "";
}

}  // namespace gapless::pack::gpu

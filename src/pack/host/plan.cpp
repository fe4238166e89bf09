#include "pack/host/plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace gapless::pack::host {
namespace {

constexpr Offset cache_line = 64;
constexpr std::uint64_t longest_transposed = 16;
// Rows whose lines all stay in the first-level cache are reused without any help.
constexpr Offset reused_rows = 128;
// Few enough for the lines read to stay in one set of that cache, if their stride is a power of two.
constexpr Offset strip_width = 8;

Offset sparse_stride(const Loop& loop, Dense dense) noexcept {
  return dense == Dense::destination ? loop.source_stride : loop.destination_stride;
}

/// The nest with `width` rounds of loop `split` innermost, then loop `near`, and `strips` times that where `split` was.
Nest strip_of(const Nest& nest, int split, int near, Offset width, Offset strips) noexcept {
  Nest strip;
  strip.length = nest.length;
  strip.depth = 0;
  const auto add = [&strip](Offset count, const Loop& loop, Offset rounds) {
    if (count > 1) {
      strip.loops[strip.depth++] = {count, rounds * loop.source_stride, rounds * loop.destination_stride};
    }
  };
  add(width, nest.loops[split], 1);
  if (near != split) add(nest.loops[near].count, nest.loops[near], 1);
  for (int i = 0; i < nest.depth; ++i) {
    if (i == split) {
      add(strips, nest.loops[i], width);
    } else if (i != near) {
      add(nest.loops[i].count, nest.loops[i], 1);
    }
  }
  return strip;
}

}  // namespace

bool make_plan(const Layout& layout, Mode outer, Plan& plan) noexcept {
  if (layout.modes.size() + 1 > static_cast<std::size_t>(max_loops) - 1) return false;
  plan.layout = &layout;
  plan.length = layout.length;
  plan.depth = 0;
  Offset unit = layout.core_size;
  for (const Mode& mode : layout.modes) {
    plan.levels[plan.depth++] = {mode.count, mode.stride, unit};
    unit *= mode.count;
  }
  if (outer.count == 1) return true;
  if (plan.depth > 0 && outer.stride == plan.levels[plan.depth - 1].count * plan.levels[plan.depth - 1].stride) {
    plan.levels[plan.depth - 1].count *= outer.count;
  } else if (layout.is_contiguous() && outer.stride == layout.length) {
    plan.length *= outer.count;
  } else {
    plan.levels[plan.depth++] = {outer.count, outer.stride, unit};
  }
  return true;
}

Nest make_nest(const Plan& plan, int top, Offset count, Dense dense) noexcept {
  Nest nest;
  nest.length = plan.length;
  nest.depth = 0;
  for (int i = 0; i < top; ++i) {
    const Level& level = plan.levels[i];
    const Offset repetitions = i + 1 == top ? count : level.count;
    if (repetitions == 1) continue;
    nest.loops[nest.depth++] = loop_of(repetitions, level.stride, level.unit, dense);
  }
  return nest;
}

Nest make_nest(const Layout& layout, Dense dense) noexcept {
  Nest nest;
  nest.length = layout.length;
  nest.depth = 0;
  Offset unit = layout.length;
  for (const Mode& mode : layout.modes) {
    nest.loops[nest.depth++] = loop_of(mode.count, mode.stride, unit, dense);
    unit *= mode.count;
  }
  return nest;
}

bool is_injective(const Nest& nest, Dense dense) noexcept {
  Mode sorted[max_loops];
  for (int i = 0; i < nest.depth; ++i) sorted[i] = {nest.loops[i].count, std::abs(sparse_stride(nest.loops[i], dense))};
  std::sort(sorted, sorted + nest.depth, [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  Offset span = nest.length;
  for (int i = 0; i < nest.depth; ++i) {
    if (sorted[i].stride < span) return false;
    span += sorted[i].stride * (sorted[i].count - 1);
  }
  return true;
}

bool find_transpose(const Nest& nest, Dense dense, Transpose& transpose) noexcept {
  const auto length = static_cast<std::uint64_t>(nest.length);
  if (nest.depth < 2 || length > longest_transposed || !std::has_single_bit(length)) return false;
  int near = 1;
  while (near < nest.depth && sparse_stride(nest.loops[near], dense) != nest.length) ++near;
  if (near == nest.depth) return false;
  if (dense == Dense::source && !is_injective(nest, dense)) return false;

  // The dense side of the innermost loop is contiguous, the sparse side of the near one.
  const Loop& inner = nest.loops[0];
  const Loop& neighbours = nest.loops[near];
  const bool packs = dense == Dense::destination;
  const Loop& row = packs ? inner : neighbours;
  const Loop& column = packs ? neighbours : inner;
  transpose.log2_length = std::countr_zero(length);
  transpose.rows = row.count;
  transpose.columns = column.count;
  transpose.source_stride = row.source_stride;
  transpose.destination_stride = column.destination_stride;
  transpose.depth = 0;
  for (int i = 1; i < nest.depth; ++i) {
    if (i != near) transpose.loops[transpose.depth++] = nest.loops[i];
  }
  return true;
}

bool split_strips(const Nest& nest, Dense dense, Strips& result) noexcept {
  if (nest.depth < 2) return false;
  const Offset first = std::abs(sparse_stride(nest.loops[0], dense));
  if (first < cache_line || nest.loops[0].count < reused_rows || nest.length >= cache_line) return false;
  int near = 1;
  for (int i = 2; i < nest.depth; ++i) {
    if (std::abs(sparse_stride(nest.loops[i], dense)) < std::abs(sparse_stride(nest.loops[near], dense))) near = i;
  }
  const Offset stride = std::abs(sparse_stride(nest.loops[near], dense));
  if (stride == 0 || stride >= cache_line) return false;
  if (dense == Dense::source && !is_injective(nest, dense)) return false;

  // What is written together is contiguous: some of the packed column, or neighbours in memory.
  const int split = dense == Dense::destination ? 0 : near;
  const Loop& whole = nest.loops[split];
  const Offset width = std::min(whole.count, strip_width);
  if (width < 2) return false;
  const Offset strips = whole.count / width, left = whole.count - strips * width;
  result.main = strip_of(nest, split, near, width, strips);
  result.rest.depth = -1;
  if (left > 0) result.rest = strip_of(nest, split, near, left, 1);
  result.rest_source = strips * width * whole.source_stride;
  result.rest_destination = strips * width * whole.destination_stride;
  return true;
}

}  // namespace gapless::pack::host

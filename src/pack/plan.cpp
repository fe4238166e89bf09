#include "pack/plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace gapless::pack::host {
namespace {

constexpr Offset cache_line = 64;
constexpr std::uint64_t longest_transposed = 16;
// Rows whose lines all stay in the first-level cache are reused without any help.
constexpr Offset reused_rows = 128;

Offset sparse_stride(const Loop& loop, Dense dense) noexcept {
  return dense == Dense::destination ? loop.source_stride : loop.destination_stride;
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
    nest.loops[nest.depth++] = dense == Dense::destination ? Loop{repetitions, level.stride, level.unit}
                                                           : Loop{repetitions, level.unit, level.stride};
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

  // A strip of neighbours as wide as a line becomes the innermost loop; its lines are then read or written once.
  const Loop wide = nest.loops[near];
  const Offset width = std::min(wide.count, cache_line / stride);
  if (width < 2) return false;
  const Offset strips = wide.count / width;
  Nest& main = result.main;
  main.length = nest.length;
  main.depth = 0;
  main.loops[main.depth++] = {width, wide.source_stride, wide.destination_stride};
  for (int i = 0; i < nest.depth; ++i) {
    if (i != near) {
      main.loops[main.depth++] = nest.loops[i];
    } else if (strips > 1) {
      main.loops[main.depth++] = {strips, width * wide.source_stride, width * wide.destination_stride};
    }
  }
  const Offset left = wide.count - strips * width;
  result.rest.depth = -1;
  result.rest_source = strips * width * wide.source_stride;
  result.rest_destination = strips * width * wide.destination_stride;
  if (left > 0) {
    result.rest = main;
    result.rest.loops[0].count = left;
    int kept = left == 1 ? 0 : 1;
    for (int i = 0; i < nest.depth; ++i) {
      if (i != near) result.rest.loops[kept++] = nest.loops[i];
    }
    result.rest.depth = kept;
  }
  return true;
}

}  // namespace gapless::pack::host

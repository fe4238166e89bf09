#include "pack/gpu/plan/shape.hpp"

#include <algorithm>

namespace gapless::pack::gpu {
namespace {

bool is_table_nest(const Layout& layout) {
  return layout.core == layout::Core::index && layout.child->core == layout::Core::block;
}

std::size_t nest_modes(const Layout& layout) {
  return layout.modes.size() + (is_table_nest(layout) ? layout.child->modes.size() + 1 : 0);
}

/// Word level and repetition included.
bool fits_nest(const Layout& layout) {
  return (layout.is_strided() || is_table_nest(layout)) && nest_modes(layout) + 2 <= max_levels;
}

bool fits_segments(const Layout& layout) {
  return layout.core == layout::Core::segments && layout.modes.size() + 1 <= max_levels;
}

/// Adds a mode outside all others; merges it where the two are one.
void append(Shape& shape, Mode mode) {
  if (mode.count == 1) return;
  if (shape.mode_count == 0) {
    if (shape.kind == ShapeKind::nest && mode.stride == shape.length) {
      shape.length *= mode.count;
      return;
    }
  } else if (shape.mode_count - 1 != shape.table_mode) {
    Mode& last = shape.modes[shape.mode_count - 1];
    if (mode.stride == last.count * last.stride) {
      last.count *= mode.count;
      return;
    }
  }
  shape.modes[shape.mode_count++] = mode;
}

/// Of a list of at least two places.
Offset mean_distance(const layout::OffsetTable& offsets) {
  Offset low = offsets[0], high = offsets[0];
  for (std::size_t i = 0; i < offsets.run_count(); ++i) {
    const layout::OffsetRun run = offsets.run(i);
    const Offset last = run.offset + (run.count - 1) * run.stride;
    low = std::min({low, run.offset, last});
    high = std::max({high, run.offset, last});
  }
  return (high - low) / static_cast<Offset>(offsets.size() - 1);
}

void add_nest(Shape& shape, const Layout& layout, AlignmentBits descriptor_bits) {
  shape.kind = ShapeKind::nest;
  if (is_table_nest(layout)) {
    shape.base += layout.child->base;
    shape.length = layout.child->length;
    for (const Mode& mode : layout.child->modes) append(shape, mode);
    shape.table_mode = shape.mode_count;
    shape.modes[shape.mode_count++] = {static_cast<Offset>(layout.offsets.size()), 0};
    shape.alignment_bits = descriptor_bits.all;
    shape.place_bits = descriptor_bits.places;
  } else {
    shape.length = layout.length;
  }
}

void note_rows(Shape& shape, const Layout& layout) {
  shape.alignment_bits |= static_cast<std::uint64_t>(shape.length);
  shape.mean_run = shape.length;
  if (shape.mode_count == 0) {
    shape.kind = ShapeKind::contiguous;
    return;
  }
  shape.mean_distance = shape.table_mode == 0 ? mean_distance(layout.offsets) : magnitude(shape.modes[0].stride);
}

}  // namespace

bool needs_descriptor(const Layout& layout) { return !(layout.is_strided() && fits_nest(layout)); }

Shape shape_of(const Layout& layout, Mode outer, AlignmentBits descriptor_bits, bool as_tree) {
  Shape shape;
  shape.base = layout.base;
  shape.repetition_size = layout.size;
  shape.extent = outer.stride;
  const bool is_nest = fits_nest(layout) && !as_tree, is_list = fits_segments(layout) && !as_tree;
  if (is_nest) {
    add_nest(shape, layout, descriptor_bits);
  } else {
    shape.kind = is_list ? ShapeKind::segments : ShapeKind::tree;
    shape.alignment_bits = descriptor_bits.all;
    shape.place_bits = descriptor_bits.places;
  }
  if (is_nest || is_list) {
    for (const Mode& mode : layout.modes) append(shape, mode);
    append(shape, outer);
  } else if (outer.count > 1) {
    shape.modes[shape.mode_count++] = outer;
  }
  for (int i = 0; i < shape.mode_count; ++i) shape.place_bits |= static_cast<std::uint64_t>(shape.modes[i].stride);
  shape.alignment_bits |= shape.place_bits;
  if (is_nest) note_rows(shape, layout);
  if (is_list) {
    shape.list_size = layout.core_size;
    shape.mean_run = layout.core_size / static_cast<Offset>(layout.offsets.size());
    shape.mean_distance = mean_distance(layout.offsets);
  }
  return shape;
}

}  // namespace gapless::pack::gpu

#include "pack/host/fields.hpp"

#include <algorithm>
#include <cstdlib>

namespace gapless::pack::host {
namespace {

// Half of a first-level cache of 48 KiB, and not all of one of 32; the packed and the memory side share it.
constexpr Offset tile_bytes = 24576;
constexpr Offset shortest_tile = 16;
constexpr Offset cache_line = 64;

struct Bounds {
  Offset low, high;
};

Bounds bounds_of(const Field& field) noexcept {
  Bounds bounds{field.memory, field.memory + field.length};
  if (field.layout == nullptr) return bounds;
  for (const Mode& mode : field.layout->modes) {
    const Offset reach = mode.stride * (mode.count - 1);
    (reach < 0 ? bounds.low : bounds.high) += reach;
  }
  return bounds;
}

}  // namespace

bool Fields::add(Offset memory, Offset packed, const Layout& strided) noexcept {
  if (count == max_fields || !strided.is_strided()) return false;
  if (strided.modes.size() + 2 > static_cast<std::size_t>(max_loops)) return false;
  field[count++] = {memory + strided.base, packed, strided.length, strided.modes.empty() ? nullptr : &strided};
  return true;
}

bool Fields::collect(const Layout& record, const Level& level, Dense dense) noexcept {
  using layout::Core;
  count = 0;
  if (record.core == Core::sum) {
    for (const layout::Part& part : record.parts) {
      if (!add(0, part.start, *part.layout)) return false;
    }
  } else if (record.core == Core::index) {
    if (record.offsets.size() > static_cast<std::size_t>(max_fields)) return false;
    for (std::size_t i = 0; i < record.offsets.size(); ++i) {
      if (!add(record.offsets[i], static_cast<Offset>(i) * record.child->size, *record.child)) return false;
    }
  } else if (record.core == Core::segments) {
    if (record.offsets.size() > static_cast<std::size_t>(max_fields)) return false;
    Offset start = 0;
    for (std::size_t i = 0; i < record.offsets.size(); ++i) {
      field[count++] = {record.offsets[i], start, record.ends[i] - start, nullptr};
      start = record.ends[i];
    }
  } else {
    return false;
  }
  if (dense == Dense::source && level.count > 1 && !are_disjoint(level)) return false;

  Offset lines = 0;
  for (int i = 0; i < count; ++i) {
    const Bounds bounds = bounds_of(field[i]);
    lines += bounds.high - bounds.low + cache_line;
  }
  const Offset record_bytes = level.unit + std::min(std::abs(level.stride), lines);
  tile = std::max(shortest_tile, tile_bytes / record_bytes);
  return true;
}

bool Fields::are_plain() const noexcept {
  return std::all_of(field, field + count, [](const Field& f) { return f.layout == nullptr; });
}

bool Fields::are_disjoint(const Level& level) const noexcept {
  Bounds all = bounds_of(field[0]);
  for (int i = 0; i < count; ++i) {
    const Bounds own = bounds_of(field[i]);
    if (i > 0) {
      if (own.low < all.high) return false;
      all.high = own.high;
    }
    if (field[i].layout != nullptr) {
      Nest nest;
      nest.length = field[i].length;
      nest.depth = 0;
      for (const Mode& mode : field[i].layout->modes) nest.loops[nest.depth++] = {mode.count, 0, mode.stride};
      if (!is_injective(nest, Dense::source)) return false;
    }
  }
  return std::abs(level.stride) >= all.high - all.low;
}

Nest Fields::nest(const Field& field, Offset records, const Level& level, Dense dense) const noexcept {
  Nest nest;
  nest.length = field.length;
  nest.depth = 0;
  nest.loops[nest.depth++] = loop_of(records, level.stride, level.unit, dense);
  if (field.layout != nullptr) {
    Offset unit = field.length;
    for (const Mode& mode : field.layout->modes) {
      nest.loops[nest.depth++] = loop_of(mode.count, mode.stride, unit, dense);
      unit *= mode.count;
    }
    // The longest of the two innermost loops runs inside.
    if (nest.loops[1].count > records) std::swap(nest.loops[0], nest.loops[1]);
  }
  return nest;
}

Pair Fields::pair(int first, Offset records, const Level& level, Dense dense) const noexcept {
  const Field& one = field[first];
  const Field& other = field[first + 1];
  const Loop gaps = loop_of(0, other.memory - one.memory, other.packed - one.packed, dense);
  return {{one.length, other.length},
          gaps.source_stride,
          gaps.destination_stride,
          loop_of(records, level.stride, level.unit, dense)};
}

}  // namespace gapless::pack::host

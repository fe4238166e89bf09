// What every layout answers: equality, hash, memory, and f(k) itself.
#include "layout/layout.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "layout/place.hpp"

namespace gapless::layout {

bool operator==(const Layout& a, const Layout& b) noexcept {
  if (&a == &b) return true;
  if (a.size != b.size || a.base != b.base || a.core != b.core || a.core_size != b.core_size || a.modes != b.modes) {
    return false;
  }
  switch (a.core) {
    case Core::block:
      return a.length == b.length;
    case Core::index:
      return a.offsets == b.offsets && *a.child == *b.child;
    case Core::segments:
      return a.offsets == b.offsets && a.ends == b.ends;
    case Core::sum:
      return std::ranges::equal(a.parts, b.parts, [](const Part& left, const Part& right) {
        return left.start == right.start && *left.layout == *right.layout;
      });
  }
  return false;
}

namespace {

std::uint64_t mix_table(std::uint64_t key, const OffsetTable& table) noexcept {
  key = mix(key, table.size());
  // Of long tables a few runs from all over: what differs, differs there mostly.
  constexpr std::size_t most = 256;
  const std::size_t step = table.run_count() / most + 1;
  for (std::size_t i = 0; i < table.run_count(); i += step) {
    const OffsetRun run = table.run(i);
    key = mix(key, static_cast<std::uint64_t>(run.offset));
    key = mix(key, static_cast<std::uint64_t>(run.count));
  }
  return key;
}

}  // namespace

std::size_t hash(const Layout& layout) noexcept {
  std::uint64_t key = mix(static_cast<std::uint64_t>(layout.core), static_cast<std::uint64_t>(layout.size));
  key = mix(key, static_cast<std::uint64_t>(layout.base));
  for (const Mode& mode : layout.modes) {
    key = mix(key, static_cast<std::uint64_t>(mode.count));
    key = mix(key, static_cast<std::uint64_t>(mode.stride));
  }
  switch (layout.core) {
    case Core::block:
      break;
    case Core::index:
      key = mix(mix_table(key, layout.offsets), hash(*layout.child));
      break;
    case Core::segments:
      key = mix_table(mix_table(key, layout.offsets), layout.ends);
      break;
    case Core::sum:
      for (const Part& part : layout.parts) key = mix(key, hash(*part.layout));
      break;
  }
  return key;
}

Offset offset_of(const Layout& layout, Offset k) noexcept {
  Offset offset = layout.base;
  Offset repetition = k / layout.core_size;
  k %= layout.core_size;
  for (const Mode& mode : layout.modes) {
    offset += repetition % mode.count * mode.stride;
    repetition /= mode.count;
  }
  const Place place = place_in_core(layout, k);
  switch (layout.core) {
    case Core::block:
      return offset + place.inside;
    case Core::index:
      return offset + layout.offsets[place.entry] + offset_of(*layout.child, place.inside);
    case Core::segments:
      return offset + layout.offsets[place.entry] + place.inside;
    case Core::sum:
      return offset + offset_of(*layout.parts[place.entry].layout, place.inside);
  }
  return offset;
}

std::size_t memory_bytes(const Layout& layout) noexcept {
  std::size_t bytes = layout.modes.capacity() * sizeof(Mode) + layout.offsets.memory_bytes() +
                      layout.ends.memory_bytes() + layout.parts.capacity() * sizeof(Part);
  if (layout.child) bytes += sizeof(Layout) + memory_bytes(*layout.child);
  for (const Part& part : layout.parts) bytes += sizeof(Layout) + memory_bytes(*part.layout);
  return bytes;
}

}  // namespace gapless::layout

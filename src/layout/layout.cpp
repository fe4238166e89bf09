// What every layout answers: equality, hash, memory, and f(k) itself.
#include "layout/layout.hpp"

#include <algorithm>

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

void mix(std::size_t& seed, std::uint64_t value) noexcept {
  // The finalizer of splitmix64: every bit of the input reaches every bit of the output.
  std::uint64_t mixed = seed + 0x9e3779b97f4a7c15u + value;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  seed = mixed ^ (mixed >> 31);
}

void mix(std::size_t& seed, const OffsetTable& table) noexcept {
  mix(seed, table.size());
  // Of long tables a few runs from all over: what differs, differs there mostly.
  constexpr std::size_t most = 256;
  const std::size_t step = table.run_count() / most + 1;
  for (std::size_t i = 0; i < table.run_count(); i += step) {
    const OffsetRun run = table.run(i);
    mix(seed, static_cast<std::uint64_t>(run.offset));
    mix(seed, static_cast<std::uint64_t>(run.count));
  }
}

}  // namespace

std::size_t hash(const Layout& layout) noexcept {
  std::size_t seed = static_cast<std::size_t>(layout.core);
  mix(seed, static_cast<std::uint64_t>(layout.size));
  mix(seed, static_cast<std::uint64_t>(layout.base));
  for (const Mode& mode : layout.modes) {
    mix(seed, static_cast<std::uint64_t>(mode.count));
    mix(seed, static_cast<std::uint64_t>(mode.stride));
  }
  switch (layout.core) {
    case Core::block:
      break;
    case Core::index:
      mix(seed, layout.offsets);
      mix(seed, hash(*layout.child));
      break;
    case Core::segments:
      mix(seed, layout.offsets);
      mix(seed, layout.ends);
      break;
    case Core::sum:
      for (const Part& part : layout.parts) mix(seed, hash(*part.layout));
      break;
  }
  return seed;
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

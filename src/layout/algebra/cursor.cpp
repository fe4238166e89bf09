// A cursor is an odometer over the modes of every level of the layout that the current byte lies in: level 0 is the
// whole layout with its outer repetition, level i + 1 the child or part that level i is in. Seeking divides; stepping
// counts.
#include "layout/algebra/cursor.hpp"

#include <algorithm>

#include "layout/place.hpp"

namespace gapless::layout {

namespace {

struct Level {
  const Layout* layout = nullptr;
  std::span<const Mode> modes;
  std::size_t first_digit = 0;  ///< where this level's digits begin in State::digits
  Offset origin = 0;            ///< memory offset of the core's present repetition
  std::size_t entry = 0;        ///< present entry of the core's list or sum
};

std::size_t entries(const Layout& layout) noexcept {
  switch (layout.core) {
    case Core::block:
      return 1;
    case Core::index:
    case Core::segments:
      return layout.offsets.size();
    case Core::sum:
      return layout.parts.size();
  }
  return 1;
}

/// Adds the most modes that any layout `depth` levels down has.
void measure_levels(const Layout& layout, std::size_t depth, std::vector<std::size_t>& modes) {
  if (modes.size() <= depth) modes.push_back(0);
  modes[depth] = std::max(modes[depth], layout.modes.size());
  if (layout.child) measure_levels(*layout.child, depth + 1, modes);
  for (const Part& part : layout.parts) measure_levels(*part.layout, depth + 1, modes);
}

}  // namespace

struct Cursor::State {
  std::vector<Mode> outermost_modes;  ///< level 0's, with the outer repetition
  std::vector<Level> levels;
  std::vector<Offset> digits;
  std::size_t depth = 0;  ///< present innermost level
  Offset skip = 0;        ///< bytes of the present run before the range
  Offset left = 0;        ///< bytes of the range still to visit

  void seek(Offset k) noexcept;
  void descend(Offset k) noexcept;
  Segment present() const noexcept;
  void advance() noexcept;
  bool step_modes(Level& level) noexcept;
};

Cursor::Cursor(const Layout& layout, Mode outer, Offset begin, Offset end) : state_(std::make_unique<State>()) {
  if (layout.is_empty() || begin >= end) return;
  State& state = *state_;
  state.left = end - begin;
  state.outermost_modes.reserve(layout.modes.size() + 1);
  state.outermost_modes = layout.modes;
  if (outer.count > 1) state.outermost_modes.push_back(outer);
  std::vector<std::size_t> modes;
  measure_levels(layout, 0, modes);
  modes[0] = state.outermost_modes.size();
  std::size_t digits = 0;
  for (const std::size_t count : modes) {
    state.levels.emplace_back().first_digit = digits;
    digits += count;
  }
  state.digits.resize(digits);
  state.levels[0].layout = &layout;
  state.levels[0].modes = state.outermost_modes;
  state.levels[0].origin = layout.base;
  state.seek(begin);
}

Cursor::~Cursor() = default;
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor& Cursor::operator=(Cursor&&) noexcept = default;

/// Goes to packed byte k, counted from the beginning of the present level.
void Cursor::State::seek(Offset k) noexcept {
  Level& level = levels[depth];
  const Layout& layout = *level.layout;
  Offset repetition = k / layout.core_size;
  for (std::size_t i = 0; i < level.modes.size(); ++i) {
    const Mode mode = level.modes[i];
    const Offset digit = repetition % mode.count;
    repetition /= mode.count;
    digits[level.first_digit + i] = digit;
    level.origin += digit * mode.stride;
  }
  const Place place = place_in_core(layout, k % layout.core_size);
  level.entry = place.entry;
  if (layout.core == Core::index || layout.core == Core::sum) {
    descend(place.inside);
  } else {
    skip = place.inside;
  }
}

/// From the present level into its present entry, at packed byte k of that.
void Cursor::State::descend(Offset k) noexcept {
  const Level& level = levels[depth];
  Level& inner = levels[++depth];
  const bool is_index = level.layout->core == Core::index;
  inner.layout = is_index ? level.layout->child.get() : level.layout->parts[level.entry].layout.get();
  inner.modes = inner.layout->modes;
  inner.origin = level.origin + inner.layout->base + (is_index ? level.layout->offsets[level.entry] : 0);
  seek(k);
}

Segment Cursor::State::present() const noexcept {
  const Level& level = levels[depth];
  const Layout& layout = *level.layout;
  if (layout.core == Core::block) return {level.origin, layout.length};
  const Offset begin = level.entry == 0 ? 0 : layout.ends[level.entry - 1];
  return {level.origin + layout.offsets[level.entry], layout.ends[level.entry] - begin};
}

/// To the next repetition of the level's core; false, with the level back at its first, when there is none.
bool Cursor::State::step_modes(Level& level) noexcept {
  for (std::size_t i = 0; i < level.modes.size(); ++i) {
    const Mode mode = level.modes[i];
    Offset& digit = digits[level.first_digit + i];
    if (++digit < mode.count) {
      level.origin += mode.stride;
      return true;
    }
    level.origin -= (mode.count - 1) * mode.stride;
    digit = 0;
  }
  return false;
}

void Cursor::State::advance() noexcept {
  for (;;) {
    Level& level = levels[depth];
    if (++level.entry < entries(*level.layout)) break;
    level.entry = 0;
    if (step_modes(level)) break;
    --depth;  // bytes are left, so some outer level has a next entry
  }
  const Core core = levels[depth].layout->core;
  if (core == Core::index || core == Core::sum) descend(0);
}

bool Cursor::next(Segment& run) noexcept {
  State& state = *state_;
  if (state.left == 0) return false;
  run = state.present();
  run.offset += state.skip;
  run.length = std::min(run.length - state.skip, state.left);
  state.skip = 0;
  state.left -= run.length;
  if (state.left != 0) state.advance();
  return true;
}

Offset segment_count(const Layout& layout) noexcept {
  if (layout.is_empty()) return 0;
  Offset count = 0;
  switch (layout.core) {
    case Core::block:
      count = 1;
      break;
    case Core::index:
      count = static_cast<Offset>(layout.offsets.size()) * segment_count(*layout.child);
      break;
    case Core::segments:
      count = static_cast<Offset>(layout.offsets.size());
      break;
    case Core::sum:
      for (const Part& part : layout.parts) count += segment_count(*part.layout);
      break;
  }
  return count * (layout.size / layout.core_size);
}

}  // namespace gapless::layout

// Layouts in words, short enough for one line whatever their size.
#include <algorithm>
#include <string>

#include "layout/text/text.hpp"

namespace gapless::layout {

namespace {

/// Entries of a list that are written out; the rest is counted.
constexpr std::size_t shown_entries = 4;

template <class Item>
std::string list_of(std::size_t size, Item item) {
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(size, shown_entries); ++i) text += (i == 0 ? "" : ", ") + item(i);
  return text + (size > shown_entries ? ", …]" : "]");
}

std::string core_of(const Layout& layout) {
  const std::string entries = std::to_string(std::max(layout.offsets.size(), layout.parts.size()));
  switch (layout.core) {
    case Core::block:
      return "block " + std::to_string(layout.length) + " B";
    case Core::index:
      return entries + " offsets " +
             list_of(layout.offsets.size(), [&](std::size_t i) { return std::to_string(layout.offsets[i]); }) +
             " of {" + describe(*layout.child) + "}";
    case Core::segments:
      return entries + " runs " + list_of(layout.offsets.size(), [&](std::size_t i) {
               const Offset begin = i == 0 ? 0 : layout.ends[i - 1];
               return std::to_string(layout.ends[i] - begin) + " B at " + std::to_string(layout.offsets[i]);
             });
    case Core::sum:
      return entries + " parts " +
             list_of(layout.parts.size(), [&](std::size_t i) { return "{" + describe(*layout.parts[i].layout) + "}"; });
  }
  return {};
}

}  // namespace

std::string describe(const Layout& layout) {
  if (layout.is_empty()) return "nothing";
  std::string text = core_of(layout) + " at " + std::to_string(layout.base);
  if (layout.modes.empty()) return text;
  text += ", modes ";
  for (std::size_t i = 0; i < layout.modes.size(); ++i) {
    const Mode& mode = layout.modes[i];
    text += (i == 0 ? "(" : " (") + std::to_string(mode.count) + " x " + std::to_string(mode.stride) + ")";
  }
  return text;
}

}  // namespace gapless::layout

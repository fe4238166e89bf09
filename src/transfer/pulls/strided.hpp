// A strided layout as plain bytes, for the peer whose GPU reads the sender's memory.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "layout/algebra/facts.hpp"
#include "layout/layout.hpp"
#include "layout/span.hpp"

namespace gapless::transfer::pulls {

/// Has no padding, so that equal layouts have equal bytes.
struct Strided {
  static constexpr std::size_t most_modes = 8;

  layout::Offset base = 0;
  layout::Offset length = 0;  ///< of a block
  layout::Offset mode_count = 0;
  std::array<layout::Mode, most_modes> modes{};  ///< innermost first; zeros beyond mode_count
};

/// A message in its sender's memory, as the sender tells the receiver of it.
struct StridedMessage {
  std::uint64_t address = 0;  ///< in the sender, where the layout's offsets begin
  std::int64_t count = 0, extent = 0;
  Strided layout;
};

/// The description of a layout; nothing where the layout is not strided, or has more than `most_modes` modes.
std::optional<Strided> describe(const layout::Layout& layout) noexcept;

/// A layout that a peer has described.
struct Understood {
  layout::LayoutPointer layout;
  layout::Facts facts;
};
/// The layout of a description. The calling thread keeps the last ones, and the result stays until the thread's next
/// call. Null where the bytes describe no layout, or there is no memory.
const Understood* understand(const Strided& description) noexcept;

/// The span of `count` repetitions, `extent` bytes apart, of a layout with those facts. Nothing where `count` is less
/// than 1, or the numbers overflow.
std::optional<layout::Span> span_of(const layout::Facts& facts, layout::Offset count, layout::Offset extent) noexcept;

}  // namespace gapless::transfer::pulls

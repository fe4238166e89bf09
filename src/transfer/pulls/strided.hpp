// A strided layout as plain bytes, for the peer that reads the memory it lies in.
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
  std::uint64_t address = 0;  ///< the sender's, that the layout's offsets are relative to
  std::int64_t count = 0, extent = 0;
  Strided layout;
};

/// Nothing for layouts that are not strided, or have more modes.
std::optional<Strided> describe(const layout::Layout& layout) noexcept;

/// A layout that a peer has described.
struct Understood {
  layout::LayoutPointer layout;
  layout::Facts facts;
};
/// The calling thread's, which has cached those that it met last; they stay until it meets another. Null where that is
/// the description of no layout, or there is no memory.
const Understood* understand(const Strided& description) noexcept;

/// The bytes that `count` repetitions of what has those facts take, `extent` bytes apart. Nothing where there are none,
/// or the numbers do not fit.
std::optional<layout::Span> span_of(const layout::Facts& facts, layout::Offset count, layout::Offset extent) noexcept;

}  // namespace gapless::transfer::pulls

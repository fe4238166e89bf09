#include "transfer/pulls/strided.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>

#include "base/hash.hpp"
#include "base/per_thread.hpp"
#include "layout/algebra/canonical.hpp"

namespace gapless::transfer::pulls {

using layout::LayoutPointer;
using layout::Mode;
using layout::Offset;

static_assert(std::has_unique_object_representations_v<Strided>);

std::optional<Strided> describe(const layout::Layout& layout) noexcept {
  if (!layout.is_strided() || layout.modes.size() > Strided::most_modes) return {};
  Strided result{layout.base, layout.length, static_cast<Offset>(layout.modes.size()), {}};
  std::copy(layout.modes.begin(), layout.modes.end(), result.modes.begin());
  return result;
}

namespace {

struct Cached {
  Strided description;
  Understood understood;
};

LayoutPointer build(const Strided& description) {
  LayoutPointer result = layout::block(0, description.length);
  Offset size = description.length;
  for (Offset i = 0; i < description.mode_count; ++i) {
    const Mode& mode = description.modes[static_cast<std::size_t>(i)];
    if (mode.count < 2 || __builtin_mul_overflow(size, mode.count, &size)) return nullptr;
    result = layout::repeat(result, mode.count, mode.stride);
  }
  return layout::shift(result, description.base);
}

}  // namespace

const Understood* understand(const Strided& description) noexcept try {
  const bool is_one = description.length > 0 && description.mode_count >= 0 &&
                      description.mode_count <= static_cast<Offset>(Strided::most_modes);
  if (!is_one) return nullptr;
  constexpr unsigned place_bits = 8;  // a halo has 26 layouts, which should seldom meet
  // Unsigned, for any number must do: another process has written them.
  const auto number = [](Offset value) { return static_cast<std::uint64_t>(value); };
  std::uint64_t hash = number(description.base) ^ number(description.length) << 20;
  for (const Mode& mode : description.modes) hash = mix(hash, number(mode.count) + 3 * number(mode.stride));
  Cached& cached = of_this_thread<std::array<Cached, std::size_t{1} << place_bits>>()[hash >> (64 - place_bits)];
  if (cached.understood.layout != nullptr && std::memcmp(&cached.description, &description, sizeof description) == 0)
    return &cached.understood;
  LayoutPointer layout = build(description);
  if (layout == nullptr) return nullptr;
  const layout::Facts facts = layout::facts_of(*layout);
  cached = {description, {std::move(layout), facts}};
  return &cached.understood;
} catch (const std::exception&) {
  return nullptr;
}

std::optional<layout::Span> span_of(const layout::Facts& facts, Offset count, Offset extent) noexcept {
  if (count < 1) return std::nullopt;
  return layout::span_of({facts.true_lower_bound, facts.true_upper_bound}, count, extent);
}

}  // namespace gapless::transfer::pulls

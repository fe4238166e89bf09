#include "model/corrections/agreed_way.hpp"

#include <algorithm>
#include <bit>

namespace gapless::model {
namespace {

/// Is that the odd call an eighth of the way from a power of two, eight or more, to the next?
constexpr bool is_an_eighth_further(std::uint32_t call) noexcept {
  const std::uint32_t power = std::bit_floor(call);
  return power >= 8 && call == ((power + power / 8) | 1);
}

}  // namespace

bool AgreedWay::is_vote_due() noexcept {
  ++calls_;
  return std::has_single_bit(calls_) || is_an_eighth_further(calls_);
}

void AgreedWay::decide(Wish wish, float library_ns, float other_ns) noexcept {
  is_timed_ = wish == Wish::sooner;
  if (!is_timed_) {
    least_ = {};
    return take(wish == Wish::other ? Way::other : Way::library);
  }
  take(sooner(library_ns, other_ns));
}

AgreedWay::Way AgreedWay::sooner(float library_ns, float other_ns) const noexcept {
  if (other_ns == unknown_ns) return Way::other;
  if (library_ns == unknown_ns) return Way::library;
  const Way best = other_ns < library_ns ? Way::other : Way::library;
  const auto [least, most] = std::minmax(library_ns, other_ns);
  constexpr std::uint32_t first_trial = 16;
  const bool is_tried = std::has_single_bit(calls_) && calls_ >= first_trial && most < worth_trying * least;
  return is_tried == (best == Way::library) ? Way::other : Way::library;
}

void AgreedWay::take(Way way) noexcept {
  is_first_ = calls_ <= 1 || way != way_;
  way_ = way;
  Least& least = of(way);
  if (std::has_single_bit(calls_) && least.now_ns != unknown_ns) least = {.before_ns = least.now_ns};
}

void AgreedWay::note(float ns) noexcept {
  if (!is_first_) of(way_).now_ns = std::min(of(way_).now_ns, ns);
  is_first_ = false;
}

}  // namespace gapless::model

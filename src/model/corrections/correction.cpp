#include "model/corrections/correction.hpp"

#include <algorithm>

namespace gapless::model {

Correction::Turn Correction::next() noexcept {
  if (--until_trial_ == 0) {
    until_trial_ = messages_until_trial();
    return {opposite(in_use_), true};
  }
  if (--until_timed_ != 0) return {in_use_, false};
  until_timed_ = period;
  return {in_use_, true};
}

/// A trial takes so much longer than a message the usual way; spread over this many, that is a part in `period`.
std::uint32_t Correction::messages_until_trial() noexcept {
  const float used = times(in_use_).median(0), tried = times(opposite(in_use_)).median(0);
  if (used <= 0 || tried <= 0) return before_other;
  constexpr float most = 1 << 20;
  return static_cast<std::uint32_t>(std::clamp((tried / used - 1) * period, static_cast<float>(period), most));
}

void Correction::note(Way way, float ns) noexcept {
  times(way).add(ns);
  const Way tried = opposite(in_use_);
  if (!times(in_use_).are_enough() || !times(tried).are_enough()) return;
  if (times(tried).median(0) < margin * times(in_use_).median(0)) in_use_ = tried;
}

}  // namespace gapless::model

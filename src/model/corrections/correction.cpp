#include "model/corrections/correction.hpp"

#include <algorithm>

namespace gapless::model {

Correction::Turn Correction::next() noexcept {
  if (--until_trial_ == 0) {
    until_trial_ = messages_until_trial();
    return {opposite(in_use_), true};
  }
  if (--until_timed_ != 0) return {in_use_, false};
  until_timed_ = cost(in_use_).own.are_enough() ? period : first_period;
  return {in_use_, true};
}

/// Messages until the next trial: so many that the time which a trial takes beyond a usual message is one part in
/// `period` of the time of all.
std::uint32_t Correction::messages_until_trial() noexcept {
  const Times& other = cost(opposite(in_use_)).until_next;
  const float used = cost(in_use_).until_next.median(0), tried = other.median(0);
  if (used <= 0 || tried <= 0) return before_other;
  constexpr float most = 1 << 20;
  const auto fewest_between = static_cast<float>(other.are_enough() ? period : first_trials);
  return static_cast<std::uint32_t>(std::clamp((tried / used - 1) * period, fewest_between, most));
}

bool Correction::is_better(Way tried) noexcept {
  const Cost &one = cost(tried), &used = cost(in_use_);
  const float one_ns = one.until_next.median(0), used_ns = used.until_next.median(0);
  if (one_ns < margin * used_ns) return true;
  return margin * one_ns <= used_ns && one.own.median(0) < margin * used.own.median(0);
}

void Correction::note(Way way, float ns, float until_next_ns) noexcept {
  cost(way).own.add(ns);
  cost(way).until_next.add(until_next_ns);
  const Way tried = opposite(in_use_);
  if (cost(in_use_).own.are_enough() && cost(tried).own.are_enough() && is_better(tried)) in_use_ = tried;
}

}  // namespace gapless::model

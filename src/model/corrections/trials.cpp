#include "model/corrections/trials.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gapless::model {

Trials::Trials(std::span<const double> predicted_ns) noexcept {
  const auto known = predicted_ns.first(std::min(predicted_ns.size(), most_ways));
  const auto least = std::ranges::min_element(known);
  if (least == known.end()) return;
  in_use_ = running_ = static_cast<std::uint8_t>(least - known.begin());
  for (std::size_t way = 0; way < known.size(); ++way) {
    if (way != in_use_ && std::isfinite(known[way]) && known[way] <= worth_trying * *least)
      compared_[way].runs_until_trial = 2;
  }
}

Trials::Turn Trials::next() noexcept {
  if (begun_ == run) {
    end_run();
    begin_run();
  }
  ++begun_;
  const bool is_first_look = running_ != in_use_ && begun_ <= first_looks;
  return {running_, is_first_look || (begun_ > run / 2 && is_watched_), is_first_look, number_};
}

void Trials::note(const Turn& turn, float ns) noexcept {
  if (turn.number != number_ || noted_ == noted_ns_.size()) return;  // its run is over
  if (turn.is_first_look) return look(ns);
  noted_ns_[noted_++] = ns;
}

void Trials::look(float ns) noexcept {
  least_looked_ns_ = looked_at_ == 0 ? ns : std::min(least_looked_ns_, ns);
  if (++looked_at_ < first_looks || least_looked_ns_ < hopeless * usual_ns_) return;
  noted_ns_[noted_++] = least_looked_ns_;
  begun_ = run;
}

float Trials::cost_ns() noexcept {
  constexpr std::uint32_t longest = 4;  // the longest of so many do not count: one in four
  if (noted_ == 0) return 0;
  const auto counted = noted_ns_.begin() + (noted_ - noted_ / longest);
  std::nth_element(noted_ns_.begin(), counted, noted_ns_.begin() + noted_);
  return std::accumulate(noted_ns_.begin(), counted, 0.0F) / static_cast<float>(counted - noted_ns_.begin());
}

void Trials::begin_run() noexcept {
  begun_ = noted_ = looked_at_ = 0;
  ++number_;
  const bool may_try = running_ == in_use_ && usual_ns_ > 0;
  running_ = in_use_;
  std::uint32_t fewest_comparisons = 0;
  for (std::size_t way = 0; way < most_ways; ++way) {
    std::uint32_t& left = compared_[way].runs_until_trial;
    if (way == in_use_ || left == 0) continue;
    if (left > 1) {
      --left;
    } else if (may_try && (running_ == in_use_ || compared_[way].times.count() < fewest_comparisons)) {
      running_ = static_cast<std::uint8_t>(way);
      fewest_comparisons = compared_[way].times.count();
    }
  }
  const auto is_next = [](const Compared& way) { return way.runs_until_trial == 1; };
  is_watched_ = running_ != in_use_ || tried_ns_ > 0 || std::ranges::any_of(compared_, is_next);
}

void Trials::end_run() noexcept {
  const float ns = cost_ns();
  if (running_ != in_use_) {
    tried_ = running_;
    tried_ns_ = ns;
    if (ns == 0) postpone();
    return;
  }
  const float before_ns = std::exchange(usual_ns_, ns);
  if (tried_ns_ > 0 && ns > 0) {
    compare(tried_ns_ / std::min(before_ns, ns));
  } else if (tried_ns_ > 0) {
    postpone();
  }
  tried_ns_ = 0;
}

/// A trial has shown nothing, because too little was noted of it or of the run after it.
void Trials::postpone() noexcept {
  Compared& tried = compared_[tried_];
  tried.runs_until_trial = 8U << tried.doublings;
  if (tried.doublings < most_doublings) ++tried.doublings;
}

void Trials::compare(float times) noexcept {
  Compared& tried = compared_[tried_];
  tried.times.add(times);
  tried.runs_until_trial = runs_between(tried, times);
  if (times < margin) {
    tried.doublings = 0;
  } else if (tried.times.are_enough() && tried.doublings < most_doublings) {
    ++tried.doublings;
  }
  if (tried.is_better()) leave_for(tried_);
}

bool Trials::Compared::is_better() const noexcept {
  if (times.are_enough()) return times.median(1) < margin;
  return times.count() >= 2 && times.greatest(1) < clear;
}

void Trials::leave_for(std::uint8_t way) noexcept {
  const float times = compared_[way].median();
  for (Compared& each : compared_) each.times.divide_by(times);
  compared_[way] = {};
  compared_[in_use_] = {.runs_until_trial = 1};
  in_use_ = way;
  usual_ns_ = 0;
}

/// Runs until the next trial of a way: so many that all trials together take one part in sixteen of the time beyond the
/// usual way. A way that the last comparison finds sooner is tried again at once.
std::uint32_t Trials::runs_between(const Compared& way, float last) noexcept {
  constexpr float share = 16 * (most_ways - 1), too_slow_to_hurry = 1.5F, slow = 1.1F;
  const float slower = way.median() - 1;
  const bool hurries = way.median() < (way.times.count() < 2 ? too_slow_to_hurry : slow);
  if ((!way.times.are_enough() && hurries) || last < margin) return 1;
  const auto doubled = static_cast<float>(1U << way.doublings);
  return static_cast<std::uint32_t>(
      std::clamp(doubled * slower * share, doubled * share / 2, static_cast<float>(most_runs)));
}

}  // namespace gapless::model

#include "model/trials.hpp"

#include <algorithm>
#include <cmath>

namespace gapless::model {

float Trials::Costs::median() const noexcept {
  const std::size_t known = std::min<std::size_t>(count, kept);
  if (known == 0) return 0;
  std::array<float, kept> sorted = last;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(known / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(known));
  return *middle;
}

void Trials::Costs::add(float ns) noexcept {
  last[count % kept] = ns;
  // What has wrapped still counts as enough.
  count = count + 1 == 2 * kept ? kept : count + 1;
}

Trials::Trials(std::span<const double> predicted_ns) noexcept {
  const auto known = predicted_ns.first(std::min(predicted_ns.size(), most_ways));
  const auto least = std::ranges::min_element(known);
  if (least == known.end()) return;
  in_use_ = running_ = static_cast<std::uint8_t>(least - known.begin());
  std::uint32_t first = 2;
  for (std::size_t way = 0; way < known.size(); ++way) {
    if (way != in_use_ && std::isfinite(known[way]) && known[way] <= worth_trying * *least)
      costs_[way].runs_until_trial = first++;
  }
}

Trials::Turn Trials::next() noexcept {
  if (begun_ == run) begin_run();
  const bool is_timed = ++begun_ > run / 2;
  return {running_, is_timed, number_};
}

void Trials::note(const Turn& turn, float ns) noexcept {
  if (turn.number != number_) return;
  total_ns_ += ns;
  ++noted_;
}

void Trials::begin_run() noexcept {
  end_run();
  begun_ = noted_ = 0;
  total_ns_ = 0;
  ++number_;
  running_ = in_use_;
  for (std::size_t way = 0; way < most_ways; ++way) {
    std::uint32_t& left = costs_[way].runs_until_trial;
    if (way == in_use_ || left == 0) continue;
    if (left > 1) {
      --left;
    } else if (running_ == in_use_) {
      running_ = static_cast<std::uint8_t>(way);
    }
  }
}

/// Messages of this run that end later count for nothing.
void Trials::end_run() noexcept {
  if (noted_ > 0) costs_[running_].add(total_ns_ / static_cast<float>(noted_));
  if (running_ == in_use_) return;
  Costs &tried = costs_[running_], &used = costs_[in_use_];
  if (std::min(tried.count, used.count) >= fewest && tried.median() < margin * used.median()) {
    used.runs_until_trial = runs_between(used);
    in_use_ = running_;
  } else {
    tried.runs_until_trial = runs_between(tried);
  }
}

/// A trial takes so much longer than a run the usual way; spread over so many, all trials take a part in sixteen.
std::uint32_t Trials::runs_between(const Costs& way) const noexcept {
  constexpr std::uint32_t soon = 3;
  if (way.count < fewest) return soon;
  constexpr float share = 16 * (most_ways - 1);
  const float used = costs_[in_use_].median();
  const float slower = used > 0 ? way.median() / used - 1 : 0;
  return static_cast<std::uint32_t>(std::clamp(slower * share, share / 2, static_cast<float>(most_runs)));
}

}  // namespace gapless::model

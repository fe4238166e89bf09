#include "model/corrections/filling.hpp"

namespace gapless::model {

Filling::Turn Filling::next() noexcept {
  const std::uint32_t number = filled_.fetch_add(1, std::memory_order_relaxed);
  if (number < untimed) return {};
  const std::uint32_t every = timed_every_.load(std::memory_order_relaxed);
  const bool is_timed = number % every == 0, is_string_next = number / every % 2 != 0;
  return {.is_timed = is_timed, .is_by_string = is_timed ? is_string_next : is_far()};
}

void Filling::note(Turn turn, float ns_per_byte) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  (turn.is_by_string ? by_string_ : ordinary_).add(ns_per_byte);
  if (!ordinary_.are_enough() || !by_string_.are_enough()) return;
  timed_every_.store(timed_later, std::memory_order_relaxed);
  is_far_.store(ordinary_.median(0) > far * by_string_.median(0), std::memory_order_relaxed);
}

}  // namespace gapless::model

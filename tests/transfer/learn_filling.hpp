// A sender that has found out how far a receiver is.
#pragma once

#include "model/corrections/filling.hpp"

namespace gapless::tests {

/// As fillings go for a reader that is so near, or so far, that ordinary stores take so many times what string copies
/// do longer than in the writer's own memory: until that is known, and then `more`.
inline void learn(model::Filling& filling, float times, unsigned more) {
  constexpr unsigned first = model::Filling::untimed + 2 * model::Filling::enough * model::Filling::timed_at_first;
  for (unsigned i = 0; i < first + more; ++i)
    if (const auto turn = filling.next(); turn.is_timed) filling.note(turn, turn.is_by_string ? 1 : times);
}

}  // namespace gapless::tests

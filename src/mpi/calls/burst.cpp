#include "mpi/calls/burst.hpp"

#include "base/hash.hpp"

namespace gapless::mpi::burst {

[[gnu::tls_model("initial-exec")]] constinit thread_local State state;

transfer::HostWay Message::join(std::uint64_t key) noexcept {
  if (!is_open()) {
    state.is_chosen = false;
    state.whole = 0;
    state.trial.emplace(key);
  }
  state.whole = mix(state.whole, key);
  return state.trial->way();
}

void end(int count) noexcept {
  if (!is_open()) return;  // a callback of the program, which MPI_Waitall has called, has completed requests
  if (state.trial->way() == transfer::HostWay::packed && !state.is_chosen) {
    state.trial->was_left_alone();
  } else {
    state.trial->end(mix(state.whole, static_cast<std::uint64_t>(count)));
  }
  state.trial.reset();
}

}  // namespace gapless::mpi::burst

#include "mpi/calls/tried/burst.hpp"

#include "base/hash.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::burst {

[[gnu::tls_model("initial-exec")]] constinit thread_local State state;

namespace {

/// Was the burst to be packed, and have all of its messages gone to the library as they are? Tells the burst's trial.
bool has_gone_native() noexcept {
  if (state.trial->way() != transfer::HostWay::packed || state.is_chosen) return false;
  state.trial->went_native();
  return true;
}

void close() noexcept {
  if (!has_gone_native()) state.trial->end_at(state.completed, state.whole);
  state.trial.reset();
}

}  // namespace

transfer::HostWay Message::join(std::uint64_t key) noexcept {
  if (is_open() && state.is_completing) close();
  if (!is_open()) {
    state.is_chosen = state.is_completing = false;
    state.whole = 0;
    state.trial.emplace(key);
  }
  state.whole = mix(state.whole, key);
  return state.trial->way();
}

void end(int count, int code) noexcept {
  if (!is_open()) return;  // a callback of the program, which MPI_Waitall has called, has completed requests
  if (code == MPI_SUCCESS && !has_gone_native()) state.trial->end(mix(state.whole, static_cast<std::uint64_t>(count)));
  state.trial.reset();
}

void note_completing(int code) noexcept {
  if (!is_open()) return;
  if (code != MPI_SUCCESS) return state.trial.reset();
  state.is_completing = true;
  if (state.trial->is_timed()) state.completed = transfer::HostTrial::Clock::now();
}

}  // namespace gapless::mpi::burst

#include "mpi/calls/tried/rounds.hpp"

#include <optional>

#include "base/hash.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::mpi::rounds {
namespace {

using transfer::HostTrial;
using transfer::HostWay;
using Clock = HostTrial::Clock;

/// The round of one thread.
struct Round {
  std::optional<HostTrial> trial;  ///< none where no round is open
  std::uint64_t first = 0;         ///< the key of its first message
  std::uint64_t whole = 0;         ///< names all messages
  int calls = 0;
  int most = most_calls;    ///< as many as the round before had
  unsigned like_it = 0;     ///< rounds that go the same way, untimed
  bool went_native = true;  ///< have all messages gone to the library as they came?
  // Where the round is timed.
  Clock::time_point begin{}, call_begin{};
  double ns_in_calls = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Round round;

bool is_timed() noexcept { return round.trial && round.trial->is_timed(); }

void open(std::uint64_t key) noexcept {
  round.like_it = round.trial.emplace(key).claim_rest();
  round.first = key;
  round.whole = 0;
  round.calls = 0;
  round.went_native = true;
  round.ns_in_calls = 0;
}

/// The next round begins now.
void close() noexcept {
  if (round.went_native && round.trial->way() == HostWay::packed) return round.trial->went_native();
  if (is_timed()) round.trial->end(round.ns_in_calls, transfer::ns_between(round.begin, Clock::now()), round.whole);
}

}  // namespace

HostWay Call::join(std::uint64_t key) noexcept {
  const bool is_over = round.trial && key == round.first;
  if (is_over) round.most = round.calls;
  if (is_over && round.like_it != 0 && !transfer::is_any_forced()) {
    --round.like_it;
    round.calls = 1;
    return round.trial->way();
  }
  if (is_over) close();
  const bool is_left = round.calls == round.most;
  if (is_over || is_left || !round.trial) {
    if (!is_over) round.most = most_calls;
    open(key);
  }
  if (is_timed()) {
    round.call_begin = Clock::now();
    if (round.calls == 0) round.begin = round.call_begin;
  }
  round.whole = mix(round.whole, key);
  ++round.calls;
  return round.trial->way();
}

void Call::end(int code, bool went_native) noexcept {
  if (!round.trial) return;  // the call's error handler has made calls that failed
  if (code != MPI_SUCCESS) return round.trial.reset();
  round.went_native = round.went_native && went_native;
  if (is_timed()) round.ns_in_calls += transfer::ns_between(round.call_begin, Clock::now());
}

}  // namespace gapless::mpi::rounds

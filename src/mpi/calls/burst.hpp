// All nonblocking and persistent messages that a thread starts in a row, until it has completed them, tried as one
// (transfer/choice/host_trial.hpp): what each of them takes nobody can tell, for they overlap. MPI_Waitall ends a
// burst. Of other calls, which complete some requests, nobody knows which one is the last until the thread starts its
// next message.
#pragma once

#include <cstdint>
#include <optional>

#include "base/scoped_value.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi::burst {

/// Of one thread.
struct State {
  std::optional<transfer::HostTrial> trial;            ///< none where no burst is open
  bool is_chosen = false;                              ///< does any message not go as the program gave it?
  bool is_completing = false;                          ///< has a call completed some of its messages, and perhaps all?
  transfer::HostTrial::Clock::time_point completed{};  ///< when the last such call ended
  std::uint64_t whole = 0;                             ///< names all its messages
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local State state;

inline bool is_open() noexcept { return state.trial.has_value(); }
/// MPI_Waitall of so many requests has ended with that code.
void end(int count, int code) noexcept;
/// Another call that completes requests has.
void note_completing(int code) noexcept;

/// A message that is being started; its way is chosen while this lives.
class Message {
 public:
  /// `key` tells apart messages that are not alike.
  explicit Message(std::uint64_t key) noexcept : scope_(transfer::choose_always(join(key))) {}

  /// It does not go as the program gave it.
  static void is_chosen() noexcept { state.is_chosen = true; }

 private:
  static transfer::HostWay join(std::uint64_t key) noexcept;

  ScopedValue<transfer::HostWay> scope_;
};

}  // namespace gapless::mpi::burst

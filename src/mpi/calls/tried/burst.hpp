// A burst: all nonblocking and persistent messages that a thread starts in a row, until it has completed them. A burst
// is tried as a whole (transfer/choice/host_trial.hpp), because messages overlap and nobody can tell what each of them
// takes. MPI_Waitall ends a burst. Other calls complete some requests, and nobody knows which call is the last until
// the thread starts its next message.
#pragma once

#include <cstdint>
#include <optional>

#include "base/scoped_value.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi::burst {

/// The burst of one thread.
struct State {
  std::optional<transfer::HostTrial> trial;            ///< none where no burst is open
  bool is_chosen = false;                              ///< does any message go otherwise than as the program gave it?
  bool is_completing = false;                          ///< has a call completed some of the messages, perhaps all?
  transfer::HostTrial::Clock::time_point completed{};  ///< when the last such call ended
  std::uint64_t whole = 0;                             ///< names all messages
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local State state;

inline bool is_open() noexcept { return state.trial.has_value(); }
/// To be called when MPI_Waitall of `count` requests has ended with `code`.
void end(int count, int code) noexcept;
/// To be called when another call that completes requests has ended with `code`.
void note_completing(int code) noexcept;

/// A message that is being started. The object is to live while the message's way is chosen.
class Message {
 public:
  /// `key` tells kinds of messages apart.
  explicit Message(std::uint64_t key) noexcept : scope_(transfer::choose_always(join(key))) {}

  /// Notes that the message goes otherwise than as the program gave it.
  static void note_chosen() noexcept { state.is_chosen = true; }

 private:
  static transfer::HostWay join(std::uint64_t key) noexcept;

  ScopedValue<transfer::HostWay> scope_;
};

}  // namespace gapless::mpi::burst

// All nonblocking messages that a thread starts until it calls MPI_Waitall, tried as one
// (transfer/choice/host_trial.hpp): what each of them takes nobody can tell, for they overlap.
#pragma once

#include <cstdint>
#include <optional>

#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi::burst {

/// Of one thread.
struct State {
  std::optional<transfer::HostTrial> trial;  ///< none where no burst is open
  bool is_chosen = false;                    ///< does any message not go as the program gave it?
  std::uint64_t whole = 0;                   ///< names all its messages
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local State state;

inline bool is_open() noexcept { return state.trial.has_value(); }
/// MPI_Waitall of so many requests has ended well.
void end(int count) noexcept;
/// A call has completed requests of which other calls may complete more: nothing is learnt of the burst.
inline void abandon() noexcept { state.trial.reset(); }

/// A message that is being started; its way is chosen while this lives.
class Message {
 public:
  /// `key` tells apart messages that are not alike.
  explicit Message(std::uint64_t key) noexcept : scope_(join(key)) {}

  /// It does not go as the program gave it.
  static void is_chosen() noexcept { state.is_chosen = true; }

 private:
  static transfer::HostWay join(std::uint64_t key) noexcept;

  transfer::HostWayScope scope_;
};

}  // namespace gapless::mpi::burst

// One endpoint's way through a blocking collective: it takes turns and waits for those of others.
#pragma once

#include <exception>

#include "endpoints/delivery/progress.hpp"
#include "endpoints/together/seats.hpp"

namespace gapless::mpi::endpoints::together {

/// The library's collectives are given int counts.
inline constexpr MPI_Count most_bytes_in_one_call = 1 << 30;

/// The first failure counts.
inline void note(int& code, int other) noexcept {
  if (code == MPI_SUCCESS) code = other;
}

/// Where there is no memory, messages wait until there is; the collective goes on meanwhile.
template <class Progress>
void try_to(Progress progress) noexcept try {
  progress();
} catch (const std::exception&) {
}

/// Most waits of a collective are short, so the endpoint looks after messages only in long ones, or where the program
/// has begun some; and it gives way, for threads may be more than there are cores.
template <class Condition>
void wait_until(Endpoint& endpoint, Condition is_met) {
  constexpr unsigned most_at_once = 64, idle_endpoint = 512, all_endpoints = 4096;
  for (unsigned rounds = 1; !is_met(); ++rounds) {
    if (rounds % most_at_once != 0) {
      pause();
      continue;
    }
    if (rounds % idle_endpoint == 0 || has_outstanding_operations()) try_to([&] { progress(endpoint); });
    if (rounds % all_endpoints == 0) {
      try_to(progress_of_all);
      poke_library();
    }
    give_way(rounds);
  }
}

class Turns {
 public:
  explicit Turns(Endpoint& endpoint) noexcept
      : endpoint_(endpoint),
        seats_(*endpoint.communicator->seats),
        mine_(seats_.all[static_cast<std::size_t>(endpoint.local)]),
        number_(mine_.turns.load(std::memory_order_relaxed)) {
    mine_.code = MPI_SUCCESS;
  }

  int locals() const noexcept { return seats_.count; }
  bool is_leader() const noexcept { return endpoint_.local == 0; }
  Seats& seats() noexcept { return seats_; }
  Seat& mine() noexcept { return mine_; }
  /// Of use once it has been awaited.
  const Seat& seat(int local) const noexcept { return seats_.all[static_cast<std::size_t>(local)]; }
  /// Tells that endpoint, which waits for this one's turn.
  void tell(int local, int failure) noexcept {
    seats_.all[static_cast<std::size_t>(local)].failure.store(failure, std::memory_order_relaxed);
  }

  void begin() noexcept { ++number_; }
  /// What this endpoint's seat has is there for the others.
  void show() noexcept { mine_.turns.store(number_, std::memory_order_release); }
  void take() noexcept {
    begin();
    show();
  }
  void await(int local) {
    const std::atomic<std::uint64_t>& turns = seat(local).turns;
    wait_until(endpoint_, [&] { return has_come(turns); });
  }
  void await_all() {
    for (int local = 0; local < locals(); ++local) await(local);
  }
  /// The leader lets the others go on.
  void release(int code) noexcept {
    seats_.release.code = code;
    seats_.release.turns.store(number_, std::memory_order_release);
  }
  /// The leader's code.
  int await_release() {
    wait_until(endpoint_, [&] { return has_come(seats_.release.turns); });
    return seats_.release.code;
  }

 private:
  bool has_come(const std::atomic<std::uint64_t>& turns) const noexcept {
    return turns.load(std::memory_order_acquire) >= number_;
  }
  Endpoint& endpoint_;
  Seats& seats_;
  Seat& mine_;
  std::uint64_t number_;
};

}  // namespace gapless::mpi::endpoints::together

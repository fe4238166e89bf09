// Whether an exchange among all ranks of a communicator goes by messages: an agreement of these ranks.
//
// The library's exchange takes GPU memory through host memory, and messages between GPUs of a node go from one to the
// other. All ranks must go the same way, and what each has in hand is known to itself alone. So they tell each other,
// at the first, second, fourth, eighth ... exchange on a communicator, and go that way until the next of these. Every
// rank of the job must run gapless for that, which `gapless run` vouches for (GAPLESS_ALL_RANKS).
#pragma once

#include <bit>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_messages {

/// May exchanges go by messages in this job? The same on all ranks.
bool may_be() noexcept;

/// The communicator on which the messages of this exchange go; MPI_COMM_NULL: it is the library's. Collective.
/// `gains`: is it this rank's wish?
template <class Gains>
MPI_Comm agree(MPI_Comm communicator, Gains gains) noexcept;

/// The library works, and the job ends. Collective.
void end() noexcept;

namespace internal {

/// What the ranks of a communicator have agreed upon.
struct Agreement {
  unsigned exchanges = 0;
  bool is_by_messages = false;
  MPI_Comm lane = MPI_COMM_NULL;

  bool is_due() noexcept { return std::has_single_bit(++exchanges); }
};

/// Null where there can be none.
Agreement* of(MPI_Comm communicator) noexcept;
void agree_anew(Agreement& agreement, MPI_Comm communicator, bool gains) noexcept;

}  // namespace internal

template <class Gains>
MPI_Comm agree(MPI_Comm communicator, Gains gains) noexcept {
  internal::Agreement* const agreement = internal::of(communicator);
  if (agreement == nullptr) return MPI_COMM_NULL;
  if (agreement->is_due()) internal::agree_anew(*agreement, communicator, gains());
  return agreement->is_by_messages ? agreement->lane : MPI_COMM_NULL;
}

}  // namespace gapless::mpi::by_messages

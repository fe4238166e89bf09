// Whether an exchange among all ranks of a communicator goes by messages: an agreement of these ranks.
//
// The library's exchange takes GPU memory through host memory, and messages between GPUs of a node go from one to the
// other; between nodes it moves noncontiguous memory packed, and messages go by the schemes of a fabric. All ranks must
// go the same way, and what each has in hand is known to itself alone. So they vote, at rare exchanges of one kind on a
// communicator (model/corrections/agreed_way.hpp). Every rank of the job must run gapless for that, which `gapless run`
// vouches for (GAPLESS_ALL_RANKS).
#pragma once

#include <chrono>
#include <map>

#include "model/corrections/agreed_way.hpp"
#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_messages {

using Wish = model::AgreedWay::Wish;

/// May exchanges go by messages in this job? The same on all ranks.
bool may_be() noexcept;

/// Of which exchanges an agreement is: a number that all ranks have in common for one exchange. Negative: the exchange
/// is the library's, on all ranks. Those of MPI_Alltoall are of a size, which all ranks know.
int kind_of(const MemoryArgument& out) noexcept;

/// One exchange: where its messages go, and how long it takes, as long as this lives.
class Exchange {
 public:
  /// Collective. `wish(are_combined)` is asked where there is a vote: have parts been sent combined lately, if any
  /// could have been?
  template <class AskWish>
  Exchange(MPI_Comm communicator, int kind, AskWish wish) noexcept;
  ~Exchange() {
    if (timed_ != nullptr) timed_->note(std::chrono::duration<float, std::nano>(Clock::now() - begun_).count());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// The communicator of its messages; MPI_COMM_NULL: it is the library's.
  MPI_Comm lane() const noexcept { return lane_; }
  /// Of exchanges on that communicator: combined_exchange.hpp. Precondition: there is a lane.
  unsigned& in_vain() const noexcept { return *in_vain_; }
  /// Are the library's exchange of packed bytes and messages being compared?
  bool is_timed() const noexcept { return timed_ != nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr unsigned most_in_vain = 8;

  MPI_Comm lane_ = MPI_COMM_NULL;
  unsigned* in_vain_ = nullptr;
  model::AgreedWay* timed_ = nullptr;
  Clock::time_point begun_;
};

/// The library works, and the job ends. Collective.
void end() noexcept;

namespace internal {

/// What the ranks of a communicator have agreed upon.
struct Agreement {
  std::map<int, model::AgreedWay> ways;  ///< by kind
  MPI_Comm lane = MPI_COMM_NULL;
  unsigned in_vain = 0;
};

/// Null where there can be none.
Agreement* of(MPI_Comm communicator) noexcept;
/// That kind's, null without memory.
model::AgreedWay* way_of(Agreement& agreement, int kind) noexcept;
void vote(Agreement& agreement, model::AgreedWay& way, MPI_Comm communicator, Wish wish) noexcept;

}  // namespace internal

template <class AskWish>
Exchange::Exchange(MPI_Comm communicator, int kind, AskWish wish) noexcept {
  internal::Agreement* const agreement = internal::of(communicator);
  model::AgreedWay* const way = agreement == nullptr ? nullptr : internal::way_of(*agreement, kind);
  if (way == nullptr) return;
  if (way->is_vote_due()) internal::vote(*agreement, *way, communicator, wish(agreement->in_vain < most_in_vain));
  in_vain_ = &agreement->in_vain;
  if (way->way() == model::AgreedWay::Way::other) lane_ = agreement->lane;
  if (!way->is_timed()) return;
  timed_ = way;
  begun_ = Clock::now();
}

}  // namespace gapless::mpi::by_messages

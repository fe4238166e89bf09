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
#include "mpi/calls/by_messages/messages.hpp"
#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_messages {

using Wish = model::AgreedWay::Wish;

/// May exchanges go by messages in this job? The same on all ranks.
bool may_be() noexcept;

/// Of which exchanges an agreement is: a number that all ranks have in common for one exchange. Negative: the exchange
/// is the library's, on all ranks. Those of MPI_Alltoall are of a size, which all ranks know.
int kind_of(const MemoryArgument& out) noexcept;
/// Is it one that kind_of() says of exchanges with neighbours?
bool is_kind_of_neighbors(int kind) noexcept;

/// Has the communicator ranks outside MPI_COMM_WORLD, such as of a job that was spawned or connected to? Nobody vouches
/// for those that they run gapless and would vote. All ranks find the same, also those without memory.
bool has_strangers(MPI_Comm communicator) noexcept;

namespace internal {

/// What the ranks of a communicator have agreed upon.
struct Agreement {
  std::map<int, model::AgreedWay> ways{};  ///< by kind
  MPI_Comm lane = MPI_COMM_NULL;
  unsigned unmapped = 0;  ///< exchange_combined() counts here
  bool is_over = false;   ///< a rank has no memory for it: all exchanges are the library's
  Exchanged among_all{}, among_neighbors{};

  Exchanged& exchanged_of(int kind) noexcept { return is_kind_of_neighbors(kind) ? among_neighbors : among_all; }
};

/// Null where there can be none, on all ranks.
Agreement* of(MPI_Comm communicator) noexcept;
/// That kind's; null where a rank has no memory for it, on all ranks.
model::AgreedWay* way_of(Agreement& agreement, MPI_Comm communicator, int kind) noexcept;
/// `can`: this rank has what it needs for the exchange.
void vote(Agreement& agreement, model::AgreedWay& way, MPI_Comm communicator, Wish wish, bool can) noexcept;

}  // namespace internal

/// One exchange: where its messages go, and how long it takes, as long as this lives.
class Exchange {
 public:
  /// Collective. Where there is a vote, `reserve(exchanged)` gets what the exchange needs, and `wish(are_combined)` is
  /// asked: have parts been sent combined lately, if any could have been?
  template <class AskWish, class Reserve>
  Exchange(MPI_Comm communicator, int kind, AskWish wish, Reserve reserve) noexcept;
  ~Exchange() {
    if (timed_ != nullptr) timed_->note(std::chrono::duration<float, std::nano>(Clock::now() - begun_).count());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// The communicator of its messages; MPI_COMM_NULL: it is the library's.
  MPI_Comm lane() const noexcept { return lane_; }
  /// Of exchanges on that communicator: combined_exchange.hpp. Precondition: there is a lane.
  unsigned& unmapped() const noexcept { return agreement_->unmapped; }
  /// What was reserved before the vote. Precondition: there is a lane.
  Exchanged& exchanged() const noexcept { return agreement_->exchanged_of(kind_); }
  /// Are the library's exchange of packed bytes and messages being compared?
  bool is_timed() const noexcept { return timed_ != nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr unsigned most_unmapped = 8;

  MPI_Comm lane_ = MPI_COMM_NULL;
  internal::Agreement* agreement_ = nullptr;
  int kind_;
  model::AgreedWay* timed_ = nullptr;
  Clock::time_point begun_;
};

/// The library works, and the job ends. Collective.
void end() noexcept;

template <class AskWish, class Reserve>
Exchange::Exchange(MPI_Comm communicator, int kind, AskWish wish, Reserve reserve) noexcept : kind_(kind) {
  agreement_ = internal::of(communicator);
  if (agreement_ == nullptr) return;
  model::AgreedWay* const way = internal::way_of(*agreement_, communicator, kind);
  if (way == nullptr) return;
  if (way->is_vote_due()) {
    const bool can = reserve(agreement_->exchanged_of(kind));
    internal::vote(*agreement_, *way, communicator, wish(agreement_->unmapped < most_unmapped), can);
  }
  if (agreement_->is_over) return;
  if (way->way() == model::AgreedWay::Way::other) lane_ = agreement_->lane;
  if (!way->is_timed()) return;
  timed_ = way;
  begun_ = Clock::now();
}

}  // namespace gapless::mpi::by_messages

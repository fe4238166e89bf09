// Whether an exchange among all ranks of a communicator goes by messages: an agreement of these ranks.
//
// Within a node, the library's exchange takes GPU memory through host memory, and messages go from GPU to GPU. Between
// nodes, the library's exchange moves packed bytes, and messages go by the schemes of a fabric. All ranks must go the
// same way, and no rank knows what the others have to send. So the ranks vote, at rare exchanges of one kind on a
// communicator (model/corrections/agreed_way.hpp). A vote needs gapless in every rank of the job, which `gapless run`
// vouches for (GAPLESS_ALL_RANKS).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "model/corrections/agreed_way.hpp"
#include "mpi/calls/by_messages/messages.hpp"
#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_messages {

using Wish = model::AgreedWay::Wish;

/// May exchanges go by messages in this job? The same on all ranks.
bool may_be() noexcept;

/// The kind of an exchange with these arguments of the program's: a number that is the same on all ranks, which agree
/// for each kind. Negative: the exchange is the library's, on all ranks. Calls that say the size of a part to all ranks
/// have a kind for each magnitude of that size.
int kind_of(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in) noexcept;
/// Is that the kind of an exchange with neighbours?
bool is_kind_of_neighbors(int kind) noexcept;

/// Who gets the result of a reduction: everybody, a root, or each rank its share.
enum class ReductionForm : std::uint8_t { to_all, to_root, scattered };

/// The kind of a reduction of operands of so many elements of so many bytes, as kind_of() says that of an exchange.
/// Negative numbers are mistakes.
int kind_of_reduction(ReductionForm form, MPI_Count elements, MPI_Count bytes) noexcept;

/// Has the communicator ranks outside MPI_COMM_WORLD, for instance of a job that has been spawned or connected to?
/// Nobody vouches that such ranks run gapless and would vote. The same on all ranks, also on one without memory.
bool has_strangers(MPI_Comm communicator) noexcept;

/// Have peers mapped the memory that this rank sends from, as far as is known?
enum class Mapping : std::uint8_t {
  known,      ///< they have, or nothing has been sent yet
  under_way,  ///< not yet: parts have been messages of their own lately
  none,       ///< they do not
};

namespace internal {

/// What the ranks of a communicator have agreed upon.
struct Agreement {
  std::map<int, model::AgreedWay> ways{};  ///< by kind
  MPI_Comm lane = MPI_COMM_NULL;
  Unmapped unmapped{};
  bool is_over = false;  ///< a rank has no memory: all exchanges are the library's
  Exchanged among_all{}, among_neighbors{};

  Mapping mapping() const noexcept {
    constexpr unsigned most_in_a_row = 8, most_in_all = 32;
    if (unmapped.in_a_row >= most_in_a_row) return Mapping::none;
    return unmapped.in_a_row == 0 || unmapped.in_all > most_in_all ? Mapping::known : Mapping::under_way;
  }
  Exchanged& exchanged_of(int kind) noexcept { return is_kind_of_neighbors(kind) ? among_neighbors : among_all; }
};

/// The agreement of a communicator; null, on all ranks, where there can be none.
Agreement* of(MPI_Comm communicator) noexcept;
/// The way of that kind; null, on all ranks, where a rank has no memory for one.
model::AgreedWay* way_of(Agreement& agreement, MPI_Comm communicator, int kind) noexcept;
/// Collective. `can`: this rank has the memory that the exchange needs.
void vote(Agreement& agreement, model::AgreedWay& way, MPI_Comm communicator, Wish wish, bool can) noexcept;

}  // namespace internal

/// One exchange: says where its messages go, and times the exchange while the object lives.
class AgreedExchange {
 public:
  /// Collective. Where there is a vote, `reserve(exchanged)` gets the memory that the exchange needs, and
  /// `wish(mapping)` says this rank's wish.
  template <class AskWish, class Reserve>
  AgreedExchange(MPI_Comm communicator, int kind, AskWish wish, Reserve reserve) noexcept;
  ~AgreedExchange() {
    if (timed_ != nullptr) timed_->note(std::chrono::duration<float, std::nano>(Clock::now() - begun_).count());
  }
  AgreedExchange(const AgreedExchange&) = delete;
  AgreedExchange& operator=(const AgreedExchange&) = delete;

  /// The communicator of the messages; MPI_COMM_NULL: the exchange is the library's.
  MPI_Comm lane() const noexcept { return lane_; }
  /// The count of exchange_combined() for this communicator. Precondition: there is a lane.
  Unmapped& unmapped() const noexcept { return agreement_->unmapped; }
  /// The memory that was reserved before the vote. Precondition: there is a lane.
  Exchanged& exchanged() const noexcept { return agreement_->exchanged_of(kind_); }
  /// Are the times of the library's exchange and of messages being compared?
  bool is_timed() const noexcept { return timed_ != nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  MPI_Comm lane_ = MPI_COMM_NULL;
  internal::Agreement* agreement_ = nullptr;
  int kind_;
  model::AgreedWay* timed_ = nullptr;
  Clock::time_point begun_;
};

/// Frees all lanes, at the end of MPI. Collective. Precondition: the library still works.
void end() noexcept;

template <class AskWish, class Reserve>
AgreedExchange::AgreedExchange(MPI_Comm communicator, int kind, AskWish wish, Reserve reserve) noexcept : kind_(kind) {
  agreement_ = internal::of(communicator);
  if (agreement_ == nullptr) return;
  model::AgreedWay* const way = internal::way_of(*agreement_, communicator, kind);
  if (way == nullptr) return;
  if (way->is_vote_due()) {
    const bool can = reserve(agreement_->exchanged_of(kind));
    internal::vote(*agreement_, *way, communicator, wish(agreement_->mapping()), can);
  }
  if (agreement_->is_over) return;
  if (way->way() == model::AgreedWay::Way::other) lane_ = agreement_->lane;
  if (!way->is_timed()) return;
  timed_ = way;
  begun_ = Clock::now();
}

}  // namespace gapless::mpi::by_messages

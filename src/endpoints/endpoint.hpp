// An endpoint is one rank of an endpoints communicator, and lives in the process that made it. Its handle is a real
// communicator of the library that has one process, so attributes, names, info and error handlers are the library's
// own.
//
// A message to an endpoint of another process travels on the lane of its destination: a communicator of the library
// with one rank a process, one lane for each local index. The tag carries the rest: the sender's local index, and what
// kind of message it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "endpoints/delivery/long_ways.hpp"
#include "endpoints/delivery/matching.hpp"
#include "endpoints/lock.hpp"
#include "endpoints/rings/inboxes.hpp"
#include "endpoints/together/seats.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi::endpoints {

struct Meeting;
struct Operation;
class Schedule;
struct Topology;
struct Endpoint;

/// Where a rank lives. Aligned, so that finding one in an array needs no product.
struct alignas(16) RankPlace {
  int process = 0;  ///< its process's rank in the lanes
  int local = 0;    ///< its index among the ranks of that process
  int inbox = -1;   ///< its inbox, if this process shares memory with it; else -1
};

/// Names an endpoint, and never another one. `process` is unique in the job. In a communicator of one endpoint for each
/// process an endpoint stands for its process: its number is 0.
struct Identity {
  std::uint64_t process = 0;
  std::uint64_t number = 0;
  auto operator<=>(const Identity&) const = default;
};

/// How envelopes are written in the library's tags. Marked are the program's synchronous messages, and those of
/// collectives whose sender could not read the bytes.
struct TagFormat {
  int user_bits = 0;
  int upper_bound() const noexcept { return static_cast<int>((std::int64_t{1} << user_bits) - 1); }
  int encode(int tag, Context context, bool is_marked, int source) const noexcept {
    return tag | (context == Context::collective ? 1 << user_bits : 0) | (is_marked ? 2 << user_bits : 0) |
           (source << (user_bits + 2));
  }
  int tag_of(int encoded) const noexcept { return encoded & upper_bound(); }
  Context context_of(int encoded) const noexcept {
    return (encoded >> user_bits & 1) != 0 ? Context::collective : Context::messages;
  }
  bool is_marked(int encoded) const noexcept { return (encoded >> user_bits & 2) != 0; }
  int source_of(int encoded) const noexcept { return encoded >> (user_bits + 2); }
};

/// The meetings that have begun, by their keys (communicators/meeting.hpp).
struct Meetings {
  std::mutex mutex;
  std::vector<std::pair<std::vector<std::uint64_t>, std::shared_ptr<Meeting>>> begun;
};

/// What the endpoints of one communicator in this process share.
struct Communicator {
  Communicator() = default;
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  bool has_peers() const noexcept { return base != MPI_COMM_NULL; }
  int size() const noexcept { return static_cast<int>(places.size()); }
  bool has_rank(int rank) const noexcept { return rank >= 0 && rank < size(); }
  int local_count() const noexcept { return static_cast<int>(ranks[static_cast<std::size_t>(process)].size()); }
  /// Do several processes have endpoints?
  bool spans_processes() const noexcept { return processes != MPI_COMM_NULL; }
  int rank_of(int local) const noexcept {
    return ranks[static_cast<std::size_t>(process)][static_cast<std::size_t>(local)];
  }

  MPI_Comm base = MPI_COMM_NULL;  ///< one rank a process, errors are returned; null where one process has all ranks
  std::vector<MPI_Comm> lanes;
  int process = 0;                      ///< this one's rank in `base`
  std::vector<RankPlace> places;        ///< by rank
  std::vector<Identity> identities;     ///< by rank
  std::vector<std::vector<int>> ranks;  ///< by process and local index
  /// One rank a process that has endpoints, in the order of `base`; null where one process has them all.
  MPI_Comm processes = MPI_COMM_NULL;
  std::vector<int> leaders;      ///< the rank in `processes`, by process; one without endpoints has none
  int populated = 0;             ///< how many processes have endpoints
  int most_locals = 0;           ///< how many endpoints a process has at most
  int first_block = 0;           ///< how many endpoints the processes before this one have
  bool is_in_order = false;      ///< ranks follow each other in the order of the processes
  std::unique_ptr<Seats> seats;  ///< of this process's endpoints; null where it has none
  TagFormat format;
  int library_tag_bits = 0;                          ///< how many the library's tags have
  int tag_upper_bound = 0;                           ///< what MPI_TAG_UB is on the endpoints' handles
  Inboxes inboxes;                                   ///< of the endpoints that share memory with this process's
  std::vector<int> ranks_of_inboxes;                 ///< by inbox
  bool has_strangers = false;                        ///< endpoints that have no inbox here
  std::vector<pid_t> attached;                       ///< by process, where this node's can read each other's memory
  std::vector<std::shared_ptr<Endpoint>> unclaimed;  ///< those that have no handle yet
  std::mutex mutex;                                  ///< of `unclaimed`
  Meetings meetings;                                 ///< of its endpoints
};

/// The groups of an intercommunicator. Its `Communicator` has the ranks of both, those of one group before the other's,
/// and the program knows each by its place in its group. Of any other communicator there is one group.
struct Sides {
  int first_local = 0, first_remote = 0;  ///< where they begin among the ranks of both
  int remote_size = 0;                    ///< 0: this is no intercommunicator
  bool is_inter() const noexcept { return remote_size != 0; }
};

/// One ring that this endpoint reads, and what is left of its messages.
struct IncomingRing {
  RingReader ring;
  Link arrived;  ///< messages that have come by the library before the ring has told of them
};

/// Aligned, so that no two endpoints share a cache line, or a pair of lines that a processor fetches together.
struct alignas(128) Endpoint : std::enable_shared_from_this<Endpoint> {
  MPI_Comm handle = MPI_COMM_NULL;
  std::shared_ptr<Communicator> communicator;
  int local = 0;
  int rank = 0;  ///< among those of both groups, if this is an intercommunicator's
  Sides sides;
  std::uint64_t meetings = 0;  ///< how many meetings of all endpoints this one has entered

  Endpoint() = default;
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Guards what follows, and taking messages out of the lane. No other endpoint's thread takes it to send a message.
  Lock lock;
  Matching matching;
  MessagePool pool;
  std::vector<Operation*> active;    ///< operations whose bytes the library is moving
  std::vector<Operation*> stalled;   ///< sends that wait for room in a ring
  Link lending;                      ///< sends that wait until another process has taken their bytes
  std::vector<RingWriter> outgoing;  ///< by inbox
  Outbox outbox;
  LongWays long_ways;
  std::vector<IncomingRing> incoming;  ///< by inbox
  std::vector<int> heard;              ///< the inboxes from which anything has come
  std::uint32_t entered = 0;           ///< how many writers of its inbox have been looked at
  bool waits_for_lane = false;         ///< for the bytes of a message that a ring has told of
  bool gives_pieces = true;            ///< of what it has lent, until the system refuses
  transfer::EndpointMessages sent;
  unsigned rounds = 0, idle_rounds = 0, busy_rounds = 0;  ///< of progress; the last two in a row
  int receives_under_way = 0;                             ///< of those that outlive their calls
  int lent = 0;                                           ///< requests that need it
  std::shared_ptr<Endpoint> kept;                         ///< itself, while there are any
  /// How many copies of buffered sends are under way. Of its own, for receivers end them, and may outlive the endpoint.
  const std::shared_ptr<std::atomic<int>> buffered = std::make_shared<std::atomic<int>>(0);

  std::mutex schedules_mutex;        ///< of what follows
  std::vector<Schedule*> schedules;  ///< those under way that are not waited for in the call that started them
  std::atomic<int> schedule_count{0};
  std::atomic<bool> is_freed{false};  ///< the handle is; peers may still send to schedules

  // Of the thread that calls collectives.
  unsigned collectives = 0, persistent_collectives = 0;  ///< how many it has begun
  std::shared_ptr<const Topology> topology;              ///< null: none

  /// Does the endpoint have work that others wait for, even once the handle is freed? Precondition: both locks are
  /// held.
  bool has_work() const noexcept {
    return !schedules.empty() || !active.empty() || !stalled.empty() || lending.is_linked() || matching.has_posted();
  }
  /// has_work(), or may a persistent request still start some? The same precondition.
  bool is_needed() const noexcept { return lent != 0 || has_work(); }
  /// One more request needs the endpoint, whatever becomes of its handle. Precondition: the endpoint is locked.
  void keep() noexcept {
    if (lent++ == 0) kept = weak_from_this().lock();
  }
  /// So many requests need the endpoint no more, which may end then. Precondition: the lock is not held.
  void let_go(int requests) noexcept {
    std::shared_ptr<Endpoint> last;
    const std::lock_guard guard(lock);
    if ((lent -= requests) != 0) return;
    last = std::move(kept);
    if (is_freed.load(std::memory_order_relaxed)) end_if_done();
  }
  /// Its handle was freed while the endpoint was needed. Precondition: the endpoint is locked.
  void end_if_done();
  /// Peers that send to this endpoint see that nobody reads its inbox.
  void close() noexcept { inbox().is_closed.store(true, std::memory_order_release); }
  int inbox_number() const noexcept { return communicator->places[static_cast<std::size_t>(rank)].inbox; }
  RingInboxHead& inbox() const noexcept { return communicator->inboxes.head(inbox_number()); }
  IncomingRing& from(int source) noexcept {
    return incoming[static_cast<std::size_t>(communicator->places[static_cast<std::size_t>(source)].inbox)];
  }
  MPI_Comm lane() const noexcept { return communicator->lanes[static_cast<std::size_t>(local)]; }
  bool has_peers() const noexcept { return communicator->has_peers(); }
  int local_size() const noexcept { return communicator->size() - sides.remote_size; }
  /// How many ranks a message can name.
  int peers() const noexcept { return sides.is_inter() ? sides.remote_size : communicator->size(); }
  bool has_peer(int rank) const noexcept { return rank >= 0 && rank < peers(); }
  /// The members of the endpoint's own group, or of the remote one, by rank.
  std::vector<Identity> members(bool remote) const {
    const auto first = communicator->identities.begin() + (remote ? sides.first_remote : sides.first_local);
    return {first, first + (remote ? sides.remote_size : local_size())};
  }
};

namespace internal {

/// Handles are found in a table of open addressing. Places are never emptied, only given to another handle, so a reader
/// that finds none needs no lock.
struct Slot {
  std::atomic<std::uintptr_t> key{0};  ///< 0: never used
  std::atomic<Endpoint*> endpoint{nullptr};

  /// What is there under that key. The place may be given to another key meanwhile, which is written first.
  Endpoint* under(std::uintptr_t wanted) const noexcept {
    Endpoint* const found = endpoint.load(std::memory_order_acquire);
    return found == nullptr || key.load(std::memory_order_relaxed) == wanted ? found : nullptr;
  }
};
inline constexpr int table_bits = 15;
extern std::array<Slot, std::size_t{1} << table_bits> table;

inline std::size_t first_of(std::uintptr_t key) noexcept { return slot_of(key, table_bits); }
Endpoint* find_past_first(std::uintptr_t key) noexcept;

}  // namespace internal

/// The endpoint of a handle; null for any other communicator, and `freed_endpoint` for a handle that has been freed and
/// is no other communicator's. A few nanoseconds, no lock.
inline Endpoint* find_even_freed(MPI_Comm handle) noexcept {
  const std::uintptr_t key = number_of(handle);
  const internal::Slot& first = internal::table[internal::first_of(key)];
  const std::uintptr_t here = first.key.load(std::memory_order_acquire);
  if (here == key) return first.under(key);
  return here == 0 ? nullptr : internal::find_past_first(key);
}
/// One look: true only if `find_even_freed` finds nothing. Makes no call, so that who asks has no registers to save.
inline bool is_surely_no_endpoint(MPI_Comm handle) noexcept {
  const std::uintptr_t key = number_of(handle);
  const internal::Slot& first = internal::table[internal::first_of(key)];
  const std::uintptr_t here = first.key.load(std::memory_order_acquire);
  return here == 0 || (here == key && first.endpoint.load(std::memory_order_acquire) == nullptr);
}
extern Endpoint& freed_endpoint;
/// The endpoint of a handle; null for any other communicator, and for a handle that has been freed.
Endpoint* find(MPI_Comm handle) noexcept;
/// Keeps an endpoint that may be freed meanwhile.
std::shared_ptr<Endpoint> share(Endpoint& endpoint) noexcept;
/// The library has given a communicator this handle: whatever was freed under it is forgotten.
void reuse(MPI_Comm handle) noexcept;
/// Adds those with a handle, and those that linger.
void add_all_endpoints(std::vector<std::shared_ptr<Endpoint>>& all);
int endpoint_count() noexcept;

/// Enters it under its handle; false where there is no room.
bool enter(const std::shared_ptr<Endpoint>& endpoint);
/// Ends the handle's life, not yet the library's communicator.
void leave(Endpoint& endpoint) noexcept;
/// Keeps an endpoint whose handle is freed while work of it is under way; end_lingering() lets it go.
void linger(const std::shared_ptr<Endpoint>& endpoint);
void end_lingering(const Endpoint& endpoint) noexcept;

}  // namespace gapless::mpi::endpoints

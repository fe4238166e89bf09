#include "mpi/headers/speaking.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "mpi/lifetime/errors_returned.hpp"
#include "mpi/lifetime/nodes.hpp"
#include "mpi/lifetime/own_attribute.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::mpi::headers {
namespace {

int keyval;

/// A communicator that has been used.
struct Known {
  std::vector<int> ranks;    ///< in MPI_COMM_WORLD; negative for a process that is not in it
  std::uint32_t number = 0;  ///< that no other communicator of this process ever has
};

/// The communicators that have been used, by handle: an attribute's delete callback takes them out.
struct Table {
  std::shared_mutex mutex;  ///< guards all below, for programs with MPI_THREAD_MULTIPLE
  std::unordered_map<std::uintptr_t, Known> known;
  std::unordered_set<std::uintptr_t> made;  ///< handles of communicators that the program has made, and not freed
  std::uint32_t last_number = 0;
};

// Never destroyed: communicators may end while the process does.
Table& table() noexcept {
  static Table& instance = *new Table;
  return instance;
}

/// Takes a lock of that kind where several threads call MPI.
template <class Lock>
Lock lock_as() {
  return runtime::is_multithreaded() ? Lock(table().mutex) : Lock(table().mutex, std::defer_lock);
}

/// Has the library made a communicator of that handle, which the program has not freed?
bool is_made(MPI_Comm communicator) noexcept {
  if (communicator == MPI_COMM_WORLD || communicator == MPI_COMM_SELF) return true;
  const auto lock = lock_as<std::shared_lock<std::shared_mutex>>();
  return table().made.contains(number_of(communicator));
}

/// Does the handle name a communicator whose group tells the processes of its ranks: no intercommunicator, and none of
/// MPICH's whose ranks are threads?
bool has_processes_as_ranks(MPI_Comm communicator) noexcept {
  int is_other = 1;
  if (native.Comm_test_inter(communicator, &is_other) != MPI_SUCCESS || is_other != 0) return false;
  if (native.test_threads_communicator == nullptr) return true;
  return native.test_threads_communicator(communicator, &is_other) == MPI_SUCCESS && is_other == 0;
}

/// The same for a handle that may be wrong. The program hears of a wrong handle from its own call, once. Open MPI reads
/// through a handle before it checks the handle, so the null handle is not shown to Open MPI.
bool has_processes_as_ranks_if_right(MPI_Comm communicator) noexcept {
  if (number_of(communicator) == 0) return false;
  // Where no error can be, the handlers stay, for another thread may set them meanwhile.
  if (is_made(communicator)) return has_processes_as_ranks(communicator);
  // Errors of no communicator go to the handlers of these two. A handler that ends the process stays: it would end the
  // process in the program's own call as well, and MPICH may keep such a handler as none at all, which could not be set
  // again.
  const ErrorsReturned world(MPI_COMM_WORLD, ErrorsReturned::Fatal::stays);
  const ErrorsReturned self(MPI_COMM_SELF, ErrorsReturned::Fatal::stays);
  return has_processes_as_ranks(communicator);
}

// The number of the communicator that this thread frees; 0: none. Delete callbacks of the program may still send on the
// communicator after forget(). An attribute that is set then is never deleted, and the next communicator with the same
// handle would be taken for this one.
constinit thread_local std::uintptr_t being_freed [[gnu::tls_model("initial-exec")]] = 0;

/// Where this thread frees the communicator, nobody asks for its ranks again. MPICH ends a communicator with messages
/// under way later, in the call that completes the last of them. The entry then stays, without ranks, until a
/// communicator is made that has the same handle.
int forget(MPI_Comm communicator, int, void*, void*) {
  const auto lock = lock_as<std::unique_lock<std::shared_mutex>>();
  const auto found = table().known.find(number_of(communicator));
  if (found == table().known.end()) return MPI_SUCCESS;
  if (number_of(communicator) == being_freed) {
    table().known.erase(found);
  } else {
    found->second.ranks.clear();
  }
  return MPI_SUCCESS;
}

/// Nothing where the communicator is not in the table.
std::optional<Peer> look_up(MPI_Comm communicator, int rank) noexcept {
  const auto lock = lock_as<std::shared_lock<std::shared_mutex>>();
  const auto found = table().known.find(number_of(communicator));
  if (found == table().known.end()) return std::nullopt;
  const auto& [ranks, number] = found->second;
  const bool is_rank = rank >= 0 && static_cast<std::size_t>(rank) < ranks.size();
  return Peer{is_rank ? ranks[static_cast<std::size_t>(rank)] : -1, number};
}

Peer translate_first(MPI_Comm communicator, int rank) noexcept {
  if (number_of(communicator) == being_freed) return {};
  try {
    if (!has_processes_as_ranks_if_right(communicator)) return {};
    std::vector<int> ranks = world_ranks_of(communicator);
    bool is_first = false;
    {
      const auto lock = lock_as<std::unique_lock<std::shared_mutex>>();
      // Another thread may have made the entry meanwhile. To set the attribute again would call forget() for its first
      // value.
      const auto [known, is_new] = table().known.try_emplace(number_of(communicator));
      is_first = is_new;
      if (is_first) known->second = {std::move(ranks), ++table().last_number};
    }
    if (is_first && native.Comm_set_attr(communicator, keyval, nullptr) != MPI_SUCCESS) {
      const auto lock = lock_as<std::unique_lock<std::shared_mutex>>();
      table().known.erase(number_of(communicator));
    }
    return look_up(communicator, rank).value_or(Peer{});
  } catch (const std::exception&) {
    return {};
  }
}

/// The group of a communicator; none where the library refuses.
class Group {
 public:
  explicit Group(MPI_Comm communicator) noexcept
      : is_there_(native.Comm_group(communicator, &handle_) == MPI_SUCCESS) {}
  ~Group() {
    if (is_there_) native.Group_free(&handle_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  bool is_there() const noexcept { return is_there_; }
  MPI_Group handle() const noexcept { return handle_; }

 private:
  MPI_Group handle_{};
  bool is_there_;
};

/// `look(own, world)`: the groups of the communicator and of MPI_COMM_WORLD. Does nothing where the library refuses.
template <class Look>
void with_groups(MPI_Comm communicator, Look look) {
  const Group own(communicator), world(MPI_COMM_WORLD);
  if (own.is_there() && world.is_there()) look(own.handle(), world.handle());
}

}  // namespace

std::vector<int> world_ranks_of(MPI_Comm communicator) {
  std::vector<int> ranks;
  with_groups(communicator, [&](MPI_Group own, MPI_Group world) {
    int size = 0;
    native.Group_size(own, &size);
    std::vector<int> from(static_cast<std::size_t>(size));
    std::iota(from.begin(), from.end(), 0);
    ranks.resize(from.size());
    if (native.Group_translate_ranks(own, size, from.data(), world, ranks.data()) != MPI_SUCCESS) ranks.clear();
  });
  return ranks;
}

bool is_within_world(MPI_Comm communicator) noexcept {
  bool is_within = false;
  with_groups(communicator, [&](MPI_Group own, MPI_Group world) {
    std::array<int, 256> from, ranks;
    int size = 0;
    is_within = native.Group_size(own, &size) == MPI_SUCCESS;
    for (int first = 0; is_within && first < size; first += static_cast<int>(from.size())) {
      const int count = std::min(size - first, static_cast<int>(from.size()));
      std::iota(from.begin(), from.begin() + count, first);
      is_within = native.Group_translate_ranks(own, count, from.data(), world, ranks.data()) == MPI_SUCCESS &&
                  std::find(ranks.begin(), ranks.begin() + count, MPI_UNDEFINED) == ranks.begin() + count;
    }
  });
  return is_within;
}

namespace {

/// Has every rank gapless, and does some other node have ranks?
bool has_nodes() noexcept { return settings().all_ranks && is_job_on_several_nodes(); }

void listen() noexcept {
  if (!transfer::headers::are_wanted()) return;
  MPI_Comm parent = MPI_COMM_NULL;
  int rank = 0, size = 0;
  if (native.Comm_get_parent(&parent) != MPI_SUCCESS || parent != MPI_COMM_NULL) return;
  if (!make_keyval(forget, keyval)) return;
  native.Comm_rank(MPI_COMM_WORLD, &rank);
  native.Comm_size(MPI_COMM_WORLD, &size);
  transfer::rdma::start(rank, size);
  transfer::headers::listen(rank, size);
}

/// All ranks tell each other who they are, by a collective call in which ranks that do not listen take part, too.
int tell_all() noexcept {
  using transfer::headers::Speaker;
  int size = 0;
  native.Comm_size(MPI_COMM_WORLD, &size);
  std::unique_ptr<Speaker[]> all(new (std::nothrow) Speaker[static_cast<std::size_t>(size)]);
  if (all == nullptr) return MPI_ERR_NO_MEM;
  const Speaker own = transfer::headers::own_speaker();
  constexpr int bytes = sizeof own;
  const int code = native.Allgather(&own, bytes, MPI_BYTE, all.get(), bytes, MPI_BYTE, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS) transfer::headers::learn(std::move(all));
  return code;
}

/// The request of this process's last call to the library. Set in finish(): Open MPI's null request is unknown while
/// the variant is loaded.
MPI_Request last_request;

bool have_all_ended() noexcept {
  // A receiver may wait for something else that this process has given to the library.
  runtime::make_progress();
  int flag = 1;
  return native.Test(&last_request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

}  // namespace

int start(bool works) noexcept {
  const bool are_told = has_nodes();
  if (are_told) transfer::rdma::join_nodes();
  if (works) listen();
  return are_told && transfer::rdma::is_wanted() ? tell_all() : MPI_SUCCESS;
}

void finish() noexcept {
  last_request = MPI_REQUEST_NULL;
  const bool are_told = has_nodes() && transfer::rdma::is_wanted();
  // No rank receives any more once all ranks are here.
  if (are_told && native.Ibarrier(MPI_COMM_WORLD, &last_request) != MPI_SUCCESS) last_request = MPI_REQUEST_NULL;
  transfer::headers::end(have_all_ended);
  if (are_told) native.Wait(&last_request, MPI_STATUS_IGNORE);
}

void end() noexcept {
  if (transfer::headers::is_listening()) native.Comm_free_keyval(&keyval);
}

Peer find_peer(MPI_Comm communicator, int rank) noexcept {
  if (!transfer::headers::is_listening() || communicator == MPI_COMM_NULL || transfer::headers::has_stopped_receiving())
    return {};
  const auto known = look_up(communicator, rank);
  return known ? *known : translate_first(communicator, rank);
}

Listener listener_of(const Peer& peer, Speaks speaks) noexcept {
  if (peer.rank < 0 || !transfer::headers::is_listening() || transfer::headers::has_stopped_receiving()) return {};
  transfer::headers::Inbox* const inbox = transfer::headers::find_inbox(peer.rank);
  if (inbox == nullptr) return {};
  if (speaks == Speaks::to_others && peer.rank == transfer::headers::own_rank()) return {};
  // Where nodes are joined, every process is attentive from the start.
  if (!inbox->is_remote() && !transfer::headers::is_attentive_when_called(inbox->head())) return {};
  // Among several threads nobody knows whose message leaves first.
  return {inbox, runtime::is_multithreaded() ? 0 : peer.communicator};
}

ScopedValue<std::uintptr_t> freeing(MPI_Comm communicator) noexcept {
  const bool is_predefined = communicator == MPI_COMM_WORLD || communicator == MPI_COMM_SELF;
  if (transfer::headers::is_listening()) {
    const auto lock = lock_as<std::unique_lock<std::shared_mutex>>();
    table().made.erase(number_of(communicator));
  }
  return {being_freed, is_predefined ? 0 : number_of(communicator)};
}

void note_made(MPI_Comm communicator) noexcept {
  if (!transfer::headers::is_listening() || communicator == MPI_COMM_NULL) return;
  const auto lock = lock_as<std::unique_lock<std::shared_mutex>>();
  table().known.erase(number_of(communicator));
  try {
    table().made.insert(number_of(communicator));
  } catch (const std::exception&) {
  }
}

bool is_neighbour(MPI_Comm communicator, int rank) noexcept {
  const Peer peer = find_peer(communicator, rank);
  const transfer::headers::Inbox* const inbox = peer.rank < 0 ? nullptr : transfer::headers::find_inbox(peer.rank);
  return inbox != nullptr && !inbox->is_remote();
}

Listener find_listener(MPI_Comm communicator, int destination, Speaks speaks) noexcept {
  return listener_of(find_peer(communicator, destination), speaks);
}

}  // namespace gapless::mpi::headers

// Intercommunicators of endpoints (MPI 5.0, 7.6): two groups whose members send to each other. Below, all of them are
// the ranks of one communicator, first those of one group and then those of the other; MPI_Intercomm_merge makes
// another one of the same ranks.
#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/agreement.hpp"
#include "endpoints/communicators/assembly.hpp"
#include "endpoints/communicators/parts.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/calls/count_arrays.hpp"
#include "mpi/headers/speaking.hpp"

namespace gapless::mpi::endpoints {
namespace {

constexpr const char* create_name = "MPI_Intercomm_create";

/// Agreements of endpoints that have no communicator in common yet.
Agreements& agreements_between() {
  static auto& all = *new Agreements;
  return all;
}

/// The endpoints of a communicator, by rank, with their processes in the world; MPI_UNDEFINED: not there.
std::vector<Resident> residents_of(const Communicator& communicator) {
  std::vector<int> processes =
      communicator.has_peers() ? headers::world_ranks_of(communicator.base) : std::vector{own_rank(MPI_COMM_WORLD)};
  processes.resize(communicator.ranks.size(), MPI_UNDEFINED);
  std::vector<Resident> residents;
  for (std::size_t rank = 0; rank < communicator.places.size(); ++rank)
    residents.push_back(
        {processes[static_cast<std::size_t>(communicator.places[rank].process)], communicator.identities[rank]});
  return residents;
}

/// One message each way between the leaders.
int exchange(MPI_Comm peers, int leader, int tag, const void* out, std::size_t out_bytes, void* in,
             std::size_t in_bytes) {
  const int sent = static_cast<int>(out_bytes), received = static_cast<int>(in_bytes);
  if (Endpoint* const endpoint = find(peers))
    return calls::Sendrecv(*endpoint, out, sent, MPI_BYTE, leader, tag, in, received, MPI_BYTE, leader, tag, peers,
                           MPI_STATUS_IGNORE);
  const InLibrary meanwhile;
  return inner.Sendrecv(out, sent, MPI_BYTE, leader, tag, in, received, MPI_BYTE, leader, tag, peers,
                        MPI_STATUS_IGNORE);
}

/// What the leaders know of the other group. An error code.
int ask_other_leader(const std::vector<Resident>& mine, MPI_Comm peers, int leader, int tag,
                     std::vector<Resident>& theirs) {
  const int count = static_cast<int>(mine.size());
  int their_count = 0;
  int code = exchange(peers, leader, tag, &count, sizeof count, &their_count, sizeof their_count);
  if (code != MPI_SUCCESS) return code;
  theirs.resize(static_cast<std::size_t>(their_count));
  return exchange(peers, leader, tag, mine.data(), mine.size() * sizeof(Resident), theirs.data(),
                  theirs.size() * sizeof(Resident));
}

/// The leader tells the others of its group.
int learn_of_others(Endpoint& endpoint, int root, int code, std::vector<Resident>& theirs) {
  int told[] = {code, static_cast<int>(theirs.size())};
  if (const int failed = calls::Bcast(endpoint, told, 2, MPI_INT, root, endpoint.handle); failed != MPI_SUCCESS)
    return failed;
  if (told[0] != MPI_SUCCESS) return told[0];
  theirs.resize(static_cast<std::size_t>(told[1]));
  const auto bytes = static_cast<int>(theirs.size() * sizeof(Resident));
  return calls::Bcast(endpoint, theirs.data(), bytes, MPI_BYTE, root, endpoint.handle);
}

bool is_before(const Resident& a, const Resident& b) noexcept { return a.identity < b.identity; }

/// Can there be an intercommunicator of these groups? An error class.
int check_groups(const std::vector<Resident>& mine, const std::vector<Resident>& theirs) {
  for (const Resident& other : theirs) {
    const bool is_in_both =
        std::any_of(mine.begin(), mine.end(), [&](const Resident& one) { return one.identity == other.identity; });
    if (is_in_both) return MPI_ERR_GROUP;
  }
  const auto is_elsewhere = [](const Resident& one) { return one.process == MPI_UNDEFINED; };
  if (std::any_of(mine.begin(), mine.end(), is_elsewhere) || std::any_of(theirs.begin(), theirs.end(), is_elsewhere))
    return code_with_text(MPI_ERR_UNSUPPORTED_OPERATION, create_name, "not all processes are in MPI_COMM_WORLD");
  return MPI_SUCCESS;
}

/// What the library tells apart those by that are made at a time in the same processes.
int tag_of(const AgreementKey& key) noexcept {
  std::uint64_t mixed = 0;
  for (const std::uint64_t number : key) mixed = (mixed ^ number) * 0x9e3779b97f4a7c15u;
  return static_cast<int>(mixed >> (64 - 15));
}

/// Errors of MPI_COMM_WORLD are returned while any of these lives. The program's call is about other communicators, so
/// their error handler is told. Errors that other threads of the program make on MPI_COMM_WORLD meanwhile are returned,
/// too.
class WorldReturnsErrors {
 public:
  WorldReturnsErrors() noexcept {
    const std::lock_guard lock(mutex);
    if (living++ != 0) return;
    inner.Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    inner.Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~WorldReturnsErrors() {
    const std::lock_guard lock(mutex);
    if (--living != 0) return;
    inner.Comm_set_errhandler(MPI_COMM_WORLD, handler);
    native.Errhandler_free(&handler);
  }
  WorldReturnsErrors(const WorldReturnsErrors&) = delete;
  WorldReturnsErrors& operator=(const WorldReturnsErrors&) = delete;

 private:
  static inline std::mutex mutex;
  static inline int living = 0;
  static inline MPI_Errhandler handler{};  ///< the program's
};

/// All endpoints of both groups call. Those of one process agree, whichever group they are in.
int make_between(Endpoint& endpoint, const std::vector<Resident>& mine, const std::vector<Resident>& theirs,
                 MPI_Comm* made) {
  const bool is_first = is_before(*std::min_element(mine.begin(), mine.end(), is_before),
                                  *std::min_element(theirs.begin(), theirs.end(), is_before));
  std::vector<Resident> all = is_first ? mine : theirs;
  all.insert(all.end(), is_first ? theirs.begin() : mine.begin(), is_first ? theirs.end() : mine.end());
  AgreementKey key;
  for (const Resident& one : all) key.insert(key.end(), {one.identity.process, one.identity.number});
  const int here = own_rank(MPI_COMM_WORLD);
  const auto arriving = std::count_if(all.begin(), all.end(), [&](const Resident& one) { return one.process == here; });
  const auto agreement = agree(endpoint, agreements_between(), key, static_cast<int>(arriving), [&](Agreement& agreed) {
    const WorldReturnsErrors meanwhile;
    agreed.code = make_of_residents(MPI_COMM_WORLD, here, all, tag_of(key), agreed.made.emplace_back());
  });
  if (agreement->code != MPI_SUCCESS) return agreement->code;
  const int mine_begin = is_first ? 0 : static_cast<int>(theirs.size());
  const int theirs_begin = is_first ? static_cast<int>(mine.size()) : 0;
  Communicator& both = *agreement->made[0];
  if (const int code = make_handle_like(endpoint.handle, made); code != MPI_SUCCESS) return code;
  const int local = both.places[static_cast<std::size_t>(mine_begin + endpoint.rank)].local;
  if (const int code = claim(both, local, *made); code != MPI_SUCCESS) return code;
  find(*made)->sides = {mine_begin, theirs_begin, static_cast<int>(theirs.size())};
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int Intercomm_create(Endpoint& endpoint, MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader, int tag,
                     MPI_Comm* made) {
  if (find(local) != &endpoint) return raise(endpoint, unserved(create_name));  // a group of processes
  if (made == nullptr) return raise(endpoint, MPI_ERR_ARG);
  if (local_leader < 0 || local_leader >= endpoint.communicator->size()) return raise(endpoint, MPI_ERR_RANK);
  *made = MPI_COMM_NULL;
  const std::vector<Resident> mine = residents_of(*endpoint.communicator);
  std::vector<Resident> theirs;
  int code = MPI_SUCCESS;
  if (endpoint.rank == local_leader) code = ask_other_leader(mine, peers, remote_leader, tag, theirs);
  code = learn_of_others(endpoint, local_leader, code, theirs);
  if (code == MPI_SUCCESS) code = check_groups(mine, theirs);
  if (code == MPI_SUCCESS) code = make_between(endpoint, mine, theirs, made);
  return raise(endpoint, code);
}

int Intercomm_merge(Endpoint& endpoint, MPI_Comm, int high, MPI_Comm* made) {
  if (!endpoint.sides.is_inter()) return raise(endpoint, MPI_ERR_COMM);
  if (made == nullptr) return raise(endpoint, MPI_ERR_ARG);
  const int mine = high != 0 ? 1 : 0, all = endpoint.communicator->size();
  std::vector<int> theirs(static_cast<std::size_t>(endpoint.peers()));
  const int code = Allgather(endpoint, &mine, 1, MPI_INT, theirs.data(), 1, MPI_INT, endpoint.handle);
  if (code != MPI_SUCCESS) return code;
  // Where both groups say the same, those come first that are first in the communicator of both.
  std::vector<Choice> choices;
  for (int rank = 0; rank < all; ++rank) {
    const int place = rank - endpoint.sides.first_remote;
    const bool is_remote = place >= 0 && place < endpoint.peers();
    const int is_high = is_remote ? theirs[static_cast<std::size_t>(place)] : mine;
    choices.push_back({0, rank + is_high * all});
  }
  return raise(endpoint, split_as_chosen(endpoint, choices, made));
}

}  // namespace calls
}  // namespace gapless::mpi::endpoints

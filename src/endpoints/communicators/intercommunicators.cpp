// Communicators of endpoints that may have none in common before: of a group alone (MPI 5.0, 7.4.2), and
// intercommunicators (7.6), of two groups whose members send to each other. Below, all members of an intercommunicator
// are the ranks of one communicator, first those of one group and then those of the other; MPI_Intercomm_merge makes
// another one of the same ranks.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/assembly.hpp"
#include "endpoints/communicators/groups.hpp"
#include "endpoints/communicators/meeting.hpp"
#include "endpoints/communicators/parts.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/schedule.hpp"
#include "endpoints/together/together.hpp"
#include "mpi/calls/count_arrays.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors_returned.hpp"

namespace gapless::mpi::endpoints {
namespace {

constexpr const char* create_name = "MPI_Intercomm_create";
constexpr const char* of_group_name = "MPI_Comm_create_from_group";
constexpr const char* of_groups_name = "MPI_Intercomm_create_from_groups";

/// Meetings of endpoints that have no communicator in common yet.
Meetings& meetings_between() {
  static auto& all = *new Meetings;
  return all;
}

/// The endpoints of a communicator, by rank, with their processes in the world; MPI_UNDEFINED: not there.
std::vector<PlacedMember> placed_members_of(const Communicator& communicator) {
  std::vector<int> processes =
      communicator.has_peers() ? headers::world_ranks_of(communicator.base) : std::vector{own_rank(MPI_COMM_WORLD)};
  processes.resize(communicator.ranks.size(), MPI_UNDEFINED);
  std::vector<PlacedMember> placed;
  for (std::size_t rank = 0; rank < communicator.places.size(); ++rank)
    placed.push_back(
        {processes[static_cast<std::size_t>(communicator.places[rank].process)], communicator.identities[rank]});
  return placed;
}

std::vector<PlacedMember> placed_members_of(const Group& group) {
  std::vector<PlacedMember> placed;
  for (const Identity& member : group.members) placed.push_back({world_rank_of(member.process), member});
  return placed;
}

/// A leader that waits for the other one, in the same process. `theirs`, `code` and `is_met` are the other's to set.
struct WaitingLeader {
  MPI_Comm peers;
  int tag;
  const std::vector<PlacedMember>& mine;
  std::vector<PlacedMember>& theirs;
  int code = MPI_SUCCESS;
  std::atomic<bool> is_met{false};
};

struct WaitingLeaders {
  std::mutex mutex;
  std::vector<WaitingLeader*> all;
};
WaitingLeaders& waiting_leaders() {
  static auto& one = *new WaitingLeaders;
  return one;
}

/// Tells both leaders of each other's group.
int tell_each_other(const std::vector<PlacedMember>& mine, std::vector<PlacedMember>& theirs, WaitingLeader& other) {
  try {
    std::vector<PlacedMember> for_other = mine;
    theirs = other.mine;
    other.theirs.swap(for_other);
  } catch (const std::exception&) {
    other.code = MPI_ERR_NO_MEM;
  }
  const int code = other.code;
  other.is_met.store(true, std::memory_order_release);
  return code;
}

/// What a leader hears of another one that lives in this process, too. Messages of one process to itself with one tag
/// could not be told from those that come back.
int ask_leader_here(Endpoint& endpoint, const std::vector<PlacedMember>& mine, MPI_Comm peers, int tag,
                    std::vector<PlacedMember>& theirs) {
  WaitingLeader waiting{peers, tag, mine, theirs};
  {
    const std::lock_guard lock(waiting_leaders().mutex);
    auto& all = waiting_leaders().all;
    const auto found =
        std::ranges::find_if(all, [&](const WaitingLeader* one) { return one->peers == peers && one->tag == tag; });
    if (found != all.end()) {
      WaitingLeader& other = **found;
      all.erase(found);
      return tell_each_other(mine, theirs, other);
    }
    all.push_back(&waiting);
  }
  drive_until(endpoint, [&] { return waiting.is_met.load(std::memory_order_acquire); });
  return waiting.code;
}

/// Is that rank of a communicator of processes this process?
bool is_this_process(MPI_Comm peers, int rank) noexcept {
  int is_inter = 0;
  return find(peers) == nullptr && inner.Comm_test_inter(peers, &is_inter) == MPI_SUCCESS && is_inter == 0 &&
         own_rank(peers) == rank;
}

/// Can there be a leader of that rank, with messages of that tag? An error class. The library would tell the error
/// handler of `peers`, which the program's call is not about.
int check_other_leader(MPI_Comm peers, int leader, int tag) noexcept {
  const Endpoint* const endpoint = find_even_freed(peers);
  if (peers == MPI_COMM_NULL || endpoint == &freed_endpoint) return MPI_ERR_COMM;
  const bool is_endpoint = endpoint != nullptr;
  const int bound = is_endpoint ? endpoint->communicator->tag_upper_bound : greatest_tag(peers);
  const int ranks = is_endpoint ? endpoint->peers() : count_entries(peers, CountsOf::processes);
  if (leader < 0 || leader >= ranks) return MPI_ERR_RANK;
  return tag >= 0 && tag <= bound ? MPI_SUCCESS : MPI_ERR_TAG;
}

/// One message each way between the leaders. An error code, which endpoints do not raise on `peers`.
int exchange(MPI_Comm peers, int leader, int tag, const void* out, std::size_t out_bytes, void* in,
             std::size_t in_bytes) {
  const int sent = static_cast<int>(out_bytes), received = static_cast<int>(in_bytes);
  if (Endpoint* const endpoint = find(peers)) {
    const int peer = leader + endpoint->sides.first_remote;
    Schedule schedule(*endpoint, false);
    schedule.send({out, sent, MPI_BYTE}, peer, tag, Context::messages, Mode::standard);
    schedule.receive({in, received, MPI_BYTE}, peer, tag, Context::messages, false);
    return schedule.run();
  }
  const InLibrary meanwhile;
  return inner.Sendrecv(out, sent, MPI_BYTE, leader, tag, in, received, MPI_BYTE, leader, tag, peers,
                        MPI_STATUS_IGNORE);
}

/// What the leaders know of the other group. An error code.
int ask_other_leader(Endpoint& endpoint, const std::vector<PlacedMember>& mine, MPI_Comm peers, int leader, int tag,
                     std::vector<PlacedMember>& theirs) {
  if (const int mistake = check_other_leader(peers, leader, tag); mistake != MPI_SUCCESS) return mistake;
  if (is_this_process(peers, leader)) return ask_leader_here(endpoint, mine, peers, tag, theirs);
  const int count = static_cast<int>(mine.size());
  int their_count = 0;
  int code = exchange(peers, leader, tag, &count, sizeof count, &their_count, sizeof their_count);
  if (code != MPI_SUCCESS) return code;
  theirs.resize(static_cast<std::size_t>(their_count));
  return exchange(peers, leader, tag, mine.data(), mine.size() * sizeof(PlacedMember), theirs.data(),
                  theirs.size() * sizeof(PlacedMember));
}

/// The leader tells the others of its group, its tag too. They hear an error class: codes are each process's own.
int learn_of_others(Endpoint& endpoint, int root, int code, int& tag, std::vector<PlacedMember>& theirs) {
  int told[] = {class_of(code), tag, static_cast<int>(theirs.size())};
  if (const int failed = calls::Bcast(endpoint, told, 3, MPI_INT, root, endpoint.handle); failed != MPI_SUCCESS)
    return failed;
  if (told[0] != MPI_SUCCESS) return told[0];
  tag = told[1];
  theirs.resize(static_cast<std::size_t>(told[2]));
  const auto bytes = static_cast<int>(theirs.size() * sizeof(PlacedMember));
  return calls::Bcast(endpoint, theirs.data(), bytes, MPI_BYTE, root, endpoint.handle);
}

bool is_before(const PlacedMember& a, const PlacedMember& b) noexcept { return a.identity < b.identity; }

int not_in_world(const char* function) noexcept {
  return code_with_text(MPI_ERR_UNSUPPORTED_OPERATION, function, "not all processes are in MPI_COMM_WORLD");
}

bool are_all_in_world(const std::vector<PlacedMember>& members) noexcept {
  return std::ranges::none_of(members, [](const PlacedMember& one) { return one.process == MPI_UNDEFINED; });
}

/// Can there be an intercommunicator of these groups? An error class.
int check_groups(const char* function, const std::vector<PlacedMember>& mine, const std::vector<PlacedMember>& theirs) {
  for (const PlacedMember& other : theirs) {
    const bool is_in_both =
        std::any_of(mine.begin(), mine.end(), [&](const PlacedMember& one) { return one.identity == other.identity; });
    if (is_in_both) return MPI_ERR_GROUP;
  }
  return are_all_in_world(mine) && are_all_in_world(theirs) ? MPI_SUCCESS : not_in_world(function);
}

/// The tag by which the library tells communicators apart that are made at the same time in the same processes.
int tag_of(const MeetingKey& key) noexcept {
  std::uint64_t mixed = 0;
  for (const std::uint64_t number : key) mixed = mix(mixed, number);
  return static_cast<int>(mixed >> (64 - tag_bits(MPI_COMM_WORLD)));
}

/// Makes the communicator of all these members, each of which calls; the members of one process meet. `word` tells the
/// communicator apart from others of the same members.
template <class Drive>
std::shared_ptr<Meeting> make_in_world(Drive drive, std::string_view word, const std::vector<PlacedMember>& all) {
  MeetingKey key{hash_of(word)};
  for (const PlacedMember& one : all) key.insert(key.end(), {one.identity.process, one.identity.number});
  const int here = own_rank(MPI_COMM_WORLD);
  const auto arriving =
      std::count_if(all.begin(), all.end(), [&](const PlacedMember& one) { return one.process == here; });
  return meet_driving(drive, meetings_between(), key, static_cast<int>(arriving), MPI_SUCCESS, [&](Meeting& met) {
    // The call is about other communicators, whose error handler is told.
    const ErrorsReturned meanwhile(MPI_COMM_WORLD, ErrorsReturned::Fatal::is_replaced);
    met.code = make_of_placed(MPI_COMM_WORLD, here, all, tag_of(key), {}, met.made.emplace_back());
  });
}

/// All members of the group call. An error code, not raised.
int make_of_group_alone(const char* function, const Group& group, const char* word, MPI_Errhandler handler,
                        MPI_Comm* made) {
  const std::vector<PlacedMember> members = placed_members_of(group);
  const int place = groups::rank_of(group.members, group.self);
  if (word == nullptr) return MPI_ERR_ARG;
  *made = MPI_COMM_NULL;
  if (place == MPI_UNDEFINED) return MPI_ERR_GROUP;
  if (!are_all_in_world(members)) return not_in_world(function);
  const auto meeting = make_in_world(progress_of_all, word, members);
  if (meeting->code != MPI_SUCCESS) return meeting->code;
  Communicator& all = *meeting->made[0];
  return claim(all, all.places[static_cast<std::size_t>(place)].local, handler, made);
}

/// All endpoints of both groups call. The endpoints of one process meet, whichever group they are in. `word` tells the
/// communicator apart from others of the same groups.
int make_between(Endpoint& endpoint, std::string_view word, const std::vector<PlacedMember>& mine,
                 const std::vector<PlacedMember>& theirs, MPI_Comm* made) {
  const bool is_first = is_before(*std::min_element(mine.begin(), mine.end(), is_before),
                                  *std::min_element(theirs.begin(), theirs.end(), is_before));
  std::vector<PlacedMember> all = is_first ? mine : theirs;
  all.insert(all.end(), is_first ? theirs.begin() : mine.begin(), is_first ? theirs.end() : mine.end());
  for (const PlacedMember& one : all) note_world_rank(one.identity.process, one.process);
  const auto meeting = make_in_world([&] { progress(endpoint); }, word, all);
  if (meeting->code != MPI_SUCCESS) return meeting->code;
  const int mine_begin = is_first ? 0 : static_cast<int>(theirs.size());
  const int theirs_begin = is_first ? static_cast<int>(mine.size()) : 0;
  Communicator& both = *meeting->made[0];
  const int local = both.places[static_cast<std::size_t>(mine_begin + endpoint.rank)].local;
  if (const int code = claim_like(endpoint.handle, both, local, made); code != MPI_SUCCESS) return code;
  find(*made)->sides = {mine_begin, theirs_begin, static_cast<int>(theirs.size())};
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int Intercomm_create(Endpoint& endpoint, MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader, int tag,
                     MPI_Comm* made) {
  if (find(local) != &endpoint) return raise(endpoint, unserved(create_name));  // a group of processes
  if (!endpoint.communicator->has_rank(local_leader)) return raise(endpoint, MPI_ERR_RANK);
  *made = MPI_COMM_NULL;
  const std::vector<PlacedMember> mine = placed_members_of(*endpoint.communicator);
  std::vector<PlacedMember> theirs;
  // All of both groups have called before any process enters the library (meet() in parts.cpp says why): each group
  // meets, and then the leaders hear of each other.
  int code = together::barrier(endpoint);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  if (endpoint.rank == local_leader) code = ask_other_leader(endpoint, mine, peers, remote_leader, tag, theirs);
  code = learn_of_others(endpoint, local_leader, code, tag, theirs);
  if (code == MPI_SUCCESS) code = check_groups(create_name, mine, theirs);
  if (code == MPI_SUCCESS) code = make_between(endpoint, std::to_string(tag), mine, theirs, made);
  return raise(endpoint, code);
}

int Intercomm_merge(Endpoint& endpoint, MPI_Comm, int high, MPI_Comm* made) {
  if (!endpoint.sides.is_inter()) return raise(endpoint, MPI_ERR_COMM);
  const int mine = high != 0 ? 1 : 0, all = endpoint.communicator->size();
  std::vector<int> theirs(static_cast<std::size_t>(endpoint.peers()));
  const int code = Allgather(endpoint, &mine, 1, MPI_INT, theirs.data(), 1, MPI_INT, endpoint.handle);
  if (code != MPI_SUCCESS) return code;
  // Where both groups say the same, those come first that are first in the communicator of both.
  std::vector<Choice> choices;
  for (int rank = 0; rank < all; ++rank) {
    const int place = rank - endpoint.sides.first_remote;
    const bool is_remote = endpoint.has_peer(place);
    const int is_high = is_remote ? theirs[static_cast<std::size_t>(place)] : mine;
    choices.push_back({0, rank + is_high * all});
  }
  return raise(endpoint, split_as_chosen(endpoint, choices, made));
}

namespace {

/// The library's call, which is about groups of processes.
template <class Call>
int call_library(Call call, MPI_Comm* made) {
  const InLibrary meanwhile;
  const int code = call();
  if (code == MPI_SUCCESS && made != nullptr) reuse(*made);
  return code;
}

/// The code of `call()`, of which the handler is told that the program gave for the communicator to be made (MPI 4.1,
/// 7.4.2). The handler sees a communicator of this process alone.
template <class Call>
int told_to(MPI_Errhandler handler, Call call) noexcept {
  const int code = code_of(call);
  if (code == MPI_SUCCESS || handler == MPI_ERRORS_RETURN) return code;
  MPI_Comm told = MPI_COMM_NULL;
  if (make_handle(&told) != MPI_SUCCESS) return raise_without_object(code);
  inner.Comm_set_errhandler(told, handler);
  raise_on_communicator(told, code);
  inner.Comm_free(&told);
  return code;
}

/// What the leader of the local group knows of the other one. An error class.
int look_at_remote_group(MPI_Group remote, int leader, std::vector<PlacedMember>& theirs) {
  const auto group = groups::find(remote);
  if (group == nullptr) return MPI_ERR_GROUP;
  theirs = placed_members_of(*group);
  return leader >= 0 && leader < static_cast<int>(theirs.size()) ? MPI_SUCCESS : MPI_ERR_RANK;
}

/// The members of the local group meet in a communicator of their own.
int create_from_groups(const Group& local, int local_leader, MPI_Group remote, int remote_leader, const char* word,
                       MPI_Errhandler handler, MPI_Comm* made) {
  if (local_leader < 0 || local_leader >= static_cast<int>(local.members.size())) return MPI_ERR_RANK;
  MPI_Comm meeting = MPI_COMM_NULL;
  *made = MPI_COMM_NULL;
  int code = make_of_group_alone(of_groups_name, local, word, handler, &meeting);
  if (code != MPI_SUCCESS) return code;
  Endpoint& endpoint = *find(meeting);
  const std::vector<PlacedMember> mine = placed_members_of(local);
  std::vector<PlacedMember> theirs;
  if (endpoint.rank == local_leader) code = look_at_remote_group(remote, remote_leader, theirs);
  int no_tag = 0;
  code = learn_of_others(endpoint, local_leader, code, no_tag, theirs);
  if (code == MPI_SUCCESS) code = check_groups(of_groups_name, mine, theirs);
  if (code == MPI_SUCCESS) code = make_between(endpoint, word, mine, theirs, made);
  const int freed = Comm_free(endpoint, &meeting);
  return code == MPI_SUCCESS ? freed : code;
}

}  // namespace

GAPLESS_IF_DECLARED(
    Comm_create_from_group, int Comm_create_from_group(MPI_Group group, const char* word, MPI_Info info,
                                                       MPI_Errhandler handler, MPI_Comm* made) {
      const auto found = groups::find(group);
      if (found == nullptr)
        return call_library([&] { return inner.Comm_create_from_group(group, word, info, handler, made); }, made);
      return told_to(handler, [&] { return make_of_group_alone(of_group_name, *found, word, handler, made); });
    })

GAPLESS_IF_DECLARED(
    Intercomm_create_from_groups,
    int Intercomm_create_from_groups(MPI_Group local, int local_leader, MPI_Group remote, int remote_leader,
                                     const char* word, MPI_Info info, MPI_Errhandler handler, MPI_Comm* made) {
      const auto found = groups::find(local);
      if (found == nullptr && groups::find(remote) != nullptr)
        return told_to(handler, [] { return unserved(of_groups_name); });
      if (found == nullptr) {
        const auto call = [&] {
          return inner.Intercomm_create_from_groups(local, local_leader, remote, remote_leader, word, info, handler,
                                                    made);
        };
        return call_library(call, made);
      }
      return told_to(handler, [&] {
        return create_from_groups(*found, local_leader, remote, remote_leader, word, handler, made);
      });
    })

}  // namespace calls
}  // namespace gapless::mpi::endpoints

#include "endpoints/communicators/parts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "base/quiet_thread.hpp"
#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/assembly.hpp"
#include "endpoints/communicators/meeting.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/schedule.hpp"
#include "endpoints/together/together.hpp"

namespace gapless::mpi::endpoints {
namespace {

// What the library tells creations apart by that are under way at a time: those in the sequence of collectives, of
// which a split makes several; duplicates that the program does not wait for; and groups, which their members alone
// begin.
constexpr int first_duplicate_tag = 16384, first_group_tag = 32768;

/// The ranks of each colour, in their new order; colours in ascending order.
std::map<int, std::vector<int>> sort_by_colour(const std::vector<Choice>& choices) {
  std::map<int, std::vector<int>> members;
  for (std::size_t rank = 0; rank < choices.size(); ++rank) {
    if (choices[rank].colour != MPI_UNDEFINED) members[choices[rank].colour].push_back(static_cast<int>(rank));
  }
  for (auto& [colour, ranks] : members) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
    });
  }
  return members;
}

std::vector<Member> with_identities(const Communicator& whole, const std::vector<int>& ranks) {
  std::vector<Member> members;
  for (const int rank : ranks) members.push_back({rank, whole.identities[static_cast<std::size_t>(rank)]});
  return members;
}

/// How many of these ranks live in this process.
int count_here(const Communicator& whole, const std::vector<int>& ranks) noexcept {
  return static_cast<int>(std::ranges::count_if(
      ranks, [&](int rank) { return whole.places[static_cast<std::size_t>(rank)].process == whole.process; }));
}

int local_of(const Communicator& part, const std::vector<int>& members, int rank) noexcept {
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  return part.places[static_cast<std::size_t>(place)].local;
}

/// Calls at a time have no endpoint in common, and then their first ranks differ, or differ in their tags.
int group_tag(const Communicator& whole, const std::vector<int>& members, int tag) noexcept {
  const std::int64_t room = (std::int64_t{1} << whole.library_tag_bits) - first_group_tag;
  const std::int64_t each = std::max<std::int64_t>(room / whole.size(), 1);
  return static_cast<int>(first_group_tag +
                          (*std::min_element(members.begin(), members.end()) * each + tag % each) % room);
}

}  // namespace

int make_of_placed(MPI_Comm base, int process, const std::vector<PlacedMember>& members, int tag, Brought brought,
                   std::shared_ptr<Communicator>& made) {
  std::vector<int> processes;
  for (const PlacedMember& member : members) processes.push_back(member.process);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  const auto mine = std::lower_bound(processes.begin(), processes.end(), process);
  if (mine == processes.end() || *mine != process) return MPI_SUCCESS;

  made = std::make_shared<Communicator>();
  made->process = static_cast<int>(mine - processes.begin());
  std::vector<int> used(processes.size(), 0);
  for (const PlacedMember& member : members) {
    const auto place = std::lower_bound(processes.begin(), processes.end(), member.process) - processes.begin();
    made->places.push_back({static_cast<int>(place), used[static_cast<std::size_t>(place)]++});
    made->identities.push_back(member.identity);
  }
  if (processes.size() > 1) {
    MPI_Group all, some;
    native.Comm_group(base, &all);
    native.Group_incl(all, static_cast<int>(processes.size()), processes.data(), &some);
    const int code = inner.Comm_create_group(base, some, tag, &made->base);
    native.Group_free(&some);
    native.Group_free(&all);
    if (code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(made->base, MPI_ERRORS_RETURN);
  }
  return assemble(made, static_cast<int>(processes.size()), brought);
}

int make_part(const Communicator& whole, const std::vector<Member>& members, int tag, Brought brought,
              std::shared_ptr<Communicator>& made) {
  std::vector<PlacedMember> placed;
  for (const Member& member : members)
    placed.push_back({whole.places[static_cast<std::size_t>(member.rank)].process, member.identity});
  return make_of_placed(whole.base, whole.process, placed, tag, brought, made);
}

namespace {

/// What all endpoints of both groups have chosen: each group hears the other, whose first then tells it what it has
/// said itself.
int hear_both_groups(Endpoint& endpoint, const Choice& mine, std::vector<Choice>& choices) {
  const Sides& sides = endpoint.sides;
  Choice* const here = choices.data() + sides.first_local;
  Choice* const there = choices.data() + sides.first_remote;
  int code = calls::Allgather(endpoint, &mine, sizeof mine, MPI_BYTE, there, sizeof mine, MPI_BYTE, endpoint.handle);
  const bool is_first_group = sides.first_local == 0, is_first = endpoint.rank == sides.first_local;
  for (const bool first_group_hears : {true, false}) {
    const bool hears = is_first_group == first_group_hears;
    const int root = hears ? 0 : is_first ? int{MPI_ROOT} : int{MPI_PROC_NULL};
    const auto bytes = static_cast<int>(sizeof mine) * (hears ? endpoint.local_size() : sides.remote_size);
    if (code == MPI_SUCCESS)
      code = calls::Bcast(endpoint, hears ? here : there, bytes, MPI_BYTE, root, endpoint.handle);
  }
  return code;
}

int mistake_in(const std::vector<Choice>& choices) noexcept {
  const auto found = std::ranges::find_if(choices, [](const Choice& one) { return one.mistake != MPI_SUCCESS; });
  return found == choices.end() ? MPI_SUCCESS : found->mistake;
}

/// The part of the endpoint's colour, if it has one. Precondition: all endpoints have called.
///
/// Endpoints of one colour meet by themselves. If one thread made the parts of all colours one after the other, the
/// process would be late for the next part, and hold up what the processes that are there make otherwise.
int make_and_claim(Endpoint& endpoint, const std::map<int, std::vector<int>>& members, MPI_Comm* made) {
  constexpr std::uint64_t no_rank = std::uint64_t{1} << 32;  // tells the key from a group's (make_of_group)
  Communicator& whole = *endpoint.communicator;
  MeetingKey key = next_turn(endpoint);
  *made = MPI_COMM_NULL;
  int number = 0;
  for (const auto& [colour, ranks] : members) {
    const int part = number++;
    if (std::ranges::find(ranks, endpoint.rank) == ranks.end()) continue;
    key.push_back(no_rank + static_cast<std::uint64_t>(part));
    const auto meeting = meet(endpoint, whole.meetings, key, count_here(whole, ranks), MPI_SUCCESS, [&](Meeting& all) {
      const int tag = part % first_duplicate_tag;
      all.code = make_part(whole, with_identities(whole, ranks), tag, {}, all.made.emplace_back());
    });
    if (meeting->code != MPI_SUCCESS) return meeting->code;
    Communicator& mine = *meeting->made[0];
    return claim_like(endpoint.handle, mine, local_of(mine, ranks, endpoint.rank), made);
  }
  return MPI_SUCCESS;
}

int split_between(Endpoint& endpoint, const std::vector<Choice>& choices, MPI_Comm* made) {
  auto members = sort_by_colour(choices);
  const Sides& sides = endpoint.sides;
  const int first_of_second = std::max(sides.first_local, sides.first_remote);
  const auto is_in_first = [&](int rank) { return rank < first_of_second; };
  for (auto& [colour, ranks] : members) std::ranges::stable_partition(ranks, is_in_first);
  std::erase_if(members,
                [&](const auto& part) { return !is_in_first(part.second.front()) || is_in_first(part.second.back()); });
  const int code = make_and_claim(endpoint, members, made);
  if (code != MPI_SUCCESS || *made == MPI_COMM_NULL) return code;
  const std::vector<int>& ranks = members.at(choices[static_cast<std::size_t>(endpoint.rank)].colour);
  const auto in_first = static_cast<int>(std::ranges::count_if(ranks, is_in_first));
  const auto in_second = static_cast<int>(ranks.size()) - in_first;
  find(*made)->sides = is_in_first(endpoint.rank) ? Sides{0, in_first, in_second} : Sides{in_first, 0, in_first};
  return code;
}

}  // namespace

int split(Endpoint& endpoint, const Choice& mine, MPI_Comm* made) {
  std::vector<Choice> choices(endpoint.communicator->places.size());
  const int code = endpoint.sides.is_inter() ? hear_both_groups(endpoint, mine, choices)
                                             : calls::Allgather(endpoint, &mine, sizeof mine, MPI_BYTE, choices.data(),
                                                                sizeof mine, MPI_BYTE, endpoint.handle);
  if (code != MPI_SUCCESS) return code;
  if (const int mistake = mistake_in(choices); mistake != MPI_SUCCESS) return mistake;
  return endpoint.sides.is_inter() ? split_between(endpoint, choices, made)
                                   : make_and_claim(endpoint, sort_by_colour(choices), made);
}

int split_as_chosen(Endpoint& endpoint, const std::vector<Choice>& choices, MPI_Comm* made) {
  return make_and_claim(endpoint, sort_by_colour(choices), made);
}

namespace {

// Open MPI 5.0.11 makes one communicator of a process at a time. Who entered the library while some of the members have
// not even called would hold up what other endpoints make, for which those members may wait: so all meet before. Who
// has met makes nothing else first, for those who wait in the library would hold that up: a handle is made before the
// endpoints meet, or with the communicator.

/// Returns once all members have called. An error code.
int meet(Endpoint& endpoint, const std::vector<int>& members, int tag) {
  if (!endpoint.communicator->spans_processes()) return MPI_SUCCESS;
  constexpr int tags = 4096;  // the greatest ones: collectives begin to count at the least one
  const int meeting = endpoint.communicator->format.upper_bound() - tag % tags;
  const Data nothing{nullptr, 0, MPI_BYTE};
  Schedule schedule(endpoint, false);
  const auto send = [&](int to) { schedule.send(nothing, to, meeting, Context::collective, Mode::standard); };
  const auto receive = [&](int from) { schedule.receive(nothing, from, meeting, Context::collective, false); };
  const auto others = std::span(members).subspan(1);
  if (endpoint.rank == members.front()) {
    std::ranges::for_each(others, receive);
    schedule.fence();
    std::ranges::for_each(others, send);
  } else {
    send(members.front());
    schedule.fence();
    receive(members.front());
  }
  return schedule.run();
}

}  // namespace

int make_of_group(Endpoint& endpoint, const std::vector<int>& members, int tag, MPI_Comm* made) {
  if (const int code = meet(endpoint, members, tag); code != MPI_SUCCESS) return code;
  Communicator& whole = *endpoint.communicator;
  MeetingKey key{static_cast<std::uint64_t>(tag)};
  key.insert(key.end(), members.begin(), members.end());
  const auto meeting = meet(endpoint, whole.meetings, key, count_here(whole, members), MPI_SUCCESS, [&](Meeting& all) {
    all.code =
        make_part(whole, with_identities(whole, members), group_tag(whole, members, tag), {}, all.made.emplace_back());
  });
  *made = MPI_COMM_NULL;
  if (meeting->code != MPI_SUCCESS) return meeting->code;
  Communicator& part = *meeting->made[0];
  return claim_like(endpoint.handle, part, local_of(part, members, endpoint.rank), made);
}

namespace {

void make_duplicate(const Communicator& whole, int tag, Meeting& all) {
  std::vector<int> everyone(whole.places.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  all.code = make_part(whole, with_identities(whole, everyone), tag, all.refused, all.made.emplace_back());
}

/// The library's duplicate of the endpoint's handle, or MPI_COMM_NULL. An error code.
int duplicate_handle(const Endpoint& endpoint, const MPI_Info* info, MPI_Comm* handle) {
  const int code = info == nullptr ? inner.Comm_dup(endpoint.handle, handle)
                                   : inner.Comm_dup_with_info(endpoint.handle, *info, handle);
  if (code != MPI_SUCCESS) *handle = MPI_COMM_NULL;
  return code;
}

/// The duplicate gets its handle, which is freed where there is none.
int claim_duplicate(const Endpoint& endpoint, const Meeting& meeting, MPI_Comm* handle) {
  int code = meeting.code;
  if (code == MPI_SUCCESS) code = claim(*meeting.made[0], endpoint.local, *handle);
  if (code != MPI_SUCCESS) {
    if (*handle != MPI_COMM_NULL) inner.Comm_free(handle);
    return code;
  }
  Endpoint& made = *find(*handle);
  made.topology = endpoint.topology;
  made.sides = endpoint.sides;
  return code;
}

}  // namespace

int duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* made) {
  const Communicator& whole = *endpoint.communicator;
  int refused = duplicate_handle(endpoint, info, made);
  if (whole.spans_processes()) {
    const int code = together::barrier(endpoint);  // all meet, as in meet()
    if (refused == MPI_SUCCESS) refused = code;
  }
  const auto meeting = meet(endpoint, refused, [&](Meeting& all) { make_duplicate(whole, 0, all); });
  return claim_duplicate(endpoint, *meeting, made);
}

std::function<bool(int& code)> begin_duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* handle) {
  Communicator& whole = *endpoint.communicator;
  bool is_last = false;
  const MeetingKey turn = next_turn(endpoint);
  const int refused = duplicate_handle(endpoint, info, handle);
  const auto meeting = arrive_at_meeting(whole.meetings, turn, whole.local_count(), refused, is_last);
  const int tag = first_duplicate_tag + static_cast<int>(turn[0] % (first_group_tag - first_duplicate_tag));
  const auto begin = [&whole, tag, all = meeting.get()] {
    const auto make = [&whole, tag, all] { carry_out(*all, [&](Meeting& met) { make_duplicate(whole, tag, met); }); };
    if (whole.spans_processes()) all->worker = start_quiet_thread(make);
    if (!all->worker.joinable()) make();
  };
  return [&endpoint, meeting, handle, begin, is_first_look = true](int& code) mutable {
    // All endpoints have called. The last one of this process to hear of that begins.
    const bool begins = std::exchange(is_first_look, false) && ++meeting->heard == endpoint.communicator->local_count();
    if (begins) begin();
    if (!meeting->done.load(std::memory_order_acquire)) return false;
    code = claim_duplicate(endpoint, *meeting, handle);
    return true;
  };
}

int find_place(Endpoint& endpoint, int type, MPI_Info info, int& place) {
  const Communicator& whole = *endpoint.communicator;
  const auto meeting = meet(endpoint, MPI_SUCCESS, [&](Meeting& all) {
    MPI_Comm together = MPI_COMM_NULL;
    all.number = whole.process;
    if (!whole.spans_processes()) return;
    all.code = inner.Comm_split_type(whole.processes, type, whole.process, info, &together);
    if (together == MPI_COMM_NULL) all.number = MPI_UNDEFINED;
    if (all.code != MPI_SUCCESS || together == MPI_COMM_NULL) return;
    all.code = inner.Bcast(&all.number, 1, MPI_INT, 0, together);
    inner.Comm_free(&together);
  });
  place = meeting->number;
  return meeting->code;
}

}  // namespace gapless::mpi::endpoints

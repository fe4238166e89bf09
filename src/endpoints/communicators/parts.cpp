#include "endpoints/communicators/parts.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/quiet_thread.hpp"
#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/agreement.hpp"
#include "endpoints/communicators/assembly.hpp"
#include "endpoints/inner.hpp"

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

void make_parts(const Communicator& whole, const std::map<int, std::vector<int>>& members, Agreement& agreement) {
  for (const auto& [colour, ranks] : members) {
    std::shared_ptr<Communicator> made;
    const int tag = static_cast<int>(agreement.made.size()) % first_duplicate_tag;
    if (agreement.code == MPI_SUCCESS) agreement.code = make_part(whole, with_identities(whole, ranks), tag, made);
    agreement.made.push_back(std::move(made));
  }
}

int local_of(const Communicator& part, const std::vector<int>& members, int rank) noexcept {
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  return part.places[static_cast<std::size_t>(place)].local;
}

int claim_part(const Endpoint& endpoint, Communicator& part, int local, MPI_Comm* made) {
  const int code = make_handle_like(endpoint.handle, made);
  return code == MPI_SUCCESS ? claim(part, local, *made) : code;
}

/// Calls at a time have no endpoint in common, and then their first ranks differ, or differ in their tags.
int group_tag(const Communicator& whole, const std::vector<int>& members, int tag) noexcept {
  const std::int64_t room = (std::int64_t{1} << whole.library_tag_bits) - first_group_tag;
  const std::int64_t each = std::max<std::int64_t>(room / whole.size(), 1);
  return static_cast<int>(first_group_tag +
                          (*std::min_element(members.begin(), members.end()) * each + tag % each) % room);
}

}  // namespace

int make_of_residents(MPI_Comm base, int process, const std::vector<Resident>& members, int tag,
                      std::shared_ptr<Communicator>& made) {
  std::vector<int> processes;
  for (const Resident& member : members) processes.push_back(member.process);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  const auto mine = std::lower_bound(processes.begin(), processes.end(), process);
  if (mine == processes.end() || *mine != process) return MPI_SUCCESS;

  made = std::make_shared<Communicator>();
  made->process = static_cast<int>(mine - processes.begin());
  std::vector<int> used(processes.size(), 0);
  for (const Resident& member : members) {
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
  return assemble(made, static_cast<int>(processes.size()));
}

int make_part(const Communicator& whole, const std::vector<Member>& members, int tag,
              std::shared_ptr<Communicator>& made) {
  std::vector<Resident> residents;
  for (const Member& member : members)
    residents.push_back({whole.places[static_cast<std::size_t>(member.rank)].process, member.identity});
  return make_of_residents(whole.base, whole.process, residents, tag, made);
}

int split(Endpoint& endpoint, const Choice& mine, MPI_Comm* made) {
  const Communicator& whole = *endpoint.communicator;
  std::vector<Choice> choices(whole.places.size());
  const int code =
      calls::Allgather(endpoint, &mine, sizeof mine, MPI_BYTE, choices.data(), sizeof mine, MPI_BYTE, endpoint.handle);
  return code == MPI_SUCCESS ? split_as_chosen(endpoint, choices, made) : code;
}

int split_as_chosen(Endpoint& endpoint, const std::vector<Choice>& choices, MPI_Comm* made) {
  const Communicator& whole = *endpoint.communicator;
  for (const Choice& choice : choices) {
    if (choice.mistake != MPI_SUCCESS) return choice.mistake;
  }
  const auto members = sort_by_colour(choices);
  const auto agreement = agree(endpoint, [&](Agreement& all) { make_parts(whole, members, all); });
  *made = MPI_COMM_NULL;
  if (agreement->code != MPI_SUCCESS) return agreement->code;
  const int colour = choices[static_cast<std::size_t>(endpoint.rank)].colour;
  if (colour == MPI_UNDEFINED) return MPI_SUCCESS;
  const auto group = members.find(colour);
  Communicator& part = *agreement->made[static_cast<std::size_t>(std::distance(members.begin(), group))];
  return claim_part(endpoint, part, local_of(part, group->second, endpoint.rank), made);
}

int make_of_group(Endpoint& endpoint, const std::vector<int>& members, int tag, MPI_Comm* made) {
  Communicator& whole = *endpoint.communicator;
  AgreementKey key{static_cast<std::uint64_t>(tag)};
  key.insert(key.end(), members.begin(), members.end());
  const auto mine = std::count_if(members.begin(), members.end(), [&](int rank) {
    return whole.places[static_cast<std::size_t>(rank)].process == whole.process;
  });
  const auto agreement = agree(endpoint, whole.agreements, key, static_cast<int>(mine), [&](Agreement& all) {
    all.code =
        make_part(whole, with_identities(whole, members), group_tag(whole, members, tag), all.made.emplace_back());
  });
  *made = MPI_COMM_NULL;
  if (agreement->code != MPI_SUCCESS) return agreement->code;
  Communicator& part = *agreement->made[0];
  return claim_part(endpoint, part, local_of(part, members, endpoint.rank), made);
}

namespace {

void make_duplicate(const Communicator& whole, int tag, Agreement& all) {
  std::vector<int> everyone(whole.places.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  all.code = make_part(whole, with_identities(whole, everyone), tag, all.made.emplace_back());
}

int duplicate_handle(const Endpoint& endpoint, const MPI_Info* info, MPI_Comm* handle) {
  return info == nullptr ? inner.Comm_dup(endpoint.handle, handle)
                         : inner.Comm_dup_with_info(endpoint.handle, *info, handle);
}

int claim_duplicate(const Endpoint& endpoint, const Agreement& agreement, MPI_Comm handle) {
  const int code = claim(*agreement.made[0], endpoint.local, handle);
  if (code != MPI_SUCCESS) return code;
  Endpoint& made = *find(handle);
  made.topology = endpoint.topology;
  made.sides = endpoint.sides;
  return code;
}

}  // namespace

int duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* made) {
  const Communicator& whole = *endpoint.communicator;
  const auto agreement = agree(endpoint, [&](Agreement& all) { make_duplicate(whole, 0, all); });
  if (agreement->code != MPI_SUCCESS) return agreement->code;
  const int code = duplicate_handle(endpoint, info, made);
  return code == MPI_SUCCESS ? claim_duplicate(endpoint, *agreement, *made) : code;
}

std::function<bool(int& code)> begin_duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* handle) {
  Communicator& whole = *endpoint.communicator;
  bool is_last = false;
  const AgreementKey turn = next_turn(endpoint);
  const auto agreement = arrive_at_agreement(whole.agreements, turn, whole.local_count(), is_last);
  if (is_last) {
    const int tag = first_duplicate_tag + static_cast<int>(turn[0] % (first_group_tag - first_duplicate_tag));
    const auto make = [&whole, tag, all = agreement.get()] {
      carry_out(*all, [&](Agreement& agreed) { make_duplicate(whole, tag, agreed); });
    };
    if (whole.spans_processes()) agreement->worker = start_quiet_thread(make);
    if (!agreement->worker.joinable()) make();
  }
  const int refused = duplicate_handle(endpoint, info, handle);
  return [&endpoint, agreement, refused, made = *handle](int& code) {
    if (!agreement->done.load(std::memory_order_acquire)) return false;
    code = agreement->code != MPI_SUCCESS ? agreement->code : refused;
    if (code == MPI_SUCCESS) code = claim_duplicate(endpoint, *agreement, made);
    return true;
  };
}

int find_node(Endpoint& endpoint, int& node) {
  const Communicator& whole = *endpoint.communicator;
  const auto agreement = agree(endpoint, [&](Agreement& all) {
    MPI_Comm together = MPI_COMM_NULL;
    all.number = whole.process;
    if (!whole.has_peers()) return;
    all.code = inner.Comm_split_type(whole.base, MPI_COMM_TYPE_SHARED, whole.process, MPI_INFO_NULL, &together);
    if (all.code != MPI_SUCCESS) return;
    all.code = inner.Bcast(&all.number, 1, MPI_INT, 0, together);
    inner.Comm_free(&together);
  });
  node = agreement->number;
  return agreement->code;
}

}  // namespace gapless::mpi::endpoints

#include "endpoints/creation.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <random>

#include "endpoints/calls/calls.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/fortran.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/static_world.hpp"
#include "endpoints/useful.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints {
namespace {

constexpr const char* create_name = "MPIX_Comm_create_endpoints";

gapless_redirect redirect_calls = nullptr;

/// A communicator of this process alone, from which handles are made.
int make_handle(MPI_Comm* handle) noexcept {
  static std::mutex mutex;
  static MPI_Comm seed = MPI_COMM_NULL;
  static bool is_made = false;
  const std::lock_guard lock(mutex);
  if (!is_made) {
    if (const int code = inner.Comm_split(MPI_COMM_SELF, 0, 0, &seed); code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(seed, MPI_ERRORS_RETURN);
    is_made = true;
  }
  return inner.Comm_split(seed, 0, 0, handle);
}

std::uint64_t identity_of_process() {
  static const std::uint64_t mine = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
  }();
  return mine;
}

std::uint64_t next_number(std::uint64_t count) {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count);
}

int bits_for(std::size_t values) noexcept {
  int bits = 0;
  while ((std::size_t{1} << bits) < values) ++bits;
  return bits;
}

/// What of the library's tags is left for the program; false if that is less than MPI promises it.
bool make_format(Communicator& communicator, std::size_t most_local) {
  int available = 31;
  if (communicator.has_peers()) {
    int* bound = nullptr;
    int flag = 0;
    inner.Comm_get_attr(communicator.base, MPI_TAG_UB, &bound, &flag);
    // Open MPI knows it of the world alone.
    if (flag == 0) inner.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    available = 0;
    while (flag != 0 && available < 31 && ((std::int64_t{1} << (available + 1)) - 1) <= *bound) ++available;
  }
  constexpr int least_bits = 15, kind_bits = 2;
  communicator.format.user_bits = available - kind_bits - bits_for(most_local);
  communicator.tag_upper_bound = communicator.format.upper_bound();
  return communicator.format.user_bits >= least_bits;
}

/// What collectives in two levels need. An error code.
int make_levels(Communicator& communicator) {
  int with_endpoints = 0, block = 0;
  for (std::size_t process = 0; process < communicator.ranks.size(); ++process) {
    const int locals = static_cast<int>(communicator.ranks[process].size());
    if (static_cast<int>(process) == communicator.process) communicator.first_block = block;
    communicator.leaders.push_back(with_endpoints);
    communicator.most_locals = std::max(communicator.most_locals, locals);
    with_endpoints += locals != 0 ? 1 : 0;
    block += locals;
  }
  communicator.is_in_order = std::is_sorted(communicator.places.begin(), communicator.places.end(),
                                            [](const Place& a, const Place& b) { return a.process < b.process; });
  const auto mine = communicator.ranks[static_cast<std::size_t>(communicator.process)].size();
  if (mine != 0) communicator.seats = std::make_unique<Seats>(mine, communicator.ranks.size());
  if (with_endpoints < 2) return MPI_SUCCESS;
  if (with_endpoints == static_cast<int>(communicator.ranks.size())) {
    communicator.processes = communicator.base;
    return MPI_SUCCESS;
  }
  const int colour = mine != 0 ? 0 : MPI_UNDEFINED;
  const int code = inner.Comm_split(communicator.base, colour, communicator.process, &communicator.processes);
  if (communicator.processes != MPI_COMM_NULL) inner.Comm_set_errhandler(communicator.processes, MPI_ERRORS_RETURN);
  return code;
}

/// Fills in everything from `base`, `process`, `places` and `identities`. An error code.
int assemble(const std::shared_ptr<Communicator>& communicator, int processes) {
  communicator->ranks.resize(static_cast<std::size_t>(processes));
  for (std::size_t rank = 0; rank < communicator->places.size(); ++rank)
    communicator->ranks[static_cast<std::size_t>(communicator->places[rank].process)].push_back(static_cast<int>(rank));
  std::size_t most = 0;
  for (const auto& ranks : communicator->ranks) most = std::max(most, ranks.size());
  if (!make_format(*communicator, most))
    return code_with_text(MPI_ERR_OTHER, create_name, "more endpoints than this MPI library's tags have room for");
  for (std::size_t lane = 0; communicator->has_peers() && lane < most; ++lane) {
    MPI_Comm made = MPI_COMM_NULL;
    if (const int code = inner.Comm_split(communicator->base, 0, communicator->process, &made); code != MPI_SUCCESS)
      return code;
    communicator->lanes.push_back(made);
    inner.Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  }
  if (const int code = make_levels(*communicator); code != MPI_SUCCESS) return code;
  const std::vector<int>& mine = communicator->ranks[static_cast<std::size_t>(communicator->process)];
  for (const int rank : mine) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->communicator = communicator;
    endpoint->rank = rank;
    endpoint->local = communicator->places[static_cast<std::size_t>(rank)].local;
    endpoint->outgoing.resize(mine.size());
    communicator->inboxes.push_back(std::make_unique<Inbox>(mine.size()));
    communicator->unclaimed.push_back(std::move(endpoint));
  }
  return MPI_SUCCESS;
}

/// Breaks the circle of what nobody will claim.
void give_up(Communicator& communicator) noexcept {
  const std::vector<std::shared_ptr<Endpoint>> last = std::move(communicator.unclaimed);
}

/// Gives an endpoint its handle.
int claim(Communicator& communicator, int local, MPI_Comm handle) {
  std::shared_ptr<Endpoint> endpoint;
  {
    const std::lock_guard lock(communicator.mutex);
    endpoint = std::move(communicator.unclaimed[static_cast<std::size_t>(local)]);
  }
  endpoint->handle = handle;
  return enter(endpoint) ? MPI_SUCCESS : code_with_text(MPI_ERR_OTHER, create_name, "too many endpoints");
}

struct Wish {
  std::int64_t count;  ///< negative: an error class
  std::uint64_t process, first_number;
};

/// What `info` says under "thread_level" is one of MPI's levels, or nothing.
bool has_thread_level(MPI_Info info) noexcept {
  if (info == MPI_INFO_NULL) return true;
  char value[32] = "";
  int is_there = 0;
  native.Info_get(info, "thread_level", sizeof value - 1, value, &is_there);
  if (is_there == 0) return true;
  for (const char* level :
       {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}) {
    if (std::strcmp(value, level) == 0) return true;
  }
  return false;
}

int check_arguments(int my_count, MPI_Info info, const MPI_Comm* handles) noexcept {
  int level = MPI_THREAD_SINGLE;
  native.Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) return MPI_ERR_OTHER;
  if (my_count < 0 || (my_count > 0 && handles == nullptr)) return MPI_ERR_ARG;
  return has_thread_level(info) ? MPI_SUCCESS : MPI_ERR_INFO_VALUE;
}

int why_not(int error_class) noexcept {
  switch (error_class) {
    case MPI_ERR_OTHER:
      return code_with_text(MPI_ERR_OTHER, create_name, "MPI was not initialised with MPI_THREAD_MULTIPLE");
    case MPI_ERR_INFO_VALUE:
      return code_with_text(MPI_ERR_INFO_VALUE, create_name, "thread_level in info is no thread level of MPI");
    default:
      return code_with_text(MPI_ERR_ARG, create_name,
                            "my_num_ep is negative, or the array of handles is null, in some process");
  }
}

void number_ranks(Communicator& communicator, const std::vector<Wish>& wishes) {
  const bool are_processes = std::all_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.count == 1; });
  for (std::size_t process = 0; process < wishes.size(); ++process) {
    for (int local = 0; local < wishes[process].count; ++local) {
      communicator.places.push_back({static_cast<int>(process), local});
      const std::uint64_t number = are_processes ? 0 : wishes[process].first_number + static_cast<std::uint64_t>(local);
      communicator.identities.push_back({wishes[process].process, number});
    }
  }
}

/// Every process fails or none.
int agree(MPI_Comm parent, int my_count, MPI_Info info, const MPI_Comm* handles, std::vector<Wish>& wishes) {
  int processes = 0;
  if (const int code = inner.Comm_size(parent, &processes); code != MPI_SUCCESS) return code;
  const int mistake = check_arguments(my_count, info, handles);
  const auto numbers = static_cast<std::uint64_t>(std::max(my_count, 0));
  const Wish mine{mistake != MPI_SUCCESS ? -mistake : my_count, identity_of_process(), next_number(numbers)};
  wishes.resize(static_cast<std::size_t>(processes));
  const int code = inner.Allgather(&mine, sizeof mine, MPI_BYTE, wishes.data(), sizeof mine, MPI_BYTE, parent);
  if (code != MPI_SUCCESS) return code;
  for (const Wish& wish : wishes) {
    if (wish.count < 0) return raise_on_communicator(parent, why_not(static_cast<int>(-wish.count)));
  }
  return MPI_SUCCESS;
}

int make_first(MPI_Comm parent, const std::vector<Wish>& wishes, std::shared_ptr<Communicator>& made) {
  made = std::make_shared<Communicator>();
  inner.Comm_rank(parent, &made->process);
  number_ranks(*made, wishes);
  if (wishes.size() > 1) {
    if (const int code = inner.Comm_split(parent, 0, made->process, &made->base); code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(made->base, MPI_ERRORS_RETURN);
  }
  return assemble(made, static_cast<int>(wishes.size()));
}

int claim_all(Communicator& communicator, MPI_Comm parent, MPI_Comm* handles) {
  MPI_Errhandler handler;
  inner.Comm_get_errhandler(parent, &handler);
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < communicator.inboxes.size() && code == MPI_SUCCESS; ++i) {
    code = make_handle(&handles[i]);
    if (code == MPI_SUCCESS) code = claim(communicator, static_cast<int>(i), handles[i]);
    if (code == MPI_SUCCESS) inner.Comm_set_errhandler(handles[i], handler);
  }
  native.Errhandler_free(&handler);
  return code;
}

void switch_calls() {
  static std::once_flag once;
  std::call_once(once, [] { redirect_calls(wrapped_entries().data(), wrapped_entries().size()); });
}

/// The ranks of each colour, in their new order; colours in ascending order.
std::map<int, std::vector<int>> sort_by_colour(const std::vector<std::array<int, 2>>& choices) {
  std::map<int, std::vector<int>> members;
  for (std::size_t rank = 0; rank < choices.size(); ++rank) {
    if (choices[rank][0] != MPI_UNDEFINED) members[choices[rank][0]].push_back(static_cast<int>(rank));
  }
  for (auto& [colour, ranks] : members) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      return choices[static_cast<std::size_t>(a)][1] < choices[static_cast<std::size_t>(b)][1];
    });
  }
  return members;
}

/// The communicator of some ranks, made by one thread of each process that has any of them. Null in other processes.
int make_part(const Communicator& whole, const std::vector<int>& members, int turn,
              std::shared_ptr<Communicator>& made) {
  std::vector<int> processes;
  for (const int rank : members) processes.push_back(whole.places[static_cast<std::size_t>(rank)].process);
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  const auto mine = std::lower_bound(processes.begin(), processes.end(), whole.process);
  if (mine == processes.end() || *mine != whole.process) return MPI_SUCCESS;

  made = std::make_shared<Communicator>();
  made->process = static_cast<int>(mine - processes.begin());
  std::vector<int> used(processes.size(), 0);
  for (const int rank : members) {
    const int before = whole.places[static_cast<std::size_t>(rank)].process;
    const auto process = std::lower_bound(processes.begin(), processes.end(), before) - processes.begin();
    made->places.push_back({static_cast<int>(process), used[static_cast<std::size_t>(process)]++});
    made->identities.push_back(whole.identities[static_cast<std::size_t>(rank)]);
  }
  if (processes.size() > 1) {
    MPI_Group all, some;
    inner.Comm_group(whole.base, &all);
    native.Group_incl(all, static_cast<int>(processes.size()), processes.data(), &some);
    const int code = inner.Comm_create_group(whole.base, some, turn, &made->base);
    native.Group_free(&some);
    native.Group_free(&all);
    if (code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(made->base, MPI_ERRORS_RETURN);
  }
  return assemble(made, static_cast<int>(processes.size()));
}

std::shared_ptr<Communicator::Agreement> enter_agreement(Endpoint& endpoint, bool& is_last) {
  Communicator& communicator = *endpoint.communicator;
  const std::uint64_t turn = endpoint.agreements++;
  const auto locals = static_cast<int>(communicator.ranks[static_cast<std::size_t>(communicator.process)].size());
  const std::lock_guard lock(communicator.mutex);
  auto& all = communicator.agreements;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == turn; });
  if (found == all.end()) {
    all.emplace_back(turn, std::make_shared<Communicator::Agreement>());
    found = all.end() - 1;
  }
  auto agreement = found->second;
  is_last = ++agreement->arrived == locals;
  if (is_last) all.erase(found);
  return agreement;
}

void make_parts(const Communicator& whole, const std::map<int, std::vector<int>>& members,
                Communicator::Agreement& agreement) {
  const InLibrary meanwhile;
  for (const auto& [colour, ranks] : members) {
    std::shared_ptr<Communicator> made;
    const int code = agreement.code != MPI_SUCCESS
                         ? MPI_SUCCESS
                         : make_part(whole, ranks, static_cast<int>(agreement.made.size()) % 32768, made);
    if (code != MPI_SUCCESS) agreement.code = code;
    agreement.made.push_back(std::move(made));
  }
}

int claim_part(Endpoint& endpoint, const std::vector<int>& members, Communicator& part, bool duplicates,
               const MPI_Info* info, MPI_Comm* handle) {
  const auto rank = std::find(members.begin(), members.end(), endpoint.rank) - members.begin();
  const int local = part.places[static_cast<std::size_t>(rank)].local;
  const int code = !duplicates       ? make_handle(handle)
                   : info == nullptr ? inner.Comm_dup(endpoint.handle, handle)
                                     : inner.Comm_dup_with_info(endpoint.handle, *info, handle);
  if (code != MPI_SUCCESS) return code;
  if (!duplicates) {
    MPI_Errhandler handler;
    inner.Comm_get_errhandler(endpoint.handle, &handler);
    inner.Comm_set_errhandler(*handle, handler);
    native.Errhandler_free(&handler);
  }
  return claim(part, local, *handle);
}

}  // namespace

void translate_worlds() { redirect_calls(entries_of_threads().data(), entries_of_threads().size()); }

int free_handle(MPI_Comm* handle) noexcept {
  Endpoint* const endpoint = find(*handle);
  return endpoint == nullptr ? MPI_ERR_COMM : calls::Comm_free(*endpoint, handle);
}

int refuse_endpoint(MPI_Comm parent, const char* function) noexcept {
  const Endpoint* const endpoint = find_even_freed(parent);
  if (endpoint == nullptr) return MPI_SUCCESS;
  return endpoint == &freed_endpoint ? raise_without_object(code_of_freed(function))
                                     : raise_on_communicator(parent, unserved(function));
}

int create(MPI_Comm parent, int my_count, MPI_Info info, MPI_Comm* handles) noexcept {
  try {
    parent = meaning_of(parent);
    int is_inter = 0;
    if (const int code = refuse_endpoint(parent, create_name); code != MPI_SUCCESS) return code;
    if (const int code = inner.Comm_test_inter(parent, &is_inter); code != MPI_SUCCESS) return code;
    if (is_inter != 0) return raise_on_communicator(parent, MPI_ERR_COMM);
    std::vector<Wish> wishes;
    if (const int code = agree(parent, my_count, info, handles, wishes); code != MPI_SUCCESS) return code;
    switch_calls();
    std::shared_ptr<Communicator> made;
    int code = make_first(parent, wishes, made);
    if (code == MPI_SUCCESS) code = claim_all(*made, parent, handles);
    give_up(*made);
    return code == MPI_SUCCESS ? code : raise_on_communicator(parent, code);
  } catch (const std::exception&) {
    return raise_on_communicator(parent, MPI_ERR_NO_MEM);
  }
}

int split(Endpoint& endpoint, int colour, int key, bool duplicates, MPI_Comm* made, const MPI_Info* info) {
  const Communicator& whole = *endpoint.communicator;
  const std::array<int, 2> mine{colour, key};
  std::vector<std::array<int, 2>> choices(whole.places.size());
  int code = calls::Allgather(endpoint, mine.data(), sizeof mine, MPI_BYTE, choices.data(), sizeof mine, MPI_BYTE,
                              endpoint.handle);
  if (code != MPI_SUCCESS) return code;
  const auto members = sort_by_colour(choices);
  bool is_last = false;
  const auto agreement = enter_agreement(endpoint, is_last);
  if (is_last) {
    make_parts(whole, members, *agreement);
    agreement->done.store(true, std::memory_order_release);
  } else {
    drive_until(endpoint, [&] { return agreement->done.load(std::memory_order_acquire); });
  }
  *made = MPI_COMM_NULL;
  if (agreement->code != MPI_SUCCESS) return agreement->code;
  if (colour == MPI_UNDEFINED) return MPI_SUCCESS;
  const auto group = members.find(colour);
  Communicator& part = *agreement->made[static_cast<std::size_t>(std::distance(members.begin(), group))];
  return claim_part(endpoint, group->second, part, duplicates, info, made);
}

int find_node(Endpoint& endpoint, int& node) {
  Communicator& whole = *endpoint.communicator;
  bool is_last = false;
  const auto agreement = enter_agreement(endpoint, is_last);
  if (is_last) {
    const InLibrary meanwhile;
    MPI_Comm together = MPI_COMM_NULL;
    agreement->number = whole.process;
    if (whole.has_peers()) {
      agreement->code =
          inner.Comm_split_type(whole.base, MPI_COMM_TYPE_SHARED, whole.process, MPI_INFO_NULL, &together);
      if (agreement->code == MPI_SUCCESS) {
        agreement->code = inner.Bcast(&agreement->number, 1, MPI_INT, 0, together);
        inner.Comm_free(&together);
      }
    }
    agreement->done.store(true, std::memory_order_release);
  } else {
    drive_until(endpoint, [&] { return agreement->done.load(std::memory_order_acquire); });
  }
  node = agreement->number;
  return agreement->code;
}

}  // namespace gapless::mpi::endpoints

extern "C" [[gnu::visibility("default")]] const gapless_variant_entry* gapless_additions_open(gapless_redirect redirect,
                                                                                              std::size_t* count) {
  using namespace gapless::mpi::endpoints;
  redirect_calls = redirect;
  load_inner();
  static const gapless_variant_entry additions[] = {
      {"Comm_create_endpoints", reinterpret_cast<void*>(&create)},
      {"Query_endpoints", reinterpret_cast<void*>(&query)},
      {"Init_endpoints", reinterpret_cast<void*>(&init_endpoints)},
      {"Endpoint_attach", reinterpret_cast<void*>(&attach)},
      {"comm_create_endpoints_", reinterpret_cast<void*>(&fortran::create)},
      {"query_endpoints_", reinterpret_cast<void*>(&fortran::query)},
      {"init_endpoints_", reinterpret_cast<void*>(&fortran::init)},
      {"endpoint_attach_", reinterpret_cast<void*>(&fortran::attach)},
  };
  *count = std::size(additions);
  return additions;
}

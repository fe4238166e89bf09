// What a program asks an endpoints communicator, and how it makes and frees others.
#include <algorithm>
#include <array>
#include <cstring>

#include "endpoints/calls/calls.hpp"
#include "endpoints/calls/forms.hpp"
#include "endpoints/calls/plans.hpp"
#include "endpoints/communicators/groups.hpp"
#include "endpoints/communicators/parts.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/requests.hpp"
#include "endpoints/together/together.hpp"
#include "gapless/endpoints.h"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {

static_assert(MPIX_ALIASED != MPI_IDENT && MPIX_ALIASED != MPI_CONGRUENT && MPIX_ALIASED != MPI_SIMILAR &&
              MPIX_ALIASED != MPI_UNEQUAL);

namespace {

int compare(const Endpoint& a, const Endpoint& b) {
  if (a.sides.is_inter() != b.sides.is_inter()) return MPI_UNEQUAL;
  int result = MPI_CONGRUENT;
  for (const bool remote : {false, true}) {
    const int of_groups = groups::compare(a.members(remote), b.members(remote));
    if (of_groups == MPI_UNEQUAL) return MPI_UNEQUAL;
    if (of_groups == MPI_SIMILAR) result = MPI_SIMILAR;
  }
  return result;
}

/// With a communicator of processes: the same only where each process has one endpoint, which is the process itself.
int compare_with_processes(const Endpoint& endpoint, MPI_Comm other, int* result) {
  if (other == MPI_COMM_NULL) return raise(endpoint, MPI_ERR_COMM);
  const Communicator& communicator = *endpoint.communicator;
  const bool are_processes = std::all_of(communicator.identities.begin(), communicator.identities.end(),
                                         [](const Identity& identity) { return identity.number == 0; });
  *result = MPI_UNEQUAL;
  if (!are_processes || endpoint.sides.is_inter()) return MPI_SUCCESS;
  if (!communicator.has_peers()) return inner.Comm_compare(endpoint.handle, other, result);
  const int code = inner.Comm_compare(communicator.base, other, result);
  // Ranks may be in another order than in the base, which has the processes in the order of an older communicator.
  if (*result == MPI_CONGRUENT && !communicator.is_in_order) *result = MPI_SIMILAR;
  return code;
}

/// Of those that MPI defines, some libraries have most on MPI_COMM_WORLD alone.
bool is_of_the_job(int key) noexcept {
  constexpr std::array<int, 6> keys{MPI_HOST,          MPI_IO,          MPI_WTIME_IS_GLOBAL, MPI_APPNUM,
                                    MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE};
  return std::ranges::find(keys, key) != keys.end();
}

int get_attribute(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  if (key != MPI_TAG_UB) {
    const int code = inner.Comm_get_attr(handle, key, value, flag);
    const bool is_missing = code == MPI_SUCCESS && *flag == 0 && is_of_the_job(key);
    return is_missing ? inner.Comm_get_attr(MPI_COMM_WORLD, key, value, flag) : code;
  }
  *static_cast<void**>(value) = &endpoint.communicator->tag_upper_bound;
  *flag = 1;
  return MPI_SUCCESS;
}

}  // namespace

int Comm_rank(Endpoint& endpoint, MPI_Comm, int* rank) {
  *rank = endpoint.rank - endpoint.sides.first_local;
  return MPI_SUCCESS;
}

int Comm_size(Endpoint& endpoint, MPI_Comm, int* size) {
  *size = endpoint.local_size();
  return MPI_SUCCESS;
}

int Comm_remote_size(Endpoint& endpoint, MPI_Comm, int* size) {
  if (!endpoint.sides.is_inter()) return raise(endpoint, MPI_ERR_COMM);
  *size = endpoint.sides.remote_size;
  return MPI_SUCCESS;
}

int Comm_test_inter(Endpoint& endpoint, MPI_Comm, int* flag) {
  *flag = endpoint.sides.is_inter() ? 1 : 0;
  return MPI_SUCCESS;
}

int Comm_compare(Endpoint&, MPI_Comm first, MPI_Comm second, int* result) {
  if (find_even_freed(first) == &freed_endpoint || find_even_freed(second) == &freed_endpoint)
    return raise_without_object(code_of_freed("MPI_Comm_compare"));
  Endpoint* const a = find(first);
  Endpoint* const b = find(second);
  if (a == nullptr || b == nullptr)
    return compare_with_processes(a != nullptr ? *a : *b, a != nullptr ? second : first, result);
  if (a == b) {
    *result = MPI_IDENT;
  } else {
    *result = a->communicator == b->communicator ? MPIX_ALIASED : compare(*a, *b);
  }
  return MPI_SUCCESS;
}

int Comm_get_attr(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  return get_attribute(endpoint, handle, key, value, flag);
}

int Attr_get(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  return get_attribute(endpoint, handle, key, value, flag);
}

int Comm_dup(Endpoint& endpoint, MPI_Comm, MPI_Comm* made) {
  return raise(endpoint, endpoints::duplicate(endpoint, nullptr, made));
}

int Comm_dup_with_info(Endpoint& endpoint, MPI_Comm, MPI_Info info, MPI_Comm* made) {
  return raise(endpoint, endpoints::duplicate(endpoint, &info, made));
}

namespace {

int begin_duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* made, MPI_Request* request) {
  return start_collective(endpoint, request, [&](Schedule& schedule) {
    if (endpoint.communicator->spans_processes()) plans::barrier(schedule);
    schedule.wait_for(endpoints::begin_duplicate(endpoint, info, made));
  });
}

}  // namespace

int Comm_idup(Endpoint& endpoint, MPI_Comm, MPI_Comm* made, MPI_Request* request) {
  return raise(endpoint, begin_duplicate(endpoint, nullptr, made, request));
}

GAPLESS_IF_DECLARED(
    Comm_idup_with_info,
    int Comm_idup_with_info(Endpoint& endpoint, MPI_Comm, MPI_Info info, MPI_Comm* made, MPI_Request* request) {
      return raise(endpoint, begin_duplicate(endpoint, &info, made, request));
    })

namespace {

/// What the info key says of a guided split: the library's other resources are not known here, and MPI gives
/// MPI_COMM_NULL for what is not known (MPI 5.0, 7.4.2).
bool asks_for_shared_memory(MPI_Info info) noexcept {
  if (info == MPI_INFO_NULL) return false;
  char value[32] = "";
  int is_there = 0;
  native.Info_get(info, "mpi_hw_resource_type", sizeof value - 1, value, &is_there);
  return is_there != 0 && std::strcmp(value, "mpi_shared_memory") == 0;
}

enum class Split { by_node, into_nothing, by_library };

/// By hardware that nobody has named, and by process sets, nothing is known to split by. The library has types of its
/// own.
Split split_of(int type, MPI_Info info) noexcept {
  if (type == MPI_COMM_TYPE_SHARED) return Split::by_node;
  if (type == MPI_UNDEFINED) return Split::into_nothing;
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  if (type == MPI_COMM_TYPE_HW_GUIDED) return asks_for_shared_memory(info) ? Split::by_node : Split::into_nothing;
  if (type == MPI_COMM_TYPE_HW_UNGUIDED) return Split::into_nothing;
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  if (type == MPI_COMM_TYPE_RESOURCE_GUIDED) return asks_for_shared_memory(info) ? Split::by_node : Split::into_nothing;
#endif
  static_cast<void>(info);
  return Split::by_library;
}

/// The type that all endpoints say which say any, of both groups of an intercommunicator.
int agree_on_type(Endpoint& endpoint, int& type) {
  static_assert(MPI_UNDEFINED < 0);
  int heard = type;
  int code = Allreduce(endpoint, &type, &heard, 1, MPI_INT, MPI_MAX, endpoint.handle);
  type = std::max(type, heard);
  if (code != MPI_SUCCESS || !endpoint.sides.is_inter()) return code;
  // That was the other group's, which hears of it, and says what it has heard of this one.
  const int theirs = heard;
  code = Allreduce(endpoint, &theirs, &heard, 1, MPI_INT, MPI_MAX, endpoint.handle);
  type = std::max(type, heard);
  return code;
}

}  // namespace

int Comm_split_type(Endpoint& endpoint, MPI_Comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  const bool takes_part = split_of(type, info) != Split::into_nothing;
  if (const int code = agree_on_type(endpoint, type); code != MPI_SUCCESS) return code;
  const Split how = split_of(type, info);
  int place = MPI_UNDEFINED, code = MPI_SUCCESS;
  if (type != MPI_UNDEFINED)
    code = find_place(endpoint, how == Split::by_library ? type : int{MPI_COMM_TYPE_SHARED}, info, place);
  if (code == MPI_SUCCESS) code = split(endpoint, {takes_part ? place : MPI_UNDEFINED, key}, made);
  return raise(endpoint, code);
}

int Comm_split(Endpoint& endpoint, MPI_Comm, int colour, int key, MPI_Comm* made) {
  const bool is_right = colour >= 0 || colour == MPI_UNDEFINED;
  return raise(endpoint, split(endpoint, {colour, key, is_right ? MPI_SUCCESS : MPI_ERR_ARG}, made));
}

namespace {

/// The ranks of the members of a group that the program gives, all of the endpoint's own, and the endpoint's place
/// among them, or MPI_UNDEFINED. An error class.
int look_at_group(const Endpoint& endpoint, MPI_Group handle, std::vector<int>& members, int& place) {
  place = MPI_UNDEFINED;
  if (handle == MPI_GROUP_EMPTY) return MPI_SUCCESS;
  const auto group = groups::find(handle);
  if (group == nullptr) return MPI_ERR_GROUP;
  const std::vector<Identity> all = endpoint.members(false);
  for (const Identity& member : group->members) {
    members.push_back(groups::rank_of(all, member));
    if (members.back() == MPI_UNDEFINED) return MPI_ERR_GROUP;
  }
  place = groups::rank_of(group->members, all[static_cast<std::size_t>(endpoint.rank - endpoint.sides.first_local)]);
  return MPI_SUCCESS;
}

}  // namespace

int Comm_create(Endpoint& endpoint, MPI_Comm, MPI_Group group, MPI_Comm* made) {
  std::vector<int> members;
  Choice mine;
  mine.mistake = look_at_group(endpoint, group, members, mine.key);
  // Groups have no member in common unless they are the same. Of an intercommunicator each side has one.
  if (mine.mistake == MPI_SUCCESS && mine.key != MPI_UNDEFINED)
    mine.colour = endpoint.sides.is_inter() ? 0 : *std::min_element(members.begin(), members.end());
  return raise(endpoint, split(endpoint, mine, made));
}

int Comm_create_group(Endpoint& endpoint, MPI_Comm, MPI_Group group, int tag, MPI_Comm* made) {
  std::vector<int> members;
  int place = MPI_UNDEFINED;
  if (tag < 0 || tag > endpoint.communicator->tag_upper_bound) return raise(endpoint, MPI_ERR_TAG);
  const int code = look_at_group(endpoint, group, members, place);
  *made = MPI_COMM_NULL;
  if (code != MPI_SUCCESS || place == MPI_UNDEFINED) return raise(endpoint, code);
  return raise(endpoint, make_of_group(endpoint, members, tag, made));
}

int Comm_free(Endpoint& endpoint, MPI_Comm* handle) {
  const std::shared_ptr<Endpoint> last = share(endpoint);
  // A request that is over keeps the endpoint no more.
  requests::release_abandoned(requests::all_abandoned);
  // Left first: once the library has freed the handle, it may give it to another communicator.
  leave(endpoint);
  const int code = inner.Comm_free(handle);
  if (code != MPI_SUCCESS && last != nullptr) {
    enter(last);
    return code;
  }
  const std::scoped_lock lock(endpoint.schedules_mutex, endpoint.lock);
  endpoint.is_freed = true;
  if (endpoint.is_needed()) {
    linger(last);
  } else {
    endpoint.close();
  }
  return code;
}

int Comm_disconnect(Endpoint& endpoint, MPI_Comm* handle) {
  drive_until(endpoint, [&] {
    const std::scoped_lock lock(endpoint.schedules_mutex, endpoint.lock);
    return !endpoint.has_work();
  });
  const int code = together::barrier(endpoint);
  return code == MPI_SUCCESS ? Comm_free(endpoint, handle) : raise(endpoint, code);
}

int Finalize() {
  if (endpoint_count() != static_endpoint_count()) {
    const int code = code_with_text(MPI_ERR_OTHER, "MPI_Finalize", "an endpoints communicator has not been freed");
    return raise_without_object(code);
  }
  return guarded([] {
    free_static_world();
    finish_sends();
    end_progress();
    requests::end();
    return inner.Finalize();
  });
}

}  // namespace gapless::mpi::endpoints::calls

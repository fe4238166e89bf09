// What a program asks an endpoints communicator, and how it makes and frees others.
#include <algorithm>
#include <cstring>

#include "endpoints/calls/calls.hpp"
#include "endpoints/creation.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/delivery/requests.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/static_world.hpp"
#include "gapless/endpoints.h"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {

static_assert(MPIX_ALIASED != MPI_IDENT && MPIX_ALIASED != MPI_CONGRUENT && MPIX_ALIASED != MPI_SIMILAR &&
              MPIX_ALIASED != MPI_UNEQUAL);

namespace {

int compare(const Communicator& a, const Communicator& b) {
  if (a.identities == b.identities) return MPI_CONGRUENT;
  auto sorted_a = a.identities, sorted_b = b.identities;
  std::sort(sorted_a.begin(), sorted_a.end());
  std::sort(sorted_b.begin(), sorted_b.end());
  return sorted_a == sorted_b ? MPI_SIMILAR : MPI_UNEQUAL;
}

/// With a communicator of processes: the same only where each process has one endpoint, which is the process itself.
int compare_with_processes(const Endpoint& endpoint, MPI_Comm other, int* result) {
  const Communicator& communicator = *endpoint.communicator;
  const bool are_processes = std::all_of(communicator.identities.begin(), communicator.identities.end(),
                                         [](const Identity& identity) { return identity.number == 0; });
  *result = MPI_UNEQUAL;
  if (!are_processes) return MPI_SUCCESS;
  if (!communicator.has_peers()) return inner.Comm_compare(endpoint.handle, other, result);
  const int code = inner.Comm_compare(communicator.base, other, result);
  // Ranks may be in another order than in the base, which has the processes in the order of an older communicator.
  const bool in_order = std::is_sorted(communicator.places.begin(), communicator.places.end(),
                                       [](const Place& a, const Place& b) { return a.process < b.process; });
  if (*result == MPI_CONGRUENT && !in_order) *result = MPI_SIMILAR;
  return code;
}

int get_attribute(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  if (key != MPI_TAG_UB) return inner.Comm_get_attr(handle, key, value, flag);
  *static_cast<void**>(value) = &endpoint.communicator->tag_upper_bound;
  *flag = 1;
  return MPI_SUCCESS;
}

}  // namespace

int Comm_rank(Endpoint& endpoint, MPI_Comm, int* rank) {
  *rank = endpoint.rank;
  return MPI_SUCCESS;
}

int Comm_size(Endpoint& endpoint, MPI_Comm, int* size) {
  *size = endpoint.communicator->size();
  return MPI_SUCCESS;
}

int Comm_compare(Endpoint&, MPI_Comm first, MPI_Comm second, int* result) {
  Endpoint* const a = find(first);
  Endpoint* const b = find(second);
  if (a == nullptr || b == nullptr)
    return compare_with_processes(a != nullptr ? *a : *b, a != nullptr ? second : first, result);
  if (a == b) {
    *result = MPI_IDENT;
  } else {
    *result = a->communicator == b->communicator ? MPIX_ALIASED : compare(*a->communicator, *b->communicator);
  }
  return MPI_SUCCESS;
}

int Comm_get_attr(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  return get_attribute(endpoint, handle, key, value, flag);
}

int Attr_get(Endpoint& endpoint, MPI_Comm handle, int key, void* value, int* flag) {
  return get_attribute(endpoint, handle, key, value, flag);
}

namespace {

int duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* made) {
  const int code = split(endpoint, 0, endpoint.rank, true, made, info);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  find(*made)->topology = endpoint.topology;
  return MPI_SUCCESS;
}

}  // namespace

int Comm_dup(Endpoint& endpoint, MPI_Comm, MPI_Comm* made) { return duplicate(endpoint, nullptr, made); }

int Comm_dup_with_info(Endpoint& endpoint, MPI_Comm, MPI_Info info, MPI_Comm* made) {
  return duplicate(endpoint, &info, made);
}

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

}  // namespace

int Comm_split_type(Endpoint& endpoint, MPI_Comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  bool by_node = type == MPI_COMM_TYPE_SHARED;
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  const bool is_guided = type == MPI_COMM_TYPE_HW_GUIDED;
#else
  const bool is_guided = false;
#endif
  if (is_guided) by_node = asks_for_shared_memory(info);
  if (!by_node && !is_guided && type != MPI_UNDEFINED) return raise(endpoint, unserved("MPI_Comm_split_type"));
  int node = 0;
  int code = find_node(endpoint, node);
  if (code == MPI_SUCCESS) code = split(endpoint, by_node ? node : MPI_UNDEFINED, key, false, made);
  return raise(endpoint, code);
}

int Comm_split(Endpoint& endpoint, MPI_Comm, int colour, int key, MPI_Comm* made) {
  if (colour < 0 && colour != MPI_UNDEFINED) return raise(endpoint, MPI_ERR_ARG);
  return raise(endpoint, split(endpoint, colour, key, false, made));
}

int Comm_free(Endpoint& endpoint, MPI_Comm* handle) {
  const std::shared_ptr<Endpoint> last = share(endpoint);
  // Left first: once the library has freed the handle, it may give it to another communicator.
  leave(endpoint);
  const int code = inner.Comm_free(handle);
  if (code != MPI_SUCCESS && last != nullptr) {
    enter(last);
    return code;
  }
  const std::scoped_lock lock(endpoint.schedules_mutex, endpoint.lock);
  endpoint.is_freed = true;
  if (endpoint.has_work()) {
    linger(last);
  } else {
    endpoint.close();
  }
  return code;
}

int Finalize() {
  if (endpoint_count() != static_endpoint_count()) {
    const int code = code_with_text(MPI_ERR_OTHER, "MPI_Finalize", "an endpoints communicator has not been freed");
    return raise_without_object(code);
  }
  free_static_world();
  end_progress();
  requests::end();
  return inner.Finalize();
}

}  // namespace gapless::mpi::endpoints::calls

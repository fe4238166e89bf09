// MPI's collectives over endpoints: which plan each is, of which buffers.
#include <optional>

#include "endpoints/calls/forms.hpp"
#include "endpoints/calls/plans.hpp"
#include "endpoints/together/together.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

using plans::Array, plans::DataOf, plans::OwnedBy, plans::Reduction;

void to_all(Schedule& schedule, const void* from, MPI_Count count, MPI_Datatype type, const DataOf& in) {
  if (from == MPI_IN_PLACE)
    return plans::exchange(
        schedule, [&](int) { return in(schedule.rank()); }, in, true);
  const Data mine = OwnedBy{schedule}.data(from, count, type, true);
  plans::exchange(
      schedule, [&](int) { return mine; }, in, false);
}

void all_to_all(Schedule& schedule, bool in_place, const DataOf& out, const DataOf& in) {
  if (in_place) return plans::exchange_in_place(schedule, in);
  plans::exchange(schedule, out, in, false);
}

// Blocking collectives in two levels, where they can go so.

using Code = std::optional<int>;

Code broadcast_together(Endpoint& endpoint, const Data& data, int root) {
  MPI_Count bytes = 0;
  if (!endpoint.communicator->has_rank(root) || together::size_of(endpoint, data, bytes) != MPI_SUCCESS ||
      !together::serves_broadcast(*endpoint.communicator, bytes))
    return std::nullopt;
  return together::broadcast(endpoint, data, root);
}

Code gather_to_all_together(Endpoint& endpoint, const Data& from, const together::Rows& all) {
  const bool in_place = from.memory == MPI_IN_PLACE;
  MPI_Count bytes = 0;
  if (all.each < 0 || all.datatype == MPI_DATATYPE_NULL) return std::nullopt;
  const Data mine = in_place ? Array(all.memory, all.datatype).part(all.each * endpoint.rank, all.each) : from;
  if (together::size_of(endpoint, mine, bytes) != MPI_SUCCESS ||
      !together::serves_exchange(*endpoint.communicator, bytes))
    return std::nullopt;
  return together::gather_to_all(endpoint, mine, in_place, all, bytes);
}

Code all_to_all_together(Endpoint& endpoint, const together::Rows& out, const together::Rows& in) {
  MPI_Count bytes = 0;
  if (out.memory == MPI_IN_PLACE || in.each < 0 || in.datatype == MPI_DATATYPE_NULL ||
      together::size_of(endpoint, {out.memory, out.each, out.datatype}, bytes) != MPI_SUCCESS ||
      !together::serves_exchange(*endpoint.communicator, bytes))
    return std::nullopt;
  return together::all_to_all(endpoint, out, in, bytes);
}

/// `root`: the program's, which may be no rank; none where all get the result.
Code reduce_together(Endpoint& endpoint, const Reduction& reduction, std::optional<int> root) {
  const auto& [operand, result, count, datatype, op] = reduction;
  if ((root && !endpoint.communicator->has_rank(*root)) ||
      !together::serves_reduction(*endpoint.communicator, count, datatype, op))
    return std::nullopt;
  return together::reduce(endpoint, operand, result, count, datatype, op, root.value_or(together::everyone));
}

using plans::has_part, plans::is_root;

bool is_concerned(const Schedule& schedule, int root) noexcept {
  return is_root(schedule, root) || has_part(schedule, root);
}

}  // namespace

GAPLESS_IF_DECLARED(
    Barrier, int Barrier(Endpoint& endpoint, MPI_Comm) { return raise(endpoint, together::barrier(endpoint)); })
GAPLESS_IF_DECLARED(
    Ibarrier, int Ibarrier(Endpoint& endpoint, MPI_Comm, MPI_Request* request) {
      return raise(endpoint, start_collective(endpoint, request, plans::barrier));
    })
GAPLESS_IF_DECLARED(
    Barrier_init, int Barrier_init(Endpoint& endpoint, MPI_Comm, MPI_Info, MPI_Request* request) {
      return raise(endpoint, keep_collective(endpoint, request, plans::barrier));
    })

// f: from, t: to; n, c: counts; d: displacements; y: datatypes.
#define ENDPOINTS_COLLECTIVES(suffix, Count, Place)                                                                   \
  ENDPOINTS_FORMS_TOGETHER(Bcast, Ibcast, suffix, (void* f, Count n, MPI_Datatype y, int root),                       \
                           broadcast_together(e, {f, n, y}, root),                                                    \
                           plans::broadcast(s, OwnedBy{s}.data(f, n, y, is_concerned(s, root)), root))                \
  ENDPOINTS_FORMS(Gather, Igather, suffix,                                                                            \
                  (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty, int root),             \
                  plans::gather(s, OwnedBy{s}.data(f, n, y, has_part(s, root)), f == MPI_IN_PLACE, root,              \
                                OwnedBy{s}.regular(t, tn, ty, is_root(s, root))))                                     \
  ENDPOINTS_FORMS(                                                                                                    \
      Gatherv, Igatherv, suffix,                                                                                      \
      (const void* f, Count n, MPI_Datatype y, void* t, const Count* tc, const Place* td, MPI_Datatype ty, int root), \
      plans::gather(s, OwnedBy{s}.data(f, n, y, has_part(s, root)), f == MPI_IN_PLACE, root,                          \
                    OwnedBy{s}.irregular(t, tc, td, ty, is_root(s, root))))                                           \
  ENDPOINTS_FORMS(Scatter, Iscatter, suffix,                                                                          \
                  (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty, int root),             \
                  plans::scatter(s, OwnedBy{s}.regular(f, n, y, is_root(s, root)), t == MPI_IN_PLACE, root,           \
                                 OwnedBy{s}.data(t, tn, ty, has_part(s, root))))                                      \
  ENDPOINTS_FORMS(                                                                                                    \
      Scatterv, Iscatterv, suffix,                                                                                    \
      (const void* f, const Count* c, const Place* d, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty, int root),  \
      plans::scatter(s, OwnedBy{s}.irregular(f, c, d, y, is_root(s, root)), t == MPI_IN_PLACE, root,                  \
                     OwnedBy{s}.data(t, tn, ty, has_part(s, root))))                                                  \
  ENDPOINTS_FORMS_TOGETHER(                                                                                           \
      Allgather, Iallgather, suffix, (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty),    \
      gather_to_all_together(e, {f, n, y}, {t, tn, ty}), to_all(s, f, n, y, OwnedBy{s}.regular(t, tn, ty, true)))     \
  ENDPOINTS_FORMS(                                                                                                    \
      Allgatherv, Iallgatherv, suffix,                                                                                \
      (const void* f, Count n, MPI_Datatype y, void* t, const Count* tc, const Place* td, MPI_Datatype ty),           \
      to_all(s, f, n, y, OwnedBy{s}.irregular(t, tc, td, ty, true)))                                                  \
  ENDPOINTS_FORMS_TOGETHER(Alltoall, Ialltoall, suffix,                                                               \
                           (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty),              \
                           all_to_all_together(e, {f, n, y}, {t, tn, ty}),                                            \
                           all_to_all(s, f == MPI_IN_PLACE, OwnedBy{s}.regular(f, n, y, f != MPI_IN_PLACE),           \
                                      OwnedBy{s}.regular(t, tn, ty, true)))                                           \
  ENDPOINTS_FORMS(Alltoallv, Ialltoallv, suffix,                                                                      \
                  (const void* f, const Count* c, const Place* d, MPI_Datatype y, void* t, const Count* tc,           \
                   const Place* td, MPI_Datatype ty),                                                                 \
                  all_to_all(s, f == MPI_IN_PLACE, OwnedBy{s}.irregular(f, c, d, y, f != MPI_IN_PLACE),               \
                             OwnedBy{s}.irregular(t, tc, td, ty, true)))                                              \
  ENDPOINTS_FORMS(Alltoallw, Ialltoallw, suffix,                                                                      \
                  (const void* f, const Count* c, const Place* d, const MPI_Datatype* y, void* t, const Count* tc,    \
                   const Place* td, const MPI_Datatype* ty),                                                          \
                  all_to_all(s, f == MPI_IN_PLACE, OwnedBy{s}.each_of_its_type(f, c, d, y, f != MPI_IN_PLACE),        \
                             OwnedBy{s}.each_of_its_type(t, tc, td, ty, true)))                                       \
  ENDPOINTS_FORMS_TOGETHER(Reduce, Ireduce, suffix,                                                                   \
                           (const void* f, void* t, Count n, MPI_Datatype y, MPI_Op op, int root),                    \
                           reduce_together(e, {f, t, n, y, op}, root),                                                \
                           plans::reduce(s, OwnedBy{s}.reduction(f, t, n, y, op, is_concerned(s, root)), root))       \
  ENDPOINTS_FORMS_TOGETHER(Allreduce, Iallreduce, suffix,                                                             \
                           (const void* f, void* t, Count n, MPI_Datatype y, MPI_Op op),                              \
                           reduce_together(e, {f, t, n, y, op}, std::nullopt),                                        \
                           plans::reduce_to_all(s, OwnedBy{s}.reduction(f, t, n, y, op)))                             \
  ENDPOINTS_FORMS(Reduce_scatter, Ireduce_scatter, suffix,                                                            \
                  (const void* f, void* t, const Count* c, MPI_Datatype y, MPI_Op op),                                \
                  plans::reduce_and_scatter(s, OwnedBy{s}.reduction(f, t, 0, y, op),                                  \
                                            [c](int rank) { return MPI_Count{c[rank]}; }))                            \
  ENDPOINTS_FORMS(                                                                                                    \
      Reduce_scatter_block, Ireduce_scatter_block, suffix,                                                            \
      (const void* f, void* t, Count n, MPI_Datatype y, MPI_Op op),                                                   \
      plans::reduce_and_scatter(s, OwnedBy{s}.reduction(f, t, 0, y, op), [n](int) { return MPI_Count{n}; }))          \
  ENDPOINTS_FORMS(Scan, Iscan, suffix, (const void* f, void* t, Count n, MPI_Datatype y, MPI_Op op),                  \
                  plans::scan(s, OwnedBy{s}.reduction(f, t, n, y, op), true))                                         \
  ENDPOINTS_FORMS(Exscan, Iexscan, suffix, (const void* f, void* t, Count n, MPI_Datatype y, MPI_Op op),              \
                  plans::scan(s, OwnedBy{s}.reduction(f, t, n, y, op), false))

ENDPOINTS_COLLECTIVES(, int, int)
ENDPOINTS_COLLECTIVES(_c, MPI_Count, MPI_Aint)
#undef ENDPOINTS_COLLECTIVES

}  // namespace gapless::mpi::endpoints::calls

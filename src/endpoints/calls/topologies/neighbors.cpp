// Neighbourhood collectives: a message for each edge of the topology.
#include "endpoints/calls/forms.hpp"
#include "endpoints/calls/plans.hpp"
#include "endpoints/calls/topologies/topology.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

using plans::DataOf, plans::OwnedBy;

/// Two ranks can be each other's neighbours in both directions of a grid: what one sends down the other receives from
/// above (MPI 5.0, 8.6), so the receives of a dimension are posted in the opposite order of the sends.
void exchange(Schedule& schedule, const DataOf& out, const DataOf& in) {
  const Topology* topology = schedule.endpoint->topology.get();
  if (topology == nullptr) return schedule.fail(MPI_ERR_TOPOLOGY);
  const auto& sources = topology->sources;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t k = topology->kind == MPI_CART ? i ^ 1 : i;
    if (sources[k] != MPI_PROC_NULL) schedule.receive(in(static_cast<int>(k)), sources[k]);
  }
  for (std::size_t k = 0; k < topology->destinations.size(); ++k) {
    if (topology->destinations[k] != MPI_PROC_NULL) schedule.send(out(static_cast<int>(k)), topology->destinations[k]);
  }
}

DataOf same(Schedule& schedule, const void* memory, MPI_Count count, MPI_Datatype type) {
  const Data data{memory, count, schedule.own(type)};
  return [data](int) { return data; };
}

}  // namespace

// f: from, t: to; n, c: counts; d: displacements; y: datatypes.
#define ENDPOINTS_NEIGHBORS(suffix, Count, Place)                                                                     \
  ENDPOINTS_FORMS(Neighbor_allgather, Ineighbor_allgather, suffix,                                                    \
                  (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty),                       \
                  exchange(s, same(s, f, n, y), OwnedBy{s}.regular(t, tn, ty)))                                       \
  ENDPOINTS_FORMS(                                                                                                    \
      Neighbor_allgatherv, Ineighbor_allgatherv, suffix,                                                              \
      (const void* f, Count n, MPI_Datatype y, void* t, const Count* tc, const Place* td, MPI_Datatype ty),           \
      exchange(s, same(s, f, n, y), OwnedBy{s}.irregular(t, tc, td, ty)))                                             \
  ENDPOINTS_FORMS(Neighbor_alltoall, Ineighbor_alltoall, suffix,                                                      \
                  (const void* f, Count n, MPI_Datatype y, void* t, Count tn, MPI_Datatype ty),                       \
                  exchange(s, OwnedBy{s}.regular(f, n, y), OwnedBy{s}.regular(t, tn, ty)))                            \
  ENDPOINTS_FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, suffix,                                                    \
                  (const void* f, const Count* c, const Place* d, MPI_Datatype y, void* t, const Count* tc,           \
                   const Place* td, MPI_Datatype ty),                                                                 \
                  exchange(s, OwnedBy{s}.irregular(f, c, d, y), OwnedBy{s}.irregular(t, tc, td, ty)))                 \
  ENDPOINTS_FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, suffix,                                                    \
                  (const void* f, const Count* c, const MPI_Aint* d, const MPI_Datatype* y, void* t, const Count* tc, \
                   const MPI_Aint* td, const MPI_Datatype* ty),                                                       \
                  exchange(s, OwnedBy{s}.each_of_its_type(f, c, d, y), OwnedBy{s}.each_of_its_type(t, tc, td, ty)))

ENDPOINTS_NEIGHBORS(, int, int)
ENDPOINTS_NEIGHBORS(_c, MPI_Count, MPI_Aint)
#undef ENDPOINTS_NEIGHBORS

}  // namespace gapless::mpi::endpoints::calls

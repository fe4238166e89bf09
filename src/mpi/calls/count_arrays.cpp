#include "mpi/calls/count_arrays.hpp"

#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

bool is_intercommunicator(MPI_Comm communicator) noexcept {
  int result = 0;
  native.Comm_test_inter(communicator, &result);
  return result != 0;
}

int process_count(MPI_Comm communicator) noexcept {
  int result = 0;
  if (is_intercommunicator(communicator)) {
    native.Comm_remote_size(communicator, &result);
  } else {
    native.Comm_size(communicator, &result);
  }
  return result;
}

int group_size(MPI_Comm communicator) noexcept {
  int result = 0;
  native.Comm_size(communicator, &result);
  return result;
}

int rank_in(MPI_Comm communicator) noexcept {
  int result = -1;
  native.Comm_rank(communicator, &result);
  return result;
}

int neighbour_count(MPI_Comm communicator, CountsOf what) noexcept {
  int topology = MPI_UNDEFINED, count = 0;
  native.Topo_test(communicator, &topology);
  if (topology == MPI_CART) {
    native.Cartdim_get(communicator, &count);
    return 2 * count;
  }
  if (topology == MPI_GRAPH) {
    native.Graph_neighbors_count(communicator, rank_in(communicator), &count);
    return count;
  }
  if (topology != MPI_DIST_GRAPH) return 0;
  int sources = 0, destinations = 0, weighted = 0;
  native.Dist_graph_neighbors_count(communicator, &sources, &destinations, &weighted);
  return what == CountsOf::sources ? sources : destinations;
}

}  // namespace

int count_entries(MPI_Comm communicator, CountsOf what) noexcept {
  if (communicator == MPI_COMM_NULL) return 0;
  if (what == CountsOf::results) return group_size(communicator);
  return what == CountsOf::processes ? process_count(communicator) : neighbour_count(communicator, what);
}

int own_rank(MPI_Comm communicator) noexcept {
  return communicator == MPI_COMM_NULL || is_intercommunicator(communicator) ? -1 : rank_in(communicator);
}

bool is_neighbor_missing(MPI_Comm communicator, int neighbor) noexcept {
  int topology = MPI_UNDEFINED;
  native.Topo_test(communicator, &topology);
  if (topology != MPI_CART) return false;
  // Neighbours come in pairs, one for each dimension: the one before and the one behind.
  int before = MPI_PROC_NULL, behind = MPI_PROC_NULL;
  native.Cart_shift(communicator, neighbor / 2, 1, &before, &behind);
  return (neighbor % 2 == 0 ? before : behind) == MPI_PROC_NULL;
}

bool is_root(MPI_Comm communicator, int root) noexcept {
  if (communicator == MPI_COMM_NULL) return false;
  return is_intercommunicator(communicator) ? root == MPI_ROOT : root == rank_in(communicator);
}

}  // namespace gapless::mpi

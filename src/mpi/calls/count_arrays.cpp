#include "mpi/calls/count_arrays.hpp"

#include <array>
#include <cstddef>

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

}  // namespace

int count_entries(MPI_Comm communicator, CountsOf what) noexcept {
  if (communicator == MPI_COMM_NULL) return 0;
  if (what == CountsOf::results) return group_size(communicator);
  return what == CountsOf::processes ? process_count(communicator) : Neighbors(communicator).count(what);
}

int own_rank(MPI_Comm communicator) noexcept {
  return communicator == MPI_COMM_NULL || is_intercommunicator(communicator) ? -1 : rank_in(communicator);
}

Neighbors::Neighbors(MPI_Comm communicator) noexcept : communicator_(communicator) {
  if (communicator == MPI_COMM_NULL) return;
  int weighted = 0;
  native.Topo_test(communicator, &topology_);
  if (topology_ == MPI_CART) look_at_grid();
  if (topology_ == MPI_GRAPH) look_at_graph();
  if (topology_ == MPI_DIST_GRAPH)
    native.Dist_graph_neighbors_count(communicator, &sources_, &destinations_, &weighted);
}

// Neighbours come in pairs, one for each dimension: the one before and the one behind.
void Neighbors::look_at_grid() noexcept {
  int dimensions = 0;
  native.Cartdim_get(communicator_, &dimensions);
  sources_ = destinations_ = 2 * dimensions;
  are_twins_ = are_many_ = dimensions > most_dimensions;  // as far as is known
  if (are_many_) return;
  std::array<int, most_dimensions> extents{}, are_periodic{}, place{};
  if (native.Cart_get(communicator_, dimensions, extents.data(), are_periodic.data(), place.data()) != MPI_SUCCESS)
    return;
  for (int d = 0; d < dimensions; ++d) {
    const auto i = static_cast<std::size_t>(d);
    are_twins_ |= are_periodic[i] != 0 && extents[i] <= 2;
    if (are_periodic[i] != 0) continue;
    if (place[i] == 0) missing_ |= std::uint64_t{1} << (2 * d);
    if (place[i] == extents[i] - 1) missing_ |= std::uint64_t{2} << (2 * d);
  }
}

void Neighbors::look_at_graph() noexcept {
  int count = 0;
  native.Graph_neighbors_count(communicator_, rank_in(communicator_), &count);
  sources_ = destinations_ = count;
}

bool Neighbors::is_missing(int neighbor) const noexcept {
  if (!are_many_) return neighbor < 2 * most_dimensions && (missing_ >> neighbor & 1) != 0;
  int before = MPI_PROC_NULL, behind = MPI_PROC_NULL;
  native.Cart_shift(communicator_, neighbor / 2, 1, &before, &behind);
  return (neighbor % 2 == 0 ? before : behind) == MPI_PROC_NULL;
}

Neighbors::Ranks Neighbors::ranks() const {
  Ranks ranks;
  ranks.sources.resize(static_cast<std::size_t>(sources_));
  ranks.destinations.resize(static_cast<std::size_t>(destinations_));
  int* const sources = ranks.sources.data();
  if (topology_ == MPI_DIST_GRAPH) {
    std::vector<int> weights(ranks.sources.size() + ranks.destinations.size());
    native.Dist_graph_neighbors(communicator_, sources_, sources, weights.data(), destinations_,
                                ranks.destinations.data(), weights.data() + ranks.sources.size());
    return ranks;
  }
  if (topology_ == MPI_GRAPH) native.Graph_neighbors(communicator_, rank_in(communicator_), sources_, sources);
  for (int d = 0; topology_ == MPI_CART && 2 * d < sources_; ++d) {
    native.Cart_shift(communicator_, d, 1, sources + 2 * d, sources + 2 * d + 1);
  }
  ranks.destinations = ranks.sources;
  return ranks;
}

bool is_root(MPI_Comm communicator, int root) noexcept {
  if (communicator == MPI_COMM_NULL) return false;
  return is_intercommunicator(communicator) ? root == MPI_ROOT : root == rank_in(communicator);
}

}  // namespace gapless::mpi

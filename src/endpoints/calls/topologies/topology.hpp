// Virtual topologies of endpoints (MPI 5.0, 8): which ranks an endpoint's neighbours are.
#pragma once

#include <utility>
#include <vector>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

struct Topology {
  int kind = MPI_CART;
  std::vector<int> dimensions, periods;      ///< of a grid
  std::vector<int> index, edges;             ///< of a graph, as MPI_Graph_create takes them
  std::vector<int> in_weights, out_weights;  ///< of a distributed graph, if it is weighted
  bool is_weighted = false;
  std::vector<int> sources, destinations;  ///< the endpoint's neighbours, in MPI's order; may be MPI_PROC_NULL

  int dimension_count() const noexcept { return static_cast<int>(dimensions.size()); }
  std::vector<int> coordinates_of(int rank) const;
  /// MPI_PROC_NULL beyond the border of a dimension that is not periodic.
  int rank_of(std::vector<int> coordinates) const;
  /// The ranks that are `distance` away from `rank` along a dimension: before it and behind it.
  std::pair<int, int> shift(int rank, int dimension, int distance) const;
};

/// The grid as one of its ranks sees it.
Topology make_grid(std::vector<int> dimensions, std::vector<int> periods, int rank);

/// Gives a communicator that has just been made its topology; nothing for MPI_COMM_NULL.
void attach_topology(MPI_Comm made, Topology topology);
/// The endpoint's topology if it is of that kind; else null, with MPI_ERR_TOPOLOGY raised and in `code`.
const Topology* topology_of(const Endpoint& endpoint, int kind, int& code) noexcept;
/// The first elements, `most` of them at most.
void copy_at_most(const std::vector<int>& from, int most, int* to);

}  // namespace gapless::mpi::endpoints

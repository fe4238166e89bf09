// Communicators with a topology: how they are made, and what a program asks them. Ranks are never reordered, for
// neighbours of a process are next to each other already.
#include <algorithm>

#include "endpoints/calls/calls.hpp"
#include "endpoints/calls/topologies/topology.hpp"
#include "endpoints/communicators/parts.hpp"

namespace gapless::mpi::endpoints {

std::vector<int> Topology::coordinates_of(int rank) const {
  std::vector<int> coordinates(dimensions.size());
  for (std::size_t d = dimensions.size(); d-- > 0; rank /= dimensions[d]) coordinates[d] = rank % dimensions[d];
  return coordinates;
}

int Topology::rank_of(std::vector<int> coordinates) const {
  int rank = 0;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    int& place = coordinates[d];
    if (periods[d] != 0) place = (place % dimensions[d] + dimensions[d]) % dimensions[d];
    if (place < 0 || place >= dimensions[d]) return MPI_PROC_NULL;
    rank = rank * dimensions[d] + place;
  }
  return rank;
}

std::pair<int, int> Topology::shift(int rank, int dimension, int distance) const {
  std::vector<int> before = coordinates_of(rank), behind = before;
  before[static_cast<std::size_t>(dimension)] -= distance;
  behind[static_cast<std::size_t>(dimension)] += distance;
  return {rank_of(before), rank_of(behind)};
}

Topology make_grid(std::vector<int> dimensions, std::vector<int> periods, int rank) {
  Topology grid;
  grid.kind = MPI_CART;
  grid.dimensions = std::move(dimensions);
  grid.periods = std::move(periods);
  for (int d = 0; d < grid.dimension_count(); ++d) {
    const auto [before, behind] = grid.shift(rank, d, 1);
    grid.sources.insert(grid.sources.end(), {before, behind});
  }
  grid.destinations = grid.sources;
  return grid;
}

void attach_topology(MPI_Comm made, Topology topology) {
  if (Endpoint* endpoint = made == MPI_COMM_NULL ? nullptr : find(made))
    endpoint->topology = std::make_shared<const Topology>(std::move(topology));
}

const Topology* topology_of(const Endpoint& endpoint, int kind, int& code) noexcept {
  const Topology* topology = endpoint.topology.get();
  if (topology != nullptr && topology->kind == kind) return topology;
  code = calls::raise(endpoint, MPI_ERR_TOPOLOGY);
  return nullptr;
}

void copy_at_most(const std::vector<int>& from, int most, int* to) {
  const std::size_t count = std::min(from.size(), static_cast<std::size_t>(std::max(most, 0)));
  std::copy_n(from.begin(), count, to);
}

namespace calls {
namespace {

/// How many ranks a grid has; a negative error class.
std::int64_t ranks_of_grid(int count, const int* dimensions, const int* periods) noexcept {
  if (count < 0) return -MPI_ERR_DIMS;
  if (count > 0 && (dimensions == nullptr || periods == nullptr)) return -MPI_ERR_ARG;
  std::int64_t ranks = 1;
  for (int d = 0; d < count; ++d) {
    if (dimensions[d] <= 0) return -MPI_ERR_DIMS;
    ranks = std::min<std::int64_t>(ranks * dimensions[d], std::int64_t{1} << 40);
  }
  return ranks;
}

int check_grid(const Endpoint& endpoint, int count, const int* dimensions, const int* periods, int& ranks) noexcept {
  const std::int64_t all = ranks_of_grid(count, dimensions, periods);
  if (all < 0) return static_cast<int>(-all);
  ranks = static_cast<int>(std::min<std::int64_t>(all, endpoint.communicator->size() + 1));
  return ranks > endpoint.communicator->size() ? MPI_ERR_DIMS : MPI_SUCCESS;
}

int check_graph(const Endpoint& endpoint, int nodes, const int* index, const int* edges) noexcept {
  if (nodes < 0 || nodes > endpoint.communicator->size() || (nodes > 0 && index == nullptr)) return MPI_ERR_ARG;
  for (int i = 0; i < nodes; ++i) {
    const int before = i == 0 ? 0 : index[i - 1];
    if (index[i] < before || (index[i] > before && edges == nullptr)) return MPI_ERR_ARG;
    for (int k = before; k < index[i]; ++k) {
      if (edges[k] < 0 || edges[k] >= nodes) return MPI_ERR_ARG;
    }
  }
  return MPI_SUCCESS;
}

/// The first `ranks` ranks in a communicator of their own; others get MPI_COMM_NULL. An error code, not raised.
int make_of_first(Endpoint& endpoint, int ranks, MPI_Comm* made) {
  return split(endpoint, {endpoint.rank < ranks ? 0 : MPI_UNDEFINED, endpoint.rank}, made);
}

std::pair<int, int> edges_of(const Topology& graph, int rank) noexcept {
  const auto i = static_cast<std::size_t>(rank);
  return {rank == 0 ? 0 : graph.index[i - 1], graph.index[i]};
}

}  // namespace

int Topo_test(Endpoint& endpoint, MPI_Comm, int* kind) {
  *kind = endpoint.topology == nullptr ? MPI_UNDEFINED : endpoint.topology->kind;
  return MPI_SUCCESS;
}

int Cart_create(Endpoint& endpoint, MPI_Comm, int count, const int* dimensions, const int* periods, int,
                MPI_Comm* made) {
  int ranks = 0;
  int code = check_grid(endpoint, count, dimensions, periods, ranks);
  if (code == MPI_SUCCESS) code = make_of_first(endpoint, ranks, made);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  if (endpoint.rank < ranks)
    attach_topology(*made, make_grid({dimensions, dimensions + count}, {periods, periods + count}, endpoint.rank));
  return MPI_SUCCESS;
}

int Cart_map(Endpoint& endpoint, MPI_Comm, int count, const int* dimensions, const int* periods, int* rank) {
  int ranks = 0;
  const int code = check_grid(endpoint, count, dimensions, periods, ranks);
  if (code == MPI_SUCCESS) *rank = endpoint.rank < ranks ? endpoint.rank : MPI_UNDEFINED;
  return raise(endpoint, code);
}

int Cartdim_get(Endpoint& endpoint, MPI_Comm, int* count) {
  int code = MPI_SUCCESS;
  if (const Topology* grid = topology_of(endpoint, MPI_CART, code)) *count = grid->dimension_count();
  return code;
}

int Cart_get(Endpoint& endpoint, MPI_Comm, int most, int* dimensions, int* periods, int* coordinates) {
  int code = MPI_SUCCESS;
  if (const Topology* grid = topology_of(endpoint, MPI_CART, code)) {
    copy_at_most(grid->dimensions, most, dimensions);
    copy_at_most(grid->periods, most, periods);
    copy_at_most(grid->coordinates_of(endpoint.rank), most, coordinates);
  }
  return code;
}

int Cart_rank(Endpoint& endpoint, MPI_Comm, const int* coordinates, int* rank) {
  int code = MPI_SUCCESS;
  const Topology* grid = topology_of(endpoint, MPI_CART, code);
  if (grid == nullptr) return code;
  if (grid->dimension_count() > 0 && coordinates == nullptr) return raise(endpoint, MPI_ERR_ARG);
  const int found = grid->rank_of({coordinates, coordinates + grid->dimension_count()});
  if (found == MPI_PROC_NULL) return raise(endpoint, MPI_ERR_ARG);
  *rank = found;
  return MPI_SUCCESS;
}

int Cart_coords(Endpoint& endpoint, MPI_Comm, int rank, int most, int* coordinates) {
  int code = MPI_SUCCESS;
  const Topology* grid = topology_of(endpoint, MPI_CART, code);
  if (grid == nullptr) return code;
  if (!endpoint.communicator->has_rank(rank)) return raise(endpoint, MPI_ERR_RANK);
  copy_at_most(grid->coordinates_of(rank), most, coordinates);
  return MPI_SUCCESS;
}

int Cart_shift(Endpoint& endpoint, MPI_Comm, int dimension, int distance, int* source, int* destination) {
  int code = MPI_SUCCESS;
  const Topology* grid = topology_of(endpoint, MPI_CART, code);
  if (grid == nullptr) return code;
  if (dimension < 0 || dimension >= grid->dimension_count()) return raise(endpoint, MPI_ERR_DIMS);
  std::tie(*source, *destination) = grid->shift(endpoint.rank, dimension, distance);
  return MPI_SUCCESS;
}

int Cart_sub(Endpoint& endpoint, MPI_Comm, const int* remains, MPI_Comm* made) {
  int code = MPI_SUCCESS;
  const Topology* grid = topology_of(endpoint, MPI_CART, code);
  if (grid == nullptr) return code;
  if (grid->dimension_count() > 0 && remains == nullptr) return raise(endpoint, MPI_ERR_ARG);
  const std::vector<int> mine = grid->coordinates_of(endpoint.rank);
  std::vector<int> dimensions, periods;
  int colour = 0, rank = 0;
  for (std::size_t d = 0; d < mine.size(); ++d) {
    int& number = remains[d] != 0 ? rank : colour;
    number = number * grid->dimensions[d] + mine[d];
    if (remains[d] == 0) continue;
    dimensions.push_back(grid->dimensions[d]);
    periods.push_back(grid->periods[d]);
  }
  code = split(endpoint, {colour, rank}, made);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  attach_topology(*made, make_grid(std::move(dimensions), std::move(periods), rank));
  return MPI_SUCCESS;
}

int Graph_create(Endpoint& endpoint, MPI_Comm, int nodes, const int* index, const int* edges, int, MPI_Comm* made) {
  int code = check_graph(endpoint, nodes, index, edges);
  if (code == MPI_SUCCESS) code = make_of_first(endpoint, nodes, made);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  if (endpoint.rank >= nodes) return MPI_SUCCESS;
  Topology graph;
  graph.kind = MPI_GRAPH;
  graph.index.assign(index, index + nodes);
  graph.edges.assign(edges, edges + index[nodes - 1]);
  const auto [first, last] = edges_of(graph, endpoint.rank);
  graph.sources.assign(edges + first, edges + last);
  graph.destinations = graph.sources;
  attach_topology(*made, std::move(graph));
  return MPI_SUCCESS;
}

int Graph_map(Endpoint& endpoint, MPI_Comm, int nodes, const int* index, const int* edges, int* rank) {
  const int code = check_graph(endpoint, nodes, index, edges);
  if (code == MPI_SUCCESS) *rank = endpoint.rank < nodes ? endpoint.rank : MPI_UNDEFINED;
  return raise(endpoint, code);
}

int Graphdims_get(Endpoint& endpoint, MPI_Comm, int* nodes, int* edges) {
  int code = MPI_SUCCESS;
  if (const Topology* graph = topology_of(endpoint, MPI_GRAPH, code)) {
    *nodes = static_cast<int>(graph->index.size());
    *edges = static_cast<int>(graph->edges.size());
  }
  return code;
}

int Graph_get(Endpoint& endpoint, MPI_Comm, int most_index, int most_edges, int* index, int* edges) {
  int code = MPI_SUCCESS;
  if (const Topology* graph = topology_of(endpoint, MPI_GRAPH, code)) {
    copy_at_most(graph->index, most_index, index);
    copy_at_most(graph->edges, most_edges, edges);
  }
  return code;
}

int Graph_neighbors_count(Endpoint& endpoint, MPI_Comm, int rank, int* count) {
  int code = MPI_SUCCESS;
  const Topology* graph = topology_of(endpoint, MPI_GRAPH, code);
  if (graph == nullptr) return code;
  if (!endpoint.communicator->has_rank(rank)) return raise(endpoint, MPI_ERR_RANK);
  const auto [first, last] = edges_of(*graph, rank);
  *count = last - first;
  return MPI_SUCCESS;
}

int Graph_neighbors(Endpoint& endpoint, MPI_Comm, int rank, int most, int* neighbors) {
  int code = MPI_SUCCESS;
  const Topology* graph = topology_of(endpoint, MPI_GRAPH, code);
  if (graph == nullptr) return code;
  if (!endpoint.communicator->has_rank(rank)) return raise(endpoint, MPI_ERR_RANK);
  const auto [first, last] = edges_of(*graph, rank);
  copy_at_most({graph->edges.begin() + first, graph->edges.begin() + last}, most, neighbors);
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace gapless::mpi::endpoints

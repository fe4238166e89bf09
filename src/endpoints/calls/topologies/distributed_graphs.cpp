// Distributed graphs (MPI 5.0, 8.5.3): every rank names edges, and each learns its own neighbours. Ranks are never
// reordered. A mistake of one rank is every rank's error, so that nobody waits for those that have returned.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "endpoints/calls/calls.hpp"
#include "endpoints/calls/topologies/topology.hpp"
#include "endpoints/communicators/parts.hpp"
#include "mpi/table/unweighted.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

struct Edge {
  int source, destination, weight;
};
constexpr int ints_of_edge = sizeof(Edge) / sizeof(int);

/// The greatest of all ranks' error classes, raised in each. Collective.
int agree_on(Endpoint& endpoint, int mistake) {
  int greatest = MPI_SUCCESS;
  const int code = Allreduce(endpoint, &mistake, &greatest, 1, MPI_INT, MPI_MAX, endpoint.handle);
  return code != MPI_SUCCESS ? code : raise(endpoint, greatest);
}

/// Of the neighbours of one rank in one direction.
int check_neighbors(const Endpoint& endpoint, int degree, const int* ranks, const int* weights) noexcept {
  if (degree < 0) return MPI_ERR_ARG;
  if (degree == 0) return MPI_SUCCESS;
  if (ranks == nullptr || weights == nullptr) return MPI_ERR_ARG;
  if (!std::all_of(ranks, ranks + degree, [&](int rank) { return endpoint.communicator->has_rank(rank); }))
    return MPI_ERR_RANK;
  const bool is_right =
      weights == unweighted || std::all_of(weights, weights + degree, [](int weight) { return weight >= 0; });
  return is_right ? MPI_SUCCESS : MPI_ERR_ARG;
}

std::vector<int> weights_of(int degree, const int* weights) {
  if (degree == 0 || weights == unweighted) return std::vector<int>(static_cast<std::size_t>(degree), 1);
  return {weights, weights + degree};
}

/// The edges that one rank names. A positive error class, or MPI_SUCCESS.
int read_edges(const Endpoint& endpoint, int count, const int* sources, const int* degrees, const int* destinations,
               const int* weights, std::vector<Edge>& edges) {
  if (count < 0) return MPI_ERR_ARG;
  if (count > 0 && (sources == nullptr || degrees == nullptr)) return MPI_ERR_ARG;
  std::int64_t first = 0;
  for (int i = 0; i < count; ++i) {
    if (!endpoint.communicator->has_rank(sources[i])) return MPI_ERR_RANK;
    const bool has_weights = weights != nullptr && weights != unweighted && degrees[i] > 0;
    const int mistake = check_neighbors(endpoint, degrees[i], destinations == nullptr ? nullptr : destinations + first,
                                        has_weights ? weights + first : weights);
    if (mistake != MPI_SUCCESS) return mistake;
    for (int k = 0; k < degrees[i]; ++k, ++first)
      edges.push_back({sources[i], destinations[first], has_weights ? weights[first] : 1});
  }
  return MPI_SUCCESS;
}

/// The edges of all ranks, in the order of ranks. Collective. An error is raised.
int gather_edges(Endpoint& endpoint, const std::vector<Edge>& mine, std::vector<Edge>& all) {
  const auto ranks = static_cast<std::size_t>(endpoint.communicator->size());
  const std::int64_t count = static_cast<std::int64_t>(mine.size()) * ints_of_edge;
  std::vector<std::int64_t> counts(ranks);
  int code =
      Allgather(endpoint, &count, sizeof count, MPI_BYTE, counts.data(), sizeof count, MPI_BYTE, endpoint.handle);
  if (code != MPI_SUCCESS) return code;
  std::vector<int> lengths(ranks), places(ranks);
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (total + counts[rank] > std::numeric_limits<int>::max()) return raise(endpoint, MPI_ERR_COUNT);
    lengths[rank] = static_cast<int>(counts[rank]);
    places[rank] = static_cast<int>(total);
    total += counts[rank];
  }
  all.resize(static_cast<std::size_t>(total / ints_of_edge));
  return Allgatherv(endpoint, mine.data(), static_cast<int>(count), MPI_INT, all.data(), lengths.data(), places.data(),
                    MPI_INT, endpoint.handle);
}

int make_with(Endpoint& endpoint, Topology graph, MPI_Comm* made) {
  const int code = split(endpoint, {0, endpoint.rank}, made);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  attach_topology(*made, std::move(graph));
  return MPI_SUCCESS;
}

bool lacks_weights(const Topology& graph, int most, const int* weights) noexcept {
  return graph.is_weighted && most > 0 && weights == nullptr;
}

void tell_neighbors(const std::vector<int>& neighbors, const std::vector<int>& neighbor_weights, bool is_weighted,
                    int most, int* ranks, int* weights) {
  copy_at_most(neighbors, most, ranks);
  if (is_weighted && weights != unweighted) copy_at_most(neighbor_weights, most, weights);
}

}  // namespace

int Dist_graph_create_adjacent(Endpoint& endpoint, MPI_Comm, int in, const int* sources, const int* in_weights, int out,
                               const int* destinations, const int* out_weights, MPI_Info, int, MPI_Comm* made) {
  int mistake = check_neighbors(endpoint, in, sources, in_weights);
  if (mistake == MPI_SUCCESS) mistake = check_neighbors(endpoint, out, destinations, out_weights);
  if (const int code = agree_on(endpoint, mistake); code != MPI_SUCCESS) return code;
  Topology graph;
  graph.kind = MPI_DIST_GRAPH;
  graph.is_weighted = in_weights != unweighted && out_weights != unweighted;
  if (in > 0) graph.sources.assign(sources, sources + in);
  if (out > 0) graph.destinations.assign(destinations, destinations + out);
  graph.in_weights = weights_of(in, in_weights);
  graph.out_weights = weights_of(out, out_weights);
  return make_with(endpoint, std::move(graph), made);
}

int Dist_graph_create(Endpoint& endpoint, MPI_Comm, int count, const int* sources, const int* degrees,
                      const int* destinations, const int* weights, MPI_Info, int, MPI_Comm* made) {
  std::vector<Edge> mine, all;
  const int mistake = read_edges(endpoint, count, sources, degrees, destinations, weights, mine);
  if (const int code = agree_on(endpoint, mistake); code != MPI_SUCCESS) return code;
  if (const int code = gather_edges(endpoint, mine, all); code != MPI_SUCCESS) return code;
  Topology graph;
  graph.kind = MPI_DIST_GRAPH;
  graph.is_weighted = weights != unweighted;
  for (const Edge& edge : all) {
    if (edge.destination == endpoint.rank) {
      graph.sources.push_back(edge.source);
      graph.in_weights.push_back(edge.weight);
    }
    if (edge.source == endpoint.rank) {
      graph.destinations.push_back(edge.destination);
      graph.out_weights.push_back(edge.weight);
    }
  }
  return make_with(endpoint, std::move(graph), made);
}

int Dist_graph_neighbors_count(Endpoint& endpoint, MPI_Comm, int* in, int* out, int* is_weighted) {
  int code = MPI_SUCCESS;
  if (const Topology* graph = topology_of(endpoint, MPI_DIST_GRAPH, code)) {
    *in = static_cast<int>(graph->sources.size());
    *out = static_cast<int>(graph->destinations.size());
    *is_weighted = graph->is_weighted ? 1 : 0;
  }
  return code;
}

int Dist_graph_neighbors(Endpoint& endpoint, MPI_Comm, int most_in, int* sources, int* in_weights, int most_out,
                         int* destinations, int* out_weights) {
  int code = MPI_SUCCESS;
  if (const Topology* graph = topology_of(endpoint, MPI_DIST_GRAPH, code)) {
    // Of a graph without weights none are told, so their places may be null.
    if (lacks_weights(*graph, most_in, in_weights) || lacks_weights(*graph, most_out, out_weights))
      return raise(endpoint, MPI_ERR_ARG);
    tell_neighbors(graph->sources, graph->in_weights, graph->is_weighted, most_in, sources, in_weights);
    tell_neighbors(graph->destinations, graph->out_weights, graph->is_weighted, most_out, destinations, out_weights);
  }
  return code;
}

}  // namespace gapless::mpi::endpoints::calls

// Calls whose bytes and statuses must be the same for processes and endpoints: collectives in all forms, persistent
// messages, topologies. Each adds what it received to a trace.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {

using Trace = std::vector<int>;

inline void note(Trace& trace, const std::vector<int>& numbers) {
  trace.insert(trace.end(), numbers.begin(), numbers.end());
}

inline void note_status(Trace& trace, const MPI_Status& status) {
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  note(trace, {status.MPI_SOURCE, status.MPI_TAG, count});
}

/// Room for what every rank gives, a result, and the arrays that v and w forms take.
struct Arrays {
  explicit Arrays(MPI_Comm comm)
      : me(rank(comm)),
        all(size(comm)),
        total(static_cast<std::size_t>(60 * all + 60)),
        mine(counting(total, 1000 * me)),
        counts(static_cast<std::size_t>(all)),
        same(counts.size()),
        places(counts.size()),
        bytes(counts.size()),
        types(counts.size(), MPI_INT) {
    for (int i = 0; i < all; ++i) {
      counts[static_cast<std::size_t>(i)] = 1 + 3 * i;
      same[static_cast<std::size_t>(i)] = 1 + 3 * me;
      places[static_cast<std::size_t>(i)] = 50 * i + 2;
      bytes[static_cast<std::size_t>(i)] = 200 * i + 8;
    }
  }
  std::vector<int> empty() const { return std::vector<int>(total, -1); }
  int count() const { return counts[static_cast<std::size_t>(me)]; }
  int me, all;
  std::size_t total;
  std::vector<int> mine, counts, same, places, bytes;
  std::vector<MPI_Datatype> types;
};

/// Numbers that every order of combining them gives the same of: few and small enough for a float, powers of two.
template <class Number>
void reductions_of(MPI_Comm comm, MPI_Datatype datatype, Trace& trace) {
  constexpr int count = 9;
  const int me = rank(comm);
  for (const MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}) {
    std::array<Number, count> mine, result{};
    for (int i = 0; i < count; ++i) {
      const int power = 1 << (me + i) % 2;
      mine[static_cast<std::size_t>(i)] = static_cast<Number>((me + i) % 3 == 0 ? -power : power);
    }
    MPI_Allreduce(mine.data(), result.data(), count, datatype, op, comm);
    std::vector<int> bits(sizeof result / sizeof(int));
    std::memcpy(bits.data(), result.data(), sizeof result);
    note(trace, bits);
  }
}

inline void reductions_of_numbers(MPI_Comm comm, Trace& trace) {
  reductions_of<double>(comm, MPI_DOUBLE, trace);
  reductions_of<float>(comm, MPI_FLOAT, trace);
  reductions_of<int>(comm, MPI_INT, trace);
  reductions_of<long>(comm, MPI_LONG, trace);
  reductions_of<long long>(comm, MPI_LONG_LONG, trace);
  reductions_of<unsigned>(comm, MPI_UNSIGNED, trace);
  reductions_of<unsigned long>(comm, MPI_UNSIGNED_LONG, trace);
  reductions_of<std::int32_t>(comm, MPI_INT32_T, trace);
  reductions_of<std::int64_t>(comm, MPI_INT64_T, trace);
  reductions_of<std::uint64_t>(comm, MPI_UINT64_T, trace);
}

inline void reductions_of_parts(MPI_Comm comm, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  const Arrays a(comm);
  std::vector<int> result = a.empty();
  MPI_Reduce_scatter(a.mine.data(), result.data(), a.counts.data(), pair, op, comm);
  note(trace, result);
  MPI_Reduce_scatter_block(a.mine.data(), result.data(), 5, pair, op, comm);
  note(trace, result);
  result = a.mine;
  MPI_Reduce_scatter_block(MPI_IN_PLACE, result.data(), 3, MPI_INT, MPI_SUM, comm);
  result.resize(3);  // what is behind it in the buffer is the library's to use
  note(trace, result);
  std::vector<int> everything = a.empty();
  MPI_Alltoallw(a.mine.data(), a.counts.data(), a.bytes.data(), a.types.data(), everything.data(), a.same.data(),
                a.bytes.data(), a.types.data(), comm);
  note(trace, everything);
  result = a.mine;
  MPI_Scan(MPI_IN_PLACE, result.data(), 20, MPI_INT, MPI_SUM, comm);
  note(trace, result);
  everything = a.mine;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, everything.data(), 9, MPI_INT, comm);
  note(trace, everything);
  std::vector<int> part = a.empty();
  MPI_Gather(a.me == 0 ? MPI_IN_PLACE : a.mine.data(), 4, MPI_INT, everything.data(), 4, MPI_INT, 0, comm);
  MPI_Scatter(a.mine.data(), 4, MPI_INT, a.me == 0 ? MPI_IN_PLACE : part.data(), 4, MPI_INT, 0, comm);
  note(trace, everything);
  note(trace, part);
}

/// All nonblocking collectives at once, completed in one call.
inline void nonblocking(MPI_Comm comm, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  const Arrays a(comm);
  const int root = a.all - 1;
  std::vector<std::vector<int>> results(17, a.empty());
  std::vector<MPI_Request> requests(18);
  const auto out = [&](std::size_t i) { return results[i].data(); };
  MPI_Datatype type;  // freed while it is in use
  MPI_Type_vector(10, 2, 5, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (a.me == root) results[0] = a.mine;
  MPI_Ibcast(out(0), 1, type, root, comm, &requests[0]);
  MPI_Type_free(&type);
  MPI_Igather(a.mine.data(), 7, MPI_INT, out(1), 7, MPI_INT, root, comm, &requests[1]);
  MPI_Igatherv(a.mine.data(), a.count(), MPI_INT, out(2), a.counts.data(), a.places.data(), MPI_INT, root, comm,
               &requests[2]);
  MPI_Iscatter(a.mine.data(), 9, MPI_INT, out(3), 9, MPI_INT, root, comm, &requests[3]);
  MPI_Iscatterv(a.mine.data(), a.counts.data(), a.places.data(), MPI_INT, out(4), a.count(), MPI_INT, root, comm,
                &requests[4]);
  MPI_Iallgather(a.mine.data(), 7, MPI_INT, out(5), 7, MPI_INT, comm, &requests[5]);
  MPI_Iallgatherv(a.mine.data(), a.count(), MPI_INT, out(6), a.counts.data(), a.places.data(), MPI_INT, comm,
                  &requests[6]);
  MPI_Ialltoall(a.mine.data(), 11, MPI_INT, out(7), 11, MPI_INT, comm, &requests[7]);
  MPI_Ialltoallv(a.mine.data(), a.counts.data(), a.places.data(), MPI_INT, out(8), a.same.data(), a.places.data(),
                 MPI_INT, comm, &requests[8]);
  MPI_Ialltoallw(a.mine.data(), a.counts.data(), a.bytes.data(), a.types.data(), out(9), a.same.data(), a.bytes.data(),
                 a.types.data(), comm, &requests[9]);
  MPI_Ireduce(a.mine.data(), out(10), 20, pair, op, root, comm, &requests[10]);
  MPI_Iallreduce(a.mine.data(), out(11), 20, pair, op, comm, &requests[11]);
  MPI_Ireduce_scatter(a.mine.data(), out(12), a.counts.data(), pair, op, comm, &requests[12]);
  MPI_Ireduce_scatter_block(a.mine.data(), out(13), 6, pair, op, comm, &requests[13]);
  MPI_Iscan(a.mine.data(), out(14), 20, pair, op, comm, &requests[14]);
  MPI_Iexscan(a.mine.data(), out(15), 20, pair, op, comm, &requests[15]);
  results[16] = a.mine;
  MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out(16), 3, MPI_INT, comm, &requests[16]);
  MPI_Ibarrier(comm, &requests[17]);
  std::vector<MPI_Status> statuses(requests.size());
  note(trace, {MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data())});
  if (a.me == 0) results[15] = a.empty();  // undefined there
  for (const auto& result : results) note(trace, result);
}

/// Messages under persistent requests, started several times, completed in different ways.
inline void persistent_messages(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  std::vector<int> out(40), in(40, -1), large(5000), large_in(5000, -1);
  std::array<MPI_Request, 5> requests;
  const Owned type(strided(10, 2, 4));
  MPI_Recv_init(in.data(), 1, type, from, 3, comm, &requests[0]);
  MPI_Recv_init(large_in.data(), 5000, MPI_INT, from, MPI_ANY_TAG, comm, &requests[1]);
  MPI_Send_init(out.data(), 1, type, to, 3, comm, &requests[2]);
  MPI_Ssend_init(large.data(), 5000, MPI_INT, to, 4, comm, &requests[3]);
  MPI_Recv_init(in.data(), 1, MPI_INT, MPI_PROC_NULL, 3, comm, &requests[4]);
  for (int round = 0; round < 4; ++round) {
    std::iota(out.begin(), out.end(), 100 * me + round);
    std::iota(large.begin(), large.end(), 7 * me + round);
    std::array<MPI_Status, 5> statuses{};
    if (round == 0) {
      MPI_Startall(5, requests.data());
      MPI_Waitall(5, requests.data(), statuses.data());
      for (const std::size_t i : {0U, 1U}) note_status(trace, statuses[i]);
    } else if (round == 1) {
      for (MPI_Request& request : requests) MPI_Start(&request);
      for (std::size_t i = 0; i < 5; ++i) MPI_Wait(&requests[i], &statuses[i]);
      for (const std::size_t i : {0U, 1U}) note_status(trace, statuses[i]);
    } else {
      // Without the one from nobody, which MPICH 5.0 takes for inactive: it has no status there, and no index.
      MPI_Startall(4, requests.data());
      std::vector<int> order;
      for (int flag = 0, index = 0; order.size() < 4;) {
        MPI_Status status;
        if (round == 2) {
          MPI_Waitany(4, requests.data(), &index, &status);
          flag = 1;
        } else {
          MPI_Testany(4, requests.data(), &index, &flag, &status);
        }
        if (flag == 0) continue;
        if (index == MPI_UNDEFINED) break;
        order.push_back(index);
        if (index < 2) statuses[static_cast<std::size_t>(index)] = status;
      }
      std::sort(order.begin(), order.end());
      note(trace, order);
      for (const std::size_t i : {0U, 1U}) note_status(trace, statuses[i]);
      int index = 0, flag = 0;
      MPI_Testany(4, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
      note(trace, {index == MPI_UNDEFINED, flag});
    }
    note(trace, in);
    note(trace, large_in);
  }
  for (MPI_Request& request : requests) {
    MPI_Request_free(&request);
    note(trace, {request == MPI_REQUEST_NULL});
  }
}

/// What buffered sends of all kinds bring, when nobody receives before all are sent and their memory is written over.
inline void buffered_exchange(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  constexpr int large = 9000;
  std::vector<int> out = counting(large, 10 * me), in(large, -1), strided_in(100, -1);
  const Owned type(strided(10, 3, 7));
  MPI_Request request;
  MPI_Bsend(out.data(), 5, MPI_INT, to, 0, comm);
  MPI_Bsend(out.data(), large, MPI_INT, to, 1, comm);
  MPI_Bsend(out.data(), 1, type, to, 2, comm);
  MPI_Bsend(out.data(), 5, MPI_INT, MPI_PROC_NULL, 2, comm);
  MPI_Ibsend(out.data(), large, MPI_INT, to, 3, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Bsend_init(out.data(), large, MPI_INT, to, 4, comm, &request);
  for (int start = 0; start < 2; ++start) {
    std::iota(out.begin(), out.end(), 100 * start + me);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  std::fill(out.begin(), out.end(), -7);
  MPI_Status status;
  MPI_Recv(strided_in.data(), 1, type, from, 2, comm, &status);
  note(trace, strided_in);
  for (const int tag : {4, 4, 3, 1, 0}) {
    MPI_Recv(in.data(), large, MPI_INT, from, tag, comm, &status);
    note_status(trace, status);
    note(trace, in);
  }
}

inline void buffered_messages(MPI_Comm comm, Trace& trace) {
  buffered_exchange(comm, trace);  // in the process's buffer
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  std::vector<char> room(1 << 18);
  MPI_Comm_attach_buffer(comm, room.data(), static_cast<int>(room.size()));
  buffered_exchange(comm, trace);
  MPI_Comm_flush_buffer(comm);
  buffered_exchange(comm, trace);
  MPI_Request request;
  MPI_Comm_iflush_buffer(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  void* detached = nullptr;
  int bytes = 0;
  MPI_Comm_detach_buffer(comm, &detached, &bytes);
  note(trace, {detached == room.data(), bytes});
#endif
}

inline void exchanges_under_one_request(MPI_Comm comm, Trace& trace) {
#if MPI_VERSION >= 4
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  const std::vector<int> out = counting(30, 10 * me);
  std::vector<int> in(30, -1), both = counting(3000, 20 * me);
  std::array<MPI_Request, 2> requests;
  MPI_Isendrecv(out.data(), 30, MPI_INT, to, 1, in.data(), 30, MPI_INT, from, 1, comm, &requests[0]);
  MPI_Isendrecv_replace(both.data(), 3000, MPI_INT, to, 2, from, 2, comm, &requests[1]);
  int flag = 0;
  while (flag == 0) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);  // MPICH 5.0 leaves their statuses empty
  note(trace, in);
  note(trace, both);
#else
  static_cast<void>(comm);
  static_cast<void>(trace);
#endif
}

/// Persistent collectives, started several times.
inline void persistent_collectives(MPI_Comm comm, MPI_Datatype pair, MPI_Op op, Trace& trace) {
#if MPI_VERSION >= 4
  const Arrays a(comm);
  std::vector<int> mine = a.mine;
  std::vector<std::vector<int>> results(5, a.empty());
  std::array<MPI_Request, 6> requests;
  MPI_Allreduce_init(mine.data(), results[0].data(), 20, pair, op, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(mine.data(), 30, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[5]);
  MPI_Alltoallv_init(mine.data(), a.counts.data(), a.places.data(), MPI_INT, results[2].data(), a.same.data(),
                     a.places.data(), MPI_INT, comm, MPI_INFO_NULL, &requests[2]);
  MPI_Gather_init(mine.data(), 7, MPI_INT, results[3].data(), 7, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[3]);
  MPI_Reduce_scatter_block_init(mine.data(), results[4].data(), 4, pair, op, comm, MPI_INFO_NULL, &requests[4]);
  MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    std::iota(mine.begin(), mine.end(), 1000 * a.me + round);
    // MPICH 5.0 waits for ever for an inactive one that was never started, so the last stands apart.
    MPI_Startall(5, requests.data());
    MPI_Waitall(5, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Start(&requests[5]);
    MPI_Wait(&requests[5], MPI_STATUS_IGNORE);
    note(trace, mine);
    for (const auto& result : results) note(trace, result);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
#else
  static_cast<void>(comm);
  static_cast<void>(pair);
  static_cast<void>(op);
  static_cast<void>(trace);
#endif
}

/// What neighbourhood collectives give on a communicator with `in` and `out` neighbours.
inline void neighborhood(MPI_Comm comm, int in, int out, Trace& trace) {
  const std::vector<int> mine = counting(200, 1000 * rank(comm));
  const auto n = static_cast<std::size_t>(std::max({in, out, 1}));
  std::vector<int> counts(n, 3), places(n);
  std::vector<MPI_Aint> bytes(n);
  const std::vector<MPI_Datatype> types(n, MPI_INT);
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = static_cast<int>(10 * i);
    bytes[i] = static_cast<MPI_Aint>(40 * i);
  }
  std::vector<std::vector<int>> results(7, std::vector<int>(200, -1));
  std::array<MPI_Request, 2> requests;
  MPI_Neighbor_allgather(mine.data(), 5, MPI_INT, results[0].data(), 5, MPI_INT, comm);
  MPI_Neighbor_allgatherv(mine.data(), 3, MPI_INT, results[1].data(), counts.data(), places.data(), MPI_INT, comm);
  MPI_Neighbor_alltoall(mine.data(), 6, MPI_INT, results[2].data(), 6, MPI_INT, comm);
  MPI_Neighbor_alltoallv(mine.data(), counts.data(), places.data(), MPI_INT, results[3].data(), counts.data(),
                         places.data(), MPI_INT, comm);
  MPI_Neighbor_alltoallw(mine.data(), counts.data(), bytes.data(), types.data(), results[4].data(), counts.data(),
                         bytes.data(), types.data(), comm);
  MPI_Ineighbor_allgather(mine.data(), 4, MPI_INT, results[5].data(), 4, MPI_INT, comm, &requests[0]);
  MPI_Ineighbor_alltoall(mine.data(), 8, MPI_INT, results[6].data(), 8, MPI_INT, comm, &requests[1]);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  int kind = MPI_UNDEFINED;
  MPI_Topo_test(comm, &kind);
  // Open MPI 5.0 takes two messages for each other where a process is both neighbours of a dimension.
  if (kind == MPI_CART) results.pop_back();
  for (const auto& result : results) note(trace, result);
}

inline void grids(MPI_Comm comm, Trace& trace) {
  const int all = size(comm);
  for (const std::array<int, 2> periods : {std::array{1, 0}, std::array{0, 1}}) {
    const std::array<int, 2> dimensions{all / 2, 2};
    std::array<int, 2> got{}, got_periods{}, coordinates{};
    MPI_Comm grid, copy, row;
    int kind = -1, count = -1, me = -1, before = -1, behind = -1;
    MPI_Cart_create(comm, 2, dimensions.data(), periods.data(), 0, &grid);
    if (grid == MPI_COMM_NULL) continue;
    MPI_Topo_test(grid, &kind);
    MPI_Cartdim_get(grid, &count);
    MPI_Cart_get(grid, 2, got.data(), got_periods.data(), coordinates.data());
    MPI_Cart_rank(grid, coordinates.data(), &me);
    note(trace,
         {kind == MPI_CART, count, got[0], got[1], got_periods[0], got_periods[1], coordinates[0], coordinates[1], me});
    for (const int d : {0, 1}) {
      MPI_Cart_shift(grid, d, 1, &before, &behind);
      note(trace, {before, behind});
    }
    MPI_Cart_coords(grid, all / 2 * 2 - 1, 2, coordinates.data());
    note(trace, {coordinates[0], coordinates[1]});
    MPI_Comm_dup(grid, &copy);
    neighborhood(copy, 4, 4, trace);
    const std::array<int, 2> remains{0, 1};
    MPI_Cart_sub(copy, remains.data(), &row);
    int sum = 0;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, row);
    note(trace, {rank(row), size(row), sum});
    neighborhood(row, 2, 2, trace);
    MPI_Comm_free(&row);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&grid);
  }
}

inline void graphs(MPI_Comm comm, Trace& trace) {
  const int all = size(comm);
  std::vector<int> index, edges;  // a ring
  for (int i = 0; i < all; ++i) {
    edges.push_back((i + 1) % all);
    if (all > 2) edges.push_back((i + all - 1) % all);
    index.push_back(static_cast<int>(edges.size()));
  }
  MPI_Comm graph;
  int kind = -1, nodes = -1, count = -1;
  MPI_Graph_create(comm, all, index.data(), edges.data(), 0, &graph);
  MPI_Topo_test(graph, &kind);
  MPI_Graphdims_get(graph, &nodes, &count);
  note(trace, {kind == MPI_GRAPH, nodes, count});
  std::vector<int> got_index(index.size()), got_edges(edges.size());
  MPI_Graph_get(graph, nodes, count, got_index.data(), got_edges.data());
  note(trace, got_index);
  note(trace, got_edges);
  MPI_Graph_neighbors_count(graph, rank(comm), &count);
  std::vector<int> neighbors(static_cast<std::size_t>(count));
  MPI_Graph_neighbors(graph, rank(comm), count, neighbors.data());
  note(trace, neighbors);
  neighborhood(graph, count, count, trace);
  MPI_Comm_free(&graph);
}

/// Ranks and weights, sorted: the order of what MPI_Dist_graph_create finds is the library's.
inline void note_neighbors(const std::vector<int>& ranks, const std::vector<int>& weights, Trace& trace) {
  std::vector<std::pair<int, int>> sorted;
  for (std::size_t i = 0; i < ranks.size(); ++i) sorted.emplace_back(ranks[i], weights[i]);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [neighbor, weight] : sorted) note(trace, {neighbor, weight});
}

inline void note_distributed_graph(MPI_Comm graph, Trace& trace) {
  int kind = -1, in = -1, out = -1, is_weighted = -1;
  MPI_Topo_test(graph, &kind);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &is_weighted);
  note(trace, {kind == MPI_DIST_GRAPH, in, out, is_weighted});
  std::vector<int> sources(static_cast<std::size_t>(in)), in_weights(sources.size(), -1);
  std::vector<int> destinations(static_cast<std::size_t>(out)), out_weights(destinations.size(), -1);
  MPI_Dist_graph_neighbors(graph, in, sources.data(), is_weighted != 0 ? in_weights.data() : MPI_UNWEIGHTED, out,
                           destinations.data(), is_weighted != 0 ? out_weights.data() : MPI_UNWEIGHTED);
  note_neighbors(sources, in_weights, trace);
  note_neighbors(destinations, out_weights, trace);
}

/// Rank r sends to 1 + r % 3 ranks above it, round the corner.
inline void distributed_graphs(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm);
  std::vector<int> sources, in_weights, destinations, out_weights;
  for (int from = 0; from < all; ++from) {
    for (int k = 1; k <= 1 + from % 3; ++k) {
      const int to = (from + k) % all, weight = 10 * from + k;
      if (to == me) sources.push_back(from), in_weights.push_back(weight);
      if (from == me) destinations.push_back(to), out_weights.push_back(weight);
    }
  }
  const int in = static_cast<int>(sources.size()), out = static_cast<int>(destinations.size());
  for (const bool is_weighted : {true, false}) {
    MPI_Comm graph, copy;
    MPI_Dist_graph_create_adjacent(comm, in, sources.data(), is_weighted ? in_weights.data() : MPI_UNWEIGHTED, out,
                                   destinations.data(), is_weighted ? out_weights.data() : MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    note_distributed_graph(graph, trace);
    neighborhood(graph, in, out, trace);
    MPI_Comm_dup(graph, &copy);
    note_distributed_graph(copy, trace);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&graph);
    // The same edges, each rank naming those of the rank behind it.
    const int other = (me + 1) % all, degree = 1 + other % 3;
    std::vector<int> named, weights;
    for (int k = 1; k <= degree; ++k) named.push_back((other + k) % all), weights.push_back(10 * other + k);
    MPI_Dist_graph_create(comm, 1, &other, &degree, named.data(), is_weighted ? weights.data() : MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &graph);
    note_distributed_graph(graph, trace);
    MPI_Comm_free(&graph);
  }
}

}  // namespace gapless::test

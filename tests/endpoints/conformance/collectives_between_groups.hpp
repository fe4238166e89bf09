// Collectives of intercommunicators, which must give the same to processes and to endpoints. Each adds what a rank gets
// to a trace.
#pragma once

#include "conformance/calls.hpp"
#include "intercommunicators.hpp"

namespace gapless::test {

/// One rank's view of an intercommunicator, and room for what it gets.
struct Between {
  Between(MPI_Comm intercommunicator, int of_side)
      : inter(intercommunicator), side(of_side), me(rank(inter)), here(size(inter)) {
    MPI_Comm_remote_size(inter, &there);
    mine = counting(total(), 10000 * side + 1000 * me);
    for (int i = 0; i < there; ++i) {
      counts.push_back(1 + 3 * i);
      same.push_back(1 + 3 * me);
      places.push_back(50 * i + 2);
      bytes.push_back(200 * i + 8);
      types.push_back(MPI_INT);
    }
  }
  std::size_t total() const { return static_cast<std::size_t>(60 * (here + there)); }
  std::vector<int> empty() const { return std::vector<int>(total(), -1); }
  /// What a rank names as root where the root has that rank in that side's group.
  int root_argument(int root_side, int root) const {
    if (side != root_side) return root;
    return me == root ? int{MPI_ROOT} : int{MPI_PROC_NULL};
  }
  /// What each rank of a group gives.
  static int length(int of_side) { return of_side == 0 ? 5 : 3; }
  int share() const { return 1 + 3 * me; }
  /// Parts of a sum of as many elements in both groups: one each, and the rest for the last.
  std::vector<int> shares_of_sum() const {
    std::vector<int> shares(static_cast<std::size_t>(here), 1);
    shares.back() = 2 * here * there - (here - 1);
    return shares;
  }

  MPI_Comm inter;
  int side, me, here, there = 0;
  std::vector<int> mine, counts, same, places, bytes;
  std::vector<MPI_Datatype> types;
};

inline void rooted_between(const Between& b, int root_side, int root, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  const int argument = b.root_argument(root_side, root);
  const bool gives = b.side == root_side && b.me == root;
  const Owned type(strided(10, 2, 5));
  std::vector<int> told = gives ? b.mine : b.empty();
  MPI_Bcast(told.data(), 1, type, argument, b.inter);
  note(trace, told);
  std::vector<int> got = b.empty();
  MPI_Gather(b.mine.data(), 7, MPI_INT, got.data(), 7, MPI_INT, argument, b.inter);
  note(trace, got);
  MPI_Gatherv(b.mine.data(), b.share(), MPI_INT, got.data(), b.counts.data(), b.places.data(), MPI_INT, argument,
              b.inter);
  note(trace, got);
  MPI_Scatter(b.mine.data(), 9, MPI_INT, got.data(), 9, MPI_INT, argument, b.inter);
  note(trace, got);
  MPI_Scatterv(b.mine.data(), b.counts.data(), b.places.data(), MPI_INT, got.data(), b.share(), MPI_INT, argument,
               b.inter);
  note(trace, got);
  for (const int count : {1, 20}) {
    got = b.empty();
    MPI_Reduce(b.mine.data(), got.data(), count, pair, op, argument, b.inter);
    note(trace, got);
  }
}

inline void exchanges_between(const Between& b, Trace& trace) {
  const int out = Between::length(b.side), in = Between::length(1 - b.side);
  std::vector<int> got = b.empty();
  MPI_Allgather(b.mine.data(), out, MPI_INT, got.data(), in, MPI_INT, b.inter);
  note(trace, got);
  MPI_Allgatherv(b.mine.data(), b.share(), MPI_INT, got.data(), b.counts.data(), b.places.data(), MPI_INT, b.inter);
  note(trace, got);
  MPI_Alltoall(b.mine.data(), out, MPI_INT, got.data(), in, MPI_INT, b.inter);
  note(trace, got);
  MPI_Alltoallv(b.mine.data(), b.counts.data(), b.places.data(), MPI_INT, got.data(), b.same.data(), b.places.data(),
                MPI_INT, b.inter);
  note(trace, got);
  got = b.empty();
  MPI_Alltoallw(b.mine.data(), b.counts.data(), b.bytes.data(), b.types.data(), got.data(), b.same.data(),
                b.bytes.data(), b.types.data(), b.inter);
  note(trace, got);
}

inline void sums_between(const Between& b, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  std::vector<int> got = b.empty();
  MPI_Allreduce(b.mine.data(), got.data(), 20, pair, op, b.inter);
  note(trace, got);
  MPI_Allreduce(b.mine.data(), got.data(), 30, MPI_INT, MPI_MAX, b.inter);
  note(trace, got);
  const std::vector<int> shares = b.shares_of_sum();
  got = b.empty();
  MPI_Reduce_scatter(b.mine.data(), got.data(), shares.data(), pair, op, b.inter);
  note(trace, got);
  got = b.empty();
  MPI_Reduce_scatter_block(b.mine.data(), got.data(), b.there, pair, op, b.inter);
  note(trace, got);
}

/// All nonblocking ones at once, completed in one call.
inline void nonblocking_between(const Between& b, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  const int out = Between::length(b.side), in = Between::length(1 - b.side), argument = b.root_argument(1, 0);
  const bool gives = b.side == 1 && b.me == 0;
  std::vector<std::vector<int>> results(14, b.empty());
  std::vector<MPI_Request> requests(15);
  const std::vector<int> shares = b.shares_of_sum();
  const auto to = [&](std::size_t i) { return results[i].data(); };
  if (gives) results[0] = b.mine;
  MPI_Ibcast(to(0), 25, MPI_INT, argument, b.inter, &requests[0]);
  MPI_Igather(b.mine.data(), 7, MPI_INT, to(1), 7, MPI_INT, argument, b.inter, &requests[1]);
  MPI_Igatherv(b.mine.data(), b.share(), MPI_INT, to(2), b.counts.data(), b.places.data(), MPI_INT, argument, b.inter,
               &requests[2]);
  MPI_Iscatter(b.mine.data(), 9, MPI_INT, to(3), 9, MPI_INT, argument, b.inter, &requests[3]);
  MPI_Iscatterv(b.mine.data(), b.counts.data(), b.places.data(), MPI_INT, to(4), b.share(), MPI_INT, argument, b.inter,
                &requests[4]);
  MPI_Iallgather(b.mine.data(), out, MPI_INT, to(5), in, MPI_INT, b.inter, &requests[5]);
  MPI_Iallgatherv(b.mine.data(), b.share(), MPI_INT, to(6), b.counts.data(), b.places.data(), MPI_INT, b.inter,
                  &requests[6]);
  MPI_Ialltoall(b.mine.data(), out, MPI_INT, to(7), in, MPI_INT, b.inter, &requests[7]);
  MPI_Ialltoallv(b.mine.data(), b.counts.data(), b.places.data(), MPI_INT, to(8), b.same.data(), b.places.data(),
                 MPI_INT, b.inter, &requests[8]);
  MPI_Ialltoallw(b.mine.data(), b.counts.data(), b.bytes.data(), b.types.data(), to(9), b.same.data(), b.bytes.data(),
                 b.types.data(), b.inter, &requests[9]);
  MPI_Ireduce(b.mine.data(), to(10), 20, pair, op, argument, b.inter, &requests[10]);
  MPI_Iallreduce(b.mine.data(), to(11), 20, pair, op, b.inter, &requests[11]);
  MPI_Ireduce_scatter(b.mine.data(), to(12), shares.data(), pair, op, b.inter, &requests[12]);
  MPI_Ireduce_scatter_block(b.mine.data(), to(13), b.there, pair, op, b.inter, &requests[13]);
  MPI_Ibarrier(b.inter, &requests[14]);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (const auto& result : results) note(trace, result);
}

/// Persistent ones, started several times.
inline void persistent_between(const Between& b, MPI_Datatype pair, MPI_Op op, Trace& trace) {
#if MPI_VERSION >= 4
  const int argument = b.root_argument(0, 0), out = Between::length(b.side), in = Between::length(1 - b.side);
  std::vector<int> mine = b.mine;
  std::vector<std::vector<int>> results(4, b.empty());
  std::array<MPI_Request, 4> requests;
  MPI_Allreduce_init(mine.data(), results[0].data(), 20, pair, op, b.inter, MPI_INFO_NULL, &requests[0]);
  MPI_Gather_init(mine.data(), 7, MPI_INT, results[1].data(), 7, MPI_INT, argument, b.inter, MPI_INFO_NULL,
                  &requests[1]);
  MPI_Alltoall_init(mine.data(), out, MPI_INT, results[2].data(), in, MPI_INT, b.inter, MPI_INFO_NULL, &requests[2]);
  MPI_Reduce_scatter_block_init(mine.data(), results[3].data(), b.there, pair, op, b.inter, MPI_INFO_NULL,
                                &requests[3]);
  for (int round = 0; round < 3; ++round) {
    std::iota(mine.begin(), mine.end(), 10000 * b.side + 1000 * b.me + round);
    MPI_Startall(4, requests.data());
    MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    for (const auto& result : results) note(trace, result);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
#else
  static_cast<void>(b);
  static_cast<void>(pair);
  static_cast<void>(op);
  static_cast<void>(trace);
#endif
}

/// On intercommunicators of both kinds of parts of a communicator of at least two ranks.
inline void collectives_between_groups(MPI_Comm whole, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  for (const bool alternate : {false, true}) {
    const Parts parts{size(whole), alternate};
    const int side = parts.side_of(rank(whole));
    MPI_Comm half, inter;
    MPI_Comm_split(whole, side, 0, &half);
    MPI_Intercomm_create(half, 0, whole, parts.of(1 - side).front(), 5, &inter);
    const Between b(inter, side);
    MPI_Barrier(inter);
    for (const int root_side : {0, 1}) {
      const int last = static_cast<int>(parts.of(root_side).size()) - 1;
      for (const int root : {0, last}) rooted_between(b, root_side, root, pair, op, trace);
    }
    exchanges_between(b, trace);
    sums_between(b, pair, op, trace);
    nonblocking_between(b, pair, op, trace);
    persistent_between(b, pair, op, trace);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
}

}  // namespace gapless::test

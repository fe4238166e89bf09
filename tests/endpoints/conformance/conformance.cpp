// One function of many calls, run on processes and on endpoints in several shapes with as many ranks: rank for rank,
// every byte that it receives and every status must be the same.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/calls.hpp"
#include "conformance/collectives_between_groups.hpp"
#include "conformance/communicators.hpp"
#include "conformance/two_levels.hpp"
#include "gapless/endpoints.h"
#include "intercommunicators.hpp"
#include "on_endpoints.hpp"
#include "support/allocations.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

/// Does not commute: (a, b) are the affine maps x -> a x + b, in wrapping numbers.
void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* left = static_cast<unsigned*>(in);
  auto* right = static_cast<unsigned*>(inout);
  for (int i = 0; i < *count; ++i, left += 2, right += 2) {
    right[1] = left[0] * right[1] + left[1];
    right[0] = left[0] * right[0];
  }
}

void reductions(MPI_Comm comm, MPI_Datatype pair, MPI_Op op, Trace& trace) {
  const int me = rank(comm), all = size(comm);
  for (const int count : {1, 700}) {
    const std::vector<int> mine = counting(static_cast<std::size_t>(2 * count), 31 * me + 2);
    std::vector<int> result(mine.size(), -1);
    MPI_Allreduce(mine.data(), result.data(), count, pair, op, comm);
    note(trace, result);
    MPI_Scan(mine.data(), result.data(), count, pair, op, comm);
    note(trace, result);
    std::vector<int> before(mine.size(), -1);
    MPI_Exscan(mine.data(), before.data(), count, pair, op, comm);
    if (me > 0) note(trace, before);
    for (int root = 0; root < all; ++root) {
      std::vector<int> at_root(mine.size(), -1);
      MPI_Reduce(mine.data(), at_root.data(), count, pair, op, root, comm);
      if (me == root) note(trace, at_root);
    }
    result = mine;
    MPI_Allreduce(MPI_IN_PLACE, result.data(), 2 * count, MPI_INT, MPI_MAX, comm);
    note(trace, result);
  }
}

void distributions(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm);
  std::vector<int> counts(static_cast<std::size_t>(all)), places(counts.size());
  for (int i = 0; i < all; ++i) {
    counts[static_cast<std::size_t>(i)] = 1 + 3 * i;
    places[static_cast<std::size_t>(i)] = 50 * i + 2;
  }
  const auto total = static_cast<std::size_t>(50 * all + 50);
  const std::vector<int> mine = counting(total, 1000 * me);
  for (int root = 0; root < all; ++root) {
    std::vector<int> everything(total, -1), part(60, -1);
    MPI_Gather(mine.data(), 7, MPI_INT, everything.data(), 7, MPI_INT, root, comm);
    note(trace, everything);
    MPI_Gatherv(mine.data(), counts[static_cast<std::size_t>(me)], MPI_INT, everything.data(), counts.data(),
                places.data(), MPI_INT, root, comm);
    note(trace, everything);
    MPI_Scatter(mine.data(), 9, MPI_INT, part.data(), 9, MPI_INT, root, comm);
    note(trace, part);
    MPI_Scatterv(mine.data(), counts.data(), places.data(), MPI_INT, part.data(), counts[static_cast<std::size_t>(me)],
                 MPI_INT, root, comm);
    note(trace, part);
    std::vector<int> told = me == root ? mine : std::vector<int>(total, -1);
    const Owned type(strided(10, 2, 5));
    MPI_Bcast(told.data(), 1, type, root, comm);
    note(trace, told);
  }
  std::vector<int> everything(total, -1);
  MPI_Allgather(mine.data(), 7, MPI_INT, everything.data(), 7, MPI_INT, comm);
  note(trace, everything);
  MPI_Allgatherv(mine.data(), counts[static_cast<std::size_t>(me)], MPI_INT, everything.data(), counts.data(),
                 places.data(), MPI_INT, comm);
  note(trace, everything);
  MPI_Alltoall(mine.data(), 11, MPI_INT, everything.data(), 11, MPI_INT, comm);
  note(trace, everything);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, everything.data(), 11, MPI_INT, comm);
  note(trace, everything);
  const std::vector<int> same(counts.size(), counts[static_cast<std::size_t>(me)]);
  MPI_Alltoallv(mine.data(), counts.data(), places.data(), MPI_INT, everything.data(), same.data(), places.data(),
                MPI_INT, comm);
  note(trace, everything);
}

void messages(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  std::vector<int> in(100, -1);
  const std::vector<int> out = counting(100, 100 * me);
  const Owned type(strided(10, 3, 7));
  MPI_Status status;
  int count = -1;
  MPI_Sendrecv(out.data(), 1, type, to, 1, in.data(), 100, MPI_INT, from, MPI_ANY_TAG, comm, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  note(trace, in);
  note(trace, {status.MPI_SOURCE, status.MPI_TAG, count});
  MPI_Sendrecv_replace(in.data(), 1, type, to, 2, from, 2, comm, &status);
  MPI_Get_elements(&status, type, &count);
  note(trace, in);
  note(trace, {status.MPI_SOURCE, status.MPI_TAG, count});
  MPI_Comm half;
  MPI_Comm_split(comm, me % 2, all - me, &half);
  int sum = 0;
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, half);
  note(trace, {rank(half), size(half), sum});
  MPI_Comm_free(&half);
}

/// Where the parts of a trace begin, so that a difference has a name.
struct Run {
  Trace trace;
  std::vector<std::pair<std::size_t, const char*>> parts;

  const char* part_of(std::size_t place) const {
    const char* name = "start";
    for (const auto& [begin, part] : parts) {
      if (begin <= place) name = part;
    }
    return name;
  }
};

Run run(MPI_Comm comm) {
  Run result;
  Trace& trace = result.trace;
  trace = {rank(comm), size(comm)};
  const auto part = [&](const char* name) { result.parts.emplace_back(trace.size(), name); };
  MPI_Datatype pair;
  MPI_Op op;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(compose, 0, &op);
  for (int round = 0; round < 3; ++round) {
    MPI_Barrier(comm);
    part("reductions");
    reductions(comm, pair, op, trace);
    part("reductions of numbers");
    reductions_of_numbers(comm, trace);
    part("distributions");
    distributions(comm, trace);
    part("messages");
    messages(comm, trace);
    part("reductions of parts");
    reductions_of_parts(comm, pair, op, trace);
    part("nonblocking");
    nonblocking(comm, pair, op, trace);
    part("persistent messages");
    persistent_messages(comm, trace);
    part("buffered messages");
    buffered_messages(comm, trace);
    part("exchanges under one request");
    exchanges_under_one_request(comm, trace);
    part("persistent collectives");
    persistent_collectives(comm, pair, op, trace);
    part("grids");
    grids(comm, trace);
    part("graphs");
    graphs(comm, trace);
    part("distributed graphs");
    distributed_graphs(comm, trace);
    part("communicators");
    communicators(comm, trace);
    part("groups");
    groups(comm, trace);
    part("communicators of groups");
    communicators_of_groups(comm, trace);
    part("duplicates under way");
    duplicates_under_way(comm, trace);
    part("collectives between groups");
    collectives_between_groups(comm, pair, op, trace);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  return result;
}

/// Says where they first differ.
bool is_same(const Trace& expected, const Run& got) {
  const auto [a, b] = std::mismatch(expected.begin(), expected.end(), got.trace.begin(), got.trace.end());
  if (a == expected.end() && b == got.trace.end()) return true;
  const auto place = static_cast<std::size_t>(b - got.trace.begin());
  std::fprintf(stderr, "rank %d differs in %s, number %zu of it\n", got.trace[0], got.part_of(place),
               place - std::find_if(got.parts.rbegin(), got.parts.rend(), [&](const auto& part) {
                         return part.first <= place;
                       })->first);
  return false;
}

/// Traces of the endpoints of this process, by rank.
void compare_with(const std::vector<Trace>& expected, MPI_Comm parent, int my_count) {
  std::vector<MPI_Comm> handles(static_cast<std::size_t>(my_count));
  EXPECT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(parent, my_count, MPI_INFO_NULL, handles.data()));
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      different += !is_same(expected[static_cast<std::size_t>(rank(handle))], run(handle));
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, different);
}

/// Runs `work(handle)` on a thread for each endpoint of the process; adds up what it returns.
template <class Work>
int on_endpoints(int my_count, Work work) {
  std::vector<MPI_Comm> handles(static_cast<std::size_t>(my_count));
  EXPECT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, my_count, MPI_INFO_NULL, handles.data()));
  std::atomic<int> sum = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      sum += work(handle);
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum;
}

TEST(Collectives, AreRightForAnyNumberOfEndpoints) {
  for (const int each : {1, 2, 3, 8}) EXPECT_EQ(0, on_endpoints(each, wrong_in_two_levels)) << each;
  EXPECT_EQ(0, on_endpoints(rank() % 2 == 0 ? 3 : 1, wrong_in_two_levels));
  EXPECT_EQ(0, on_endpoints(rank() % 2 == 0 ? 0 : 2, wrong_in_two_levels));
}

/// Ranks that do not follow each other process by process.
TEST(Collectives, AreRightForRanksInAnyOrder) {
  EXPECT_EQ(0, on_endpoints(3, [](MPI_Comm comm) {
              MPI_Comm mixed;
              MPI_Comm_split(comm, 0, rank(comm) % 3, &mixed);
              const int wrong = wrong_in_two_levels(mixed);
              MPI_Comm_free(&mixed);
              return wrong;
            }));
}

/// Processes without endpoints take no part.
TEST(Collectives, SplitByNodeWhereSomeProcessesHaveNoEndpoints) {
  EXPECT_EQ(0, on_endpoints(rank() % 2 == 0 ? 0 : 2, [](MPI_Comm comm) {
              MPI_Comm node = MPI_COMM_NULL;
              int wrong = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS;
              wrong += size(node) != size(comm) || rank(node) != rank(comm);
              MPI_Comm_free(&node);
              return wrong;
            }));
}

/// A message costs allocations; in a process the endpoints need none to meet.
TEST(Collectives, OfOneProcessSendNoMessages) {
  constexpr int rounds = 500;
  std::vector<MPI_Comm> handles(3);
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 3, MPI_INFO_NULL, handles.data());
  std::atomic<std::uint64_t> before = 0, after = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      const int me = rank(handle);
      const auto round = [&] {
        int sum = 0, told = me, all[3] = {-1, -1, -1};
        MPI_Barrier(handle);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, handle);
        MPI_Bcast(&told, 1, MPI_INT, 1, handle);
        MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, handle);
        wrong += sum != 3 || told != 1 || all[0] != 0 || all[1] != 1 || all[2] != 2;
      };
      for (int i = 0; i < 10; ++i) round();
      MPI_Barrier(handle);
      if (me == 0) before = allocations();
      MPI_Barrier(handle);
      for (int i = 0; i < rounds; ++i) round();
      MPI_Barrier(handle);
      if (me == 0) after = allocations();
      MPI_Barrier(handle);
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
  std::printf("allocations in %d rounds of 4 collectives on 3 endpoints: %llu\n", rounds,
              static_cast<unsigned long long>(after - before));
  EXPECT_LT(after - before, 100U);
}

/// What is expected is what the library gives to processes.
TEST(Intercommunicators, OfProcessesAreAsExpected) {
  if (size() == 1) return;
  EXPECT_EQ(0, wrong_between_parts(MPI_COMM_WORLD, false));
}

TEST(Intercommunicators, AreRightForAnyNumberOfEndpoints) {
  const auto wrong = [](MPI_Comm comm) { return size(comm) > 1 ? wrong_between_parts(comm, true) : 0; };
  for (const int each : {1, 2, 3}) EXPECT_EQ(0, on_endpoints(each, wrong)) << each;
  EXPECT_EQ(0, on_endpoints(rank() % 2 == 0 ? 3 : 1, wrong));
}

/// A barrier lets nobody go before all of the other group have come.
TEST(Intercommunicators, BarriersWaitForTheOtherGroup) {
  constexpr int rounds = 200, locals = 3;
  std::array<std::atomic<int>, 2> come{};
  EXPECT_EQ(0, on_endpoints(locals, [&](MPI_Comm comm) {
              const int side = rank(comm) % 2;
              int wrong = 0, others = 0;
              for (int local = 0; local < locals; ++local) others += (rank() * locals + local) % 2 != side;
              MPI_Comm half, inter;
              MPI_Comm_split(comm, side, 0, &half);
              MPI_Intercomm_create(half, 0, comm, 1 - side, 0, &inter);
              for (int round = 1; round <= rounds; ++round) {
                MPI_Request request = MPI_REQUEST_NULL;
                ++come[static_cast<std::size_t>(side)];
                if (round % 2 == 0) {
                  MPI_Barrier(inter);
                } else {
                  MPI_Ibarrier(inter, &request);
                  MPI_Wait(&request, MPI_STATUS_IGNORE);
                }
                wrong += come[static_cast<std::size_t>(1 - side)] < round * others;
              }
              MPI_Comm_free(&inter);
              MPI_Comm_free(&half);
              return wrong;
            }));
}

/// The leaders meet in a communicator of processes, for the groups have none of endpoints in common.
TEST(Intercommunicators, OfEndpointsThatWereMadeApart) {
  if (size() < 2) return;
  const int side = rank() % 2, remote = (size() + side) / 2 * 2;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  EXPECT_EQ(0, Endpoints(each(2), half).run([&](MPI_Comm comm) {
    MPI_Comm inter, merged;
    MPI_Intercomm_create(comm, 0, MPI_COMM_WORLD, 1 - side, 9, &inter);
    int wrong = 0, found = 0, sent = 1000 * side + rank(comm);
    MPI_Comm_remote_size(inter, &found);
    wrong += found != remote || size(inter) != size(comm) || rank(inter) != rank(comm);
    for (int to = 0; to < found; ++to) MPI_Send(&sent, 1, MPI_INT, to, 0, inter);
    for (int from = 0; from < found; ++from) {
      int got = -1;
      MPI_Recv(&got, 1, MPI_INT, from, 0, inter, MPI_STATUS_IGNORE);
      wrong += got != 1000 * (1 - side) + from;
    }
    MPI_Intercomm_merge(inter, side, &merged);
    wrong += size(merged) != 2 * size() || rank(merged) != rank(comm) + (side == 0 ? 0 : remote);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    return wrong;
  }));
  MPI_Comm_free(&half);
}

TEST(Conformance, EndpointsGetWhatProcessesGet) {
  // One for all of a process's ranks.
  std::vector<char> room(1 << 22);
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
  const Trace mine = run(MPI_COMM_WORLD).trace;
  // Traces differ in length by rank.
  std::vector<Trace> expected(static_cast<std::size_t>(size()));
  for (int process = 0; process < size(); ++process) {
    Trace& trace = expected[static_cast<std::size_t>(process)];
    if (process == rank()) trace = mine;
    int length = static_cast<int>(trace.size());
    MPI_Bcast(&length, 1, MPI_INT, process, MPI_COMM_WORLD);
    trace.resize(static_cast<std::size_t>(length));
    MPI_Bcast(trace.data(), length, MPI_INT, process, MPI_COMM_WORLD);
  }
  compare_with(expected, MPI_COMM_SELF, size());
  compare_with(expected, MPI_COMM_WORLD, 1);
  compare_with(expected, MPI_COMM_WORLD, rank() == 0 ? size() : 0);
  if (size() == 4) compare_with(expected, MPI_COMM_WORLD, rank() == 1 ? 3 : rank() == 2 ? 1 : 0);
  void* detached = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&detached, &bytes);
  EXPECT_EQ(room.data(), detached);
}

}  // namespace
}  // namespace gapless::test

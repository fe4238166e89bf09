// What a program may do with endpoints, on threads as ranks. Each test runs the same function on every endpoint of all
// processes; the wrong are counted, for GoogleTest's checks belong to the main thread.

#include "gapless/endpoints.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "on_endpoints.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

/// Standard and synchronous sends, short and long, to everybody and from everybody.
int all_modes(MPI_Comm comm) {
  int wrong = 0;
  const int me = rank(comm), all = size(comm);
  using Isend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  for (const Isend isend : {Isend(MPI_Isend), Isend(MPI_Issend)}) {
    for (const std::size_t length : {0, 1, 1000, 40000}) {
      std::vector<std::vector<int>> in(static_cast<std::size_t>(all), std::vector<int>(length, -1));
      const std::vector<int> out = counting(length, 1000 * me);
      std::vector<MPI_Request> requests;
      for (int peer = 0; peer < all; ++peer) {
        requests.emplace_back();
        MPI_Irecv(in[static_cast<std::size_t>(peer)].data(), static_cast<int>(length), MPI_INT, peer, 3, comm,
                  &requests.back());
        requests.emplace_back();
        isend(out.data(), static_cast<int>(length), MPI_INT, peer, 3, comm, &requests.back());
      }
      std::vector<MPI_Status> statuses(requests.size());
      wrong += MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()) != MPI_SUCCESS;
      for (int peer = 0; peer < all; ++peer) {
        int count = -1;
        MPI_Get_count(&statuses[static_cast<std::size_t>(2 * peer)], MPI_INT, &count);
        wrong += count != static_cast<int>(length);
        wrong += in[static_cast<std::size_t>(peer)] != counting(length, 1000 * peer);
      }
    }
  }
  return wrong;
}

TEST(Messages, OfEveryModeAndLength) {
  for (const Shape& shape : {each(2), Shape(uneven)}) EXPECT_EQ(0, on_endpoints(shape, all_modes));
}

/// Noncontiguous to contiguous and back, across and within processes.
TEST(Messages, OfStridedData) {
  const Owned type(strided(300, 2, 5));
  EXPECT_EQ(0, on_endpoints(each(2), [&](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              const std::vector<int> out = counting(1500, 10000 * me);
              std::vector<int> in(1500, -1), packed(600, -1);
              MPI_Status status;
              int wrong = 0;
              MPI_Sendrecv(out.data(), 1, type, to, 0, in.data(), 1, type, from, 0, comm, &status);
              const std::vector<int> picked_there = picked(counting(1500, 10000 * from), 300, 2, 5);
              wrong += in != placed(std::vector<int>(1500, -1), picked_there, 2, 5);
              MPI_Sendrecv(out.data(), 1, type, to, 0, packed.data(), 600, MPI_INT, from, 0, comm, &status);
              wrong += packed != picked_there;
              std::vector<int> unpacked(1500, -1);
              MPI_Sendrecv(packed.data(), 600, MPI_INT, from, 0, unpacked.data(), 1, type, to, 0, comm, &status);
              wrong += unpacked != placed(std::vector<int>(1500, -1), picked(out, 300, 2, 5), 2, 5);
              return wrong;
            }));
}

TEST(Messages, ThatAreTooLongAreTruncated) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              const std::vector<int> out = counting(9000, 10 * me);
              int wrong = 0;
              for (const int length : {10, 9000}) {
                std::vector<int> in(9000, -1);
                MPI_Request send, receive;
                MPI_Status status;
                MPI_Isend(out.data(), length, MPI_INT, to, 0, comm, &send);
                wrong += error_class(MPI_Recv(in.data(), 4, MPI_INT, from, 0, comm, &status)) != MPI_ERR_TRUNCATE;
                wrong += in[4] != -1;
                MPI_Wait(&send, MPI_STATUS_IGNORE);
                MPI_Irecv(in.data(), 4, MPI_INT, from, 0, comm, &receive);
                MPI_Isend(out.data(), length, MPI_INT, to, 0, comm, &send);
                wrong += error_class(MPI_Wait(&receive, &status)) != MPI_ERR_TRUNCATE;
                MPI_Wait(&send, MPI_STATUS_IGNORE);
                std::array<MPI_Request, 2> both;
                std::array<MPI_Status, 2> statuses;
                MPI_Irecv(in.data(), 4, MPI_INT, from, 0, comm, &both[0]);
                MPI_Isend(out.data(), length, MPI_INT, to, 0, comm, &both[1]);
                wrong += error_class(MPI_Waitall(2, both.data(), statuses.data())) != MPI_ERR_IN_STATUS;
                wrong += error_class(statuses[0].MPI_ERROR) != MPI_ERR_TRUNCATE;
                wrong += in[4] != -1;
              }
              return wrong;
            }));
}

TEST(Messages, ToNobody) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              MPI_Status status;
              MPI_Request request;
              int number = 5, count = -1;
              MPI_Send(&number, 1, MPI_INT, MPI_PROC_NULL, 0, comm);
              MPI_Irecv(&number, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &request);
              MPI_Wait(&request, &status);
              MPI_Get_count(&status, MPI_INT, &count);
              return (status.MPI_SOURCE != MPI_PROC_NULL) + (status.MPI_TAG != MPI_ANY_TAG) + (count != 0) +
                     (number != 5);
            }));
}

TEST(Probes, FindMessagesAndHandThemOut) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              int wrong = 0;
              for (const int length : {3, 5000}) {
                const std::vector<int> out = counting(static_cast<std::size_t>(length), 10 * me);
                std::vector<int> in(static_cast<std::size_t>(length), -1);
                for (const bool matched : {false, true}) {
                  MPI_Request send;
                  MPI_Status status;
                  MPI_Message message;
                  int count = -1;
                  MPI_Isend(out.data(), length, MPI_INT, to, 4, comm, &send);
                  if (matched) {
                    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
                  } else {
                    MPI_Probe(from, MPI_ANY_TAG, comm, &status);
                  }
                  MPI_Get_count(&status, MPI_INT, &count);
                  wrong += count != length || status.MPI_SOURCE != from || status.MPI_TAG != 4;
                  if (matched) {
                    int flag = 1;
                    MPI_Request receive = MPI_REQUEST_NULL;
                    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
                    wrong += flag != 0;
                    // A mistake leaves the message where it is.
                    wrong +=
                        error_class(MPI_Mrecv(in.data(), length, MPI_DATATYPE_NULL, &message, &status)) != MPI_ERR_TYPE;
                    wrong += error_class(MPI_Imrecv(in.data(), -1, MPI_INT, &message, &receive)) != MPI_ERR_COUNT;
                    MPI_Mrecv(in.data(), length, MPI_INT, &message, &status);
                    wrong += message != MPI_MESSAGE_NULL;
                  } else {
                    MPI_Recv(in.data(), length, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
                  }
                  wrong += status.MPI_SOURCE != from || in != counting(static_cast<std::size_t>(length), 10 * from);
                  MPI_Wait(&send, MPI_STATUS_IGNORE);
                  MPI_Barrier(comm);
                }
              }
              return wrong;
            }));
}

TEST(Requests, AreCancelledTestedAndWaitedFor) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              int wrong = 0, flag = 1, number = -1, index = -1;
              MPI_Status status;
              std::array<MPI_Request, 3> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
              MPI_Irecv(&number, 1, MPI_INT, from, 9, comm, &requests[1]);
              MPI_Testany(3, requests.data(), &index, &flag, &status);
              wrong += flag != 0;
              MPI_Cancel(&requests[1]);
              MPI_Wait(&requests[1], &status);
              MPI_Test_cancelled(&status, &flag);
              wrong += flag == 0;

              std::array<int, 3> in{-1, -1, -1};
              for (std::size_t i = 0; i < 3; ++i)
                MPI_Irecv(&in[i], 1, MPI_INT, from, static_cast<int>(i), comm, &requests[i]);
              MPI_Send(&me, 1, MPI_INT, to, 1, comm);
              wrong += MPI_Waitany(3, requests.data(), &index, &status) != MPI_SUCCESS;
              wrong += index != 1 || status.MPI_TAG != 1 || in[1] != from || requests[1] != MPI_REQUEST_NULL;
              MPI_Barrier(comm);
              MPI_Send(&me, 1, MPI_INT, to, 2, comm);
              std::array<int, 3> indices{};
              std::array<MPI_Status, 3> statuses;
              int some = 0;
              MPI_Waitsome(3, requests.data(), &some, indices.data(), statuses.data());
              wrong += some != 1 || indices[0] != 2;
              MPI_Barrier(comm);
              MPI_Send(&me, 1, MPI_INT, to, 0, comm);
              for (flag = 0; flag == 0;) MPI_Testall(3, requests.data(), &flag, statuses.data());
              wrong += in[0] != from;
              return wrong;
            }));
}

TEST(Requests, OfPersistentMessagesAndExchangesHaveStatuses) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              int wrong = 0, in = -1, count = -1, flag = 1, index = -1;
              std::array<MPI_Request, 2> requests;
              MPI_Status status;
              MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &requests[0]);
              MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &requests[1]);
              MPI_Startall(2, requests.data());
              MPI_Waitany(2, requests.data(), &index, &status);
              wrong += index != 0 || status.MPI_SOURCE != MPI_PROC_NULL || status.MPI_TAG != MPI_ANY_TAG;
              MPI_Test(&requests[1], &flag, &status);
              wrong += flag != 0;
              MPI_Cancel(&requests[1]);
              MPI_Wait(&requests[1], &status);
              MPI_Test_cancelled(&status, &flag);
              wrong += flag == 0;
              MPI_Barrier(comm);
              MPI_Start(&requests[1]);
              wrong += error_class(MPI_Start(&requests[1])) != MPI_ERR_REQUEST;
              const std::array<int, 2> two{me, me};
              MPI_Request send;
              MPI_Isend(two.data(), 2, MPI_INT, to, 3, comm, &send);
              wrong += error_class(MPI_Wait(&requests[1], &status)) != MPI_ERR_TRUNCATE;
              MPI_Wait(&send, MPI_STATUS_IGNORE);
              MPI_Barrier(comm);
              MPI_Start(&requests[1]);
              MPI_Send(&me, 1, MPI_INT, to, 3, comm);
              for (flag = 0; flag == 0;) MPI_Request_get_status(requests[1], &flag, &status);
              wrong += status.MPI_SOURCE != from || status.MPI_TAG != 3;
              MPI_Wait(&requests[1], &status);
              MPI_Get_count(&status, MPI_INT, &count);
              wrong += status.MPI_SOURCE != from || count != 1 || in != from;
              for (MPI_Request& request : requests) MPI_Request_free(&request);
#if MPI_VERSION >= 4
              MPI_Request exchange;
              MPI_Isendrecv(&me, 1, MPI_INT, to, 5, &in, 1, MPI_INT, from, MPI_ANY_TAG, comm, &exchange);
              MPI_Wait(&exchange, &status);
              MPI_Get_count(&status, MPI_INT, &count);
              wrong += status.MPI_SOURCE != from || status.MPI_TAG != 5 || count != 1;
#endif
              return wrong;
            }));
}

/// Open MPI starts a request under another handle while the last message is still on its way; gapless has to know both.
TEST(Requests, OfProcessesAreStartedBesideThoseOfEndpoints) {
  constexpr int length = 100000, rounds = 5;
  std::vector<int> memory(static_cast<std::size_t>(rounds * (length + MPI_BSEND_OVERHEAD)));
  MPI_Datatype every_other;
  MPI_Type_vector(length, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  EXPECT_EQ(0, Endpoints(each(1), MPI_COMM_SELF).run([&](MPI_Comm comm) {
    int wrong = 0, in = -1;
    std::vector<int> out(2 * length);
    MPI_Request requests[2];
    MPI_Buffer_attach(memory.data(), static_cast<int>(memory.size() * sizeof(int)));
    MPI_Recv_init(&in, 1, MPI_INT, 0, 3, comm, &requests[0]);
    MPI_Bsend_init(out.data(), 1, every_other, rank(), 4, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < length; ++i) out[static_cast<std::size_t>(2 * i)] = round + i;
      wrong += MPI_Startall(2, requests) != MPI_SUCCESS;
      MPI_Send(&round, 1, MPI_INT, 0, 3, comm);
      wrong += MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS || in != round;
    }
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> arrived(length);
      MPI_Recv(arrived.data(), length, MPI_INT, rank(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      wrong += arrived != counting(length, round);
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    void* attached = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(static_cast<void*>(&attached), &bytes);
    return wrong;
  }));
  MPI_Type_free(&every_other);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
/// Flushing waits for what the endpoint itself has sent, until it has been received.
TEST(Requests, OfFlushesWaitForBufferedMessages) {
  EXPECT_EQ(0, Endpoints(each(3), MPI_COMM_SELF).run([](MPI_Comm comm) {
    const int me = rank(comm), to = (me + 1) % 3, from = (me + 2) % 3;
    std::vector<int> out = counting(40000, me), in(out.size(), -1);
    MPI_Request request;
    int wrong = 0, flag = 1;
    if (me != 0) MPI_Bsend(out.data(), 40000, MPI_INT, to, 0, comm);
    std::fill(out.begin(), out.end(), -7);
    MPI_Comm_iflush_buffer(comm, &request);
    for (int i = 0; i < 100; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    wrong += flag != (me == 0 ? 1 : 0);
    MPI_Barrier(comm);
    if (from != 0) MPI_Recv(in.data(), 40000, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
    wrong += from != 0 && in != counting(40000, from);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return wrong + (MPI_Comm_flush_buffer(comm) != MPI_SUCCESS);
  }));
}
#endif

/// Completes two requests of an endpoint.
int complete_two(void* two, MPI_Status* status) {
  int flag = 0;
  MPI_Testall(2, static_cast<MPI_Request*>(two), &flag, MPI_STATUSES_IGNORE);
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  return flag != 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

/// The library asks a generalised request's callback inside a call that completes an endpoint's requests, too.
TEST(Requests, AreCompletedByACallbackInsideAnotherCall) {
  EXPECT_EQ(0, Endpoints(each(1), MPI_COMM_SELF).run([](MPI_Comm comm) {
    std::array<int, 3> in{-1, -1, -1};
    std::array<MPI_Request, 2> outside, inside;
    MPI_Irecv(&in[0], 1, MPI_INT, 0, 10, comm, &outside[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, 0, 11, comm, &inside[0]);
    MPI_Irecv(&in[2], 1, MPI_INT, 0, 12, comm, &inside[1]);
    for (int i = 0; i < 3; ++i) MPI_Send(&i, 1, MPI_INT, 0, 10 + i, comm);
    MPI_Grequest_start(complete_two, free_nothing, cancel_nothing, inside.data(), &outside[1]);
    MPI_Grequest_complete(outside[1]);
    std::array<MPI_Status, 2> statuses;
    int wrong = MPI_Waitall(2, outside.data(), statuses.data()) != MPI_SUCCESS;
    wrong += statuses[0].MPI_TAG != 10 || in != std::array<int, 3>{0, 1, 2};
    for (const MPI_Request request : {outside[0], outside[1], inside[0], inside[1]})
      wrong += request != MPI_REQUEST_NULL;
    return wrong;
  }));
}

/// Neither a NaN nor the two zeros have an order.
TEST(Collectives, OfNumbersWithoutAnOrderAreTheSameOnEveryRank) {
  EXPECT_EQ(
      0, on_endpoints(each(3), [](MPI_Comm comm) {
        using Numbers = std::array<double, 6>;
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        const int me = rank(comm), all = size(comm);
        const double zero = me % 2 == 0 ? 0.0 : -0.0;
        const Numbers mine{
            me == 1 ? nan : me, me == all - 1 ? nan : me, me == 0 ? nan : me, me % 2 == 0 ? nan : me, zero, -zero};
        int wrong = 0;
        for (const MPI_Op operation : {MPI_MIN, MPI_MAX}) {
          Numbers result{};
          std::vector<Numbers> results(static_cast<std::size_t>(all));
          MPI_Allreduce(mine.data(), result.data(), 6, MPI_DOUBLE, operation, comm);
          MPI_Allgather(result.data(), 6, MPI_DOUBLE, results.data(), 6, MPI_DOUBLE, comm);
          for (const Numbers& other : results) wrong += std::memcmp(&other, &result, sizeof result) != 0;
        }
        return wrong;
      }));
}

TEST(Topologies, AreAskedForWhereThereIsOne) {
  EXPECT_EQ(
      0, on_endpoints(each(2), [](MPI_Comm comm) {
        int wrong = 0, kind = -1, count = -1;
        MPI_Comm grid;
        const std::array<int, 2> dimensions{1000, 1000}, periods{0, 0};
        MPI_Topo_test(comm, &kind);
        wrong += kind != MPI_UNDEFINED;
        wrong += error_class(MPI_Cartdim_get(comm, &count)) != MPI_ERR_TOPOLOGY;
        wrong += error_class(MPI_Neighbor_allgather(&kind, 1, MPI_INT, &count, 1, MPI_INT, comm)) != MPI_ERR_TOPOLOGY;
        wrong += error_class(MPI_Cart_create(comm, 2, dimensions.data(), periods.data(), 0, &grid)) != MPI_ERR_DIMS;
        wrong += error_class(MPI_Dist_graph_neighbors_count(comm, &count, &count, &count)) != MPI_ERR_TOPOLOGY;
        return wrong;
      }));
}

/// One rank's mistake is every rank's error, and what one got wrong does not keep the communicator from the next call.
TEST(Topologies, MistakesInDistributedGraphsAreAgreed) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              int wrong = 0, one = 1, me = rank(comm);
              const bool is_wrong = me == size(comm) - 1;
              const int neighbor = is_wrong ? size(comm) : 0, weight = is_wrong ? -1 : 1, right = 0;
              const int count = is_wrong ? -1 : 0;
              MPI_Comm graph;
              const auto adjacent = [&](int in, const int* rank, const int* weights) {
                return error_class(MPI_Dist_graph_create_adjacent(comm, in, rank, weights, 0, nullptr,
                                                                  MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph));
              };
              wrong += adjacent(1, &neighbor, MPI_UNWEIGHTED) != MPI_ERR_RANK;
              wrong += adjacent(1, &right, &weight) != MPI_ERR_ARG;
              wrong += adjacent(count, &right, MPI_UNWEIGHTED) != MPI_ERR_ARG;
              const auto edges = [&](int source, int degree, int destination) {
                return error_class(MPI_Dist_graph_create(comm, 1, &source, &degree, &destination, MPI_UNWEIGHTED,
                                                         MPI_INFO_NULL, 0, &graph));
              };
              wrong += edges(neighbor, one, me) != MPI_ERR_RANK;
              wrong += edges(me, one, neighbor) != MPI_ERR_RANK;
              wrong += edges(me, count, me) != MPI_ERR_ARG;
              // No edges at all: neighbourhood collectives move nothing.
              int in = -1, out = -1, is_weighted = -1;
              wrong += MPI_Dist_graph_create(comm, 0, nullptr, nullptr, nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                             &graph) != MPI_SUCCESS;
              MPI_Dist_graph_neighbors_count(graph, &in, &out, &is_weighted);
              wrong += in != 0 || out != 0 || is_weighted != 0;
              wrong += MPI_Neighbor_allgather(&me, 1, MPI_INT, nullptr, 1, MPI_INT, graph) != MPI_SUCCESS;
              MPI_Comm_free(&graph);
              return wrong;
            }));
}

TEST(Finalize, WithLiveEndpointsIsAnError) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  const ReturnErrors returned_here(MPI_COMM_SELF);
  Endpoints endpoints(each(1));
  EXPECT_EQ(MPI_ERR_OTHER, error_class(MPI_Finalize()));
  MPI_Comm_free(&endpoints.handles()[0]);
}

}  // namespace
}  // namespace gapless::test

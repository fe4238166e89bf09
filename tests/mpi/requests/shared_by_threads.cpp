// What several threads use at a time: a request that all of them ask about, the error handler of a communicator, and
// requests that have been freed.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

int partner() { return (rank() ^ 1) < size() ? rank() ^ 1 : rank(); }

/// To all that ask, a receive is complete once its data is there.
TEST(SharedByThreads, AReceiveIsAskedAbout) {
  constexpr int blocks = 100'000, length = 1, stride = 2;
  constexpr std::size_t span = std::size_t{blocks} * stride;
  const Owned type(strided(blocks, length, stride));
  const std::uint64_t before = packed_messages();
  std::atomic<int> wrong = 0, rounds = 0;
  for (const bool is_persistent : {false, true}) {
    std::vector<int> incoming(span);
    MPI_Request receiving;
    if (is_persistent) MPI_Recv_init(incoming.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &receiving);
    for (int round = 0; round < 10; ++round, ++rounds) {
      std::fill(incoming.begin(), incoming.end(), -1);
      if (is_persistent) {
        MPI_Start(&receiving);
      } else {
        MPI_Irecv(incoming.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &receiving);
      }
      const std::vector<int> outgoing = counting(span, 1000 * rank() + round);
      const std::vector<int> sent = picked(counting(span, 1000 * partner() + round), blocks, length, stride);
      const std::vector<int> wanted = placed(std::vector<int>(span, -1), sent, length, stride);
      const auto ask = [&] {
        MPI_Status status{};
        for (int flag = 0; flag == 0; std::this_thread::yield()) {
          wrong += MPI_Request_get_status(receiving, &flag, &status) != MPI_SUCCESS;
        }
        wrong += incoming != wanted;
        if (is_persistent) return;  // MPICH tells its status once
        int elements = -1;
        MPI_Get_elements(&status, MPI_INT, &elements);
        wrong += elements != blocks;
      };
      std::thread other(ask), another(ask);
      MPI_Send(outgoing.data(), 1, type, partner(), 1, MPI_COMM_WORLD);
      other.join();
      another.join();
      wrong += MPI_Wait(&receiving, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    }
    if (is_persistent) MPI_Request_free(&receiving);
  }
  EXPECT_EQ(0, wrong);
  if (is_everything_packed()) {
    EXPECT_EQ(before + 2 * static_cast<unsigned>(rounds), packed_messages());
  }
}

void ignore(MPI_Comm*, int*, ...) {}

/// A thread sets the error handler of MPI_COMM_WORLD while another one sends its first messages on communicators.
TEST(SharedByThreads, AHandlerStaysAsItIsSet) {
  constexpr int blocks = 4096;
  const Owned type(strided(blocks, 1, 2));
  const std::vector<int> outgoing = counting(2 * blocks, rank());
  const std::vector<int> wanted = placed(std::vector<int>(2 * blocks, -1), picked(outgoing, blocks, 1, 2), 1, 2);
  MPI_Errhandler before, own;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_create_errhandler(ignore, &own);
  std::atomic<bool> is_over = false;
  std::atomic<unsigned> set_so_far = 0;
  std::atomic<int> lost = 0;
  std::thread sets([&] {
    for (; !is_over; ++set_so_far) {
      MPI_Errhandler found;
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
      MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
      lost += found != own;
      MPI_Errhandler_free(&found);
    }
  });
  int wrong = 0;
  for (int burst = 0; burst < 2; ++burst) {
    std::vector<MPI_Comm> communicators(200);
    for (MPI_Comm& communicator : communicators) MPI_Comm_dup(MPI_COMM_SELF, &communicator);
    for (const unsigned start = set_so_far; set_so_far < start + 2;) std::this_thread::yield();
    for (const MPI_Comm communicator : communicators) {
      std::vector<int> incoming(outgoing.size(), -1);
      MPI_Sendrecv(outgoing.data(), 1, type, 0, 1, incoming.data(), 1, type, 0, 1, communicator, MPI_STATUS_IGNORE);
      wrong += incoming != wanted;
    }
    for (MPI_Comm& communicator : communicators) MPI_Comm_free(&communicator);
  }
  is_over = true;
  sets.join();
  EXPECT_EQ(0, wrong);
  EXPECT_EQ(0, lost);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  for (MPI_Errhandler* handler : {&before, &own}) MPI_Errhandler_free(handler);
}

void complete_something(MPI_Comm*, int*, ...) {
  MPI_Request nothing = MPI_REQUEST_NULL;
  int flag = 0;
  MPI_Test(&nothing, &flag, MPI_STATUS_IGNORE);
}

/// A freed receive that fails: the library may call a handler when it is asked about the request.
TEST(SharedByThreads, HandlersOfFreedReceivesCompleteRequests) {
  constexpr int blocks = 1000;
  const WithHandler own(MPI_COMM_WORLD, complete_something);
  const HandlerOfWorldAndSelf others(complete_something);
  const Owned type(strided(blocks, 1, 2)), shorter(strided(blocks / 2, 1, 2));
  const std::vector<int> outgoing = counting(2 * blocks, rank());
  std::vector<int> incoming(outgoing.size(), -1);
  MPI_Request request;
  MPI_Irecv(incoming.data(), 1, shorter, partner(), 1, own, &request);
  MPI_Request_free(&request);
  MPI_Send(outgoing.data(), 1, type, partner(), 1, own);
  MPI_Barrier(MPI_COMM_WORLD);
  const int token = rank();
  int received = -1;
  MPI_Irecv(&received, 1, MPI_INT, rank(), 11, MPI_COMM_WORLD, &request);
  MPI_Send(&token, 1, MPI_INT, rank(), 11, MPI_COMM_WORLD);
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_EQ(token, received);
}

}  // namespace
}  // namespace gapless::test

// What a program does inside a call that completes or begins requests: callbacks of generalized requests and error
// handlers make messages of their own, whose requests may get the handles of those that the call has just ended.

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int length = 4000, first_tag = 7, inner_tag = 8;

/// From rank 0 to rank 1, by slots where those are forced: once both know each other.
class Inside : public ::testing::Test {
 protected:
  void SetUp() override {
    if (size() != 2) GTEST_SKIP() << "needs two processes";
    for (int i = 0; i < 100; ++i) {
      if (rank() == 0) {
        send(first_tag);
      } else {
        EXPECT_EQ(expected(), receive(first_tag));
      }
    }
  }
  void send(int tag, int count = 1) const { MPI_Send(out_.data(), count, column_, 1, tag, MPI_COMM_WORLD); }
  std::vector<int> receive(int tag) const {
    std::vector<int> in(length, -1);
    MPI_Request request;
    MPI_Irecv(in.data(), length, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return in;
  }
  std::vector<int> expected() const { return picked(out_, length, 1, 2); }

  const std::vector<int> out_ = counting(4 * length);
  const Owned column_{strided(length, 1, 2)};
};

/// What a callback of a generalized request, or an error handler, does: state that C's callbacks reach.
std::vector<int> received_inside;
int times_inside = 0;

void receive_inside() {
  ++times_inside;
  received_inside.assign(length, -1);
  MPI_Request request;
  MPI_Irecv(received_inside.data(), length, MPI_INT, 0, inner_tag, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int receive_when_asked(void*, MPI_Status* status) {
  receive_inside();
  MPI_Status_set_elements(status, MPI_INT, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

TEST_F(Inside, CallbacksOfGeneralizedRequestsReceive) {
  for (int round = 0; round < 20; ++round) {
    if (rank() == 0) {
      send(first_tag);
      send(inner_tag);
      continue;
    }
    std::vector<int> in(length, -1);
    MPI_Request requests[2];
    times_inside = 0;
    MPI_Irecv(in.data(), length, MPI_INT, 0, first_tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Grequest_start(receive_when_asked, free_nothing, cancel_nothing, nullptr, &requests[1]);
    MPI_Grequest_complete(requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(1, times_inside);
    EXPECT_EQ(expected(), in);
    EXPECT_EQ(expected(), received_inside);
  }
}

void receive_on_error(MPI_Comm*, int*, ...) { receive_inside(); }

/// A message that is too long for its receive, by the library's own way.
TEST_F(Inside, ErrorHandlersReceive) {
  const HandlerOfWorldAndSelf handler(receive_on_error);
  for (int round = 0; round < 20; ++round) {
    if (rank() == 0) {
      MPI_Send(out_.data(), 2 * length, MPI_INT, 1, first_tag, MPI_COMM_WORLD);
      send(first_tag + 5);
      send(inner_tag);
      continue;
    }
    std::vector<int> in(length, -1), other(length, -1);
    MPI_Request requests[2];
    times_inside = 0;
    MPI_Irecv(in.data(), length, MPI_INT, 0, first_tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(other.data(), length, MPI_INT, 0, first_tag + 5, MPI_COMM_WORLD, &requests[1]);
    round % 2 == 0 ? MPI_Wait(&requests[0], MPI_STATUS_IGNORE) : MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(1, times_inside);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(expected(), other);
    EXPECT_EQ(expected(), received_inside);
  }
}

void probe_on_error(MPI_Comm*, int*, ...) {
  ++times_inside;
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, first_tag + 70, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/// Where threads may probe, receives and probes keep out of each other's way. Both may be mistaken.
TEST_F(Inside, ErrorHandlersProbe) {
  const WithHandler mistaken(MPI_COMM_WORLD, probe_on_error);
  for (int round = 0; round < 20; ++round) {
    if (rank() == 0) {
      send(first_tag);
      continue;
    }
    MPI_Probe(0, first_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::vector<int> in(2 * length, -1);
    MPI_Request request;
    times_inside = 0;
    MPI_Irecv(in.data(), 1, column_, 9, first_tag, mistaken, &request);
    EXPECT_EQ(1, times_inside);
    MPI_Probe(9, first_tag, mistaken, MPI_STATUS_IGNORE);
    EXPECT_EQ(2, times_inside);
    int flag = 0;
    MPI_Message message;
    MPI_Improbe(9, first_tag, mistaken, &flag, &message, MPI_STATUS_IGNORE);
    EXPECT_EQ(3, times_inside);
    EXPECT_EQ(expected(), receive(first_tag));
  }
}

}  // namespace
}  // namespace gapless::test

// Messages between two processes that go by a fabric: the right bytes, gaps and status in every kind of call, and by
// counts that they really went by the scheme that was asked for.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "headers/fabric_messages.hpp"

namespace gapless::test {
namespace {

TEST_F(Fabric, EverySchemeInEveryKindOfCall) {
  if (!takes_part()) return;
  for (const Scheme scheme : {pipelined, gather_write, scatter_read, multi_write}) {
    force(scheme_names[scheme]);
    for (const By by : {By::blocking, By::nonblocking, By::tested, By::any}) {
      for (const Shape& shape : shapes) {
        MPI_Barrier(MPI_COMM_WORLD);
        const std::uint64_t before = messages_by(scheme);
        pass(shape, by);
        // What a sender has copied out goes on after its call.
        MPI_Barrier(MPI_COMM_WORLD);
        if (uses_fabric() && !is_sender()) {
          EXPECT_EQ(before + 1, messages_by(scheme)) << scheme_names[scheme];
        }
      }
    }
  }
}

TEST_F(Fabric, ExchangesGoBothWaysAtOnce) {
  if (!takes_part()) return;
  const int peer = 1 - rank();
  for (const char* scheme : scheme_names) {
    force(scheme);
    const std::uint64_t before = fabric_messages();
    const Side from(256, 300, 400, 1 + rank()), theirs(256, 300, 400, 1 + peer);
    Side to(256, 300, 512, -1);
    MPI_Sendrecv(from.values.data(), 1, from.type, peer, tag, to.values.data(), 1, to.type, peer, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_TRUE(to.after(theirs.packed()) == to.values);
    MPI_Barrier(MPI_COMM_WORLD);
    std::array<MPI_Request, 2> requests;
    std::fill(to.values.begin(), to.values.end(), -1);
    MPI_Irecv(to.values.data(), 1, to.type, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from.values.data(), 1, from.type, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_TRUE(to.after(theirs.packed()) == to.values);
    MPI_Barrier(MPI_COMM_WORLD);
    if (uses_fabric()) {
      EXPECT_LE(before + 2, fabric_messages());  // both that are received, at least
    }
  }
}

TEST_F(Fabric, ManyMessagesAreInOrder) {
  if (!takes_part()) return;
  constexpr int many = 24;
  std::vector<MPI_Request> requests(many);
  std::deque<Side> sides;
  for (int i = 0; i < many; ++i) sides.emplace_back(100 + i, 200, 300, is_sender() ? i : -1);
  for (int i = 0; i < many; ++i) {
    Side& side = sides[static_cast<std::size_t>(i)];
    MPI_Request& request = requests[static_cast<std::size_t>(i)];
    if (is_sender()) {
      MPI_Isend(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(side.values.data(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
    }
  }
  MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
  if (is_sender()) return;
  for (int i = 0; i < many; ++i) {
    const Side& side = sides[static_cast<std::size_t>(i)];
    EXPECT_TRUE(side.after(Side(100 + i, 200, 300, i).packed()) == side.values) << i;
  }
}

// What is legal without gapless must not hang: the peer waits for something else than the message.
TEST_F(Fabric, NoSendWaitsForAReceiverThatWaitsForItsSender) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  Side to(256, 300, 512, -1);
  MPI_Request request;
  for (const bool blocks : {false, true}) {
    // With all the patience of the world a blocking send may wait for its receiver's call.
    if (blocks && uses_fabric() && !is_impatient()) continue;
    if (is_sender()) {
      if (blocks) {
        MPI_Send(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD);
      } else {
        MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (!blocks) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      std::fill(to.values.begin(), to.values.end(), -1);
      MPI_Irecv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_TRUE(to.after(from.packed()) == to.values);
    }
    // The receiver has its message while the sender is in a collective of the library's.
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(Fabric, AFreedRequestsMessageArrives) {
  if (!takes_part()) return;
  Side from(256, 300, 400, 1);
  if (is_sender()) {
    MPI_Request request;
    MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(nullptr, 0, MPI_INT, receiver, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  Side to(256, 300, 512, -1);
  MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_TRUE(to.after(from.packed()) == to.values);
  MPI_Send(nullptr, 0, MPI_INT, sender, tag, MPI_COMM_WORLD);
}

TEST_F(Fabric, ATruncatedMessageIsAnErrorOfItsReceiverAlone) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD));
  } else {
    Side to(255, 300, 512, -1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                    &error_class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class);
    if (uses_fabric()) {
      EXPECT_EQ(-1, *std::ranges::max_element(to.values));
    }
  }
  pass(shapes[0], By::blocking);
}

TEST_F(Fabric, AProbeTellsOfTheMessage) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) return send(from, By::nonblocking);
  Side to(256, 300, 512, -1);
  MPI_Status status;
  MPI_Message message;
  MPI_Mprobe(sender, tag, MPI_COMM_WORLD, &message, &status);
  expect_status(status, 256 * 300);
  MPI_Mrecv(to.values.data(), 1, to.type, &message, &status);
  expect_status(status, 256 * 300);
  EXPECT_TRUE(to.after(from.packed()) == to.values);
}

TEST_F(Fabric, AShorterMessageThanTheReceiveAndAContiguousReceive) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  for (const char* scheme : scheme_names) {
    force(scheme);
    if (is_sender()) {
      send(from, By::blocking);
      send(from, By::blocking);
      continue;
    }
    Side to(400, 300, 512, -1);
    MPI_Status status{};
    receive(to, By::blocking, status);
    expect_status(status, 256 * 300);
    EXPECT_TRUE(to.after(from.packed()) == to.values);
    std::vector<int> plain(256 * 300 + 10, -1);
    MPI_Recv(plain.data(), static_cast<int>(plain.size()), MPI_INT, sender, tag, MPI_COMM_WORLD, &status);
    expect_status(status, 256 * 300);
    std::vector<int> expected = from.packed();
    expected.resize(plain.size(), -1);
    EXPECT_TRUE(expected == plain);
  }
}

}  // namespace
}  // namespace gapless::test

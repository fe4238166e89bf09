// What the tests of messages by header share: ranks exchange in pairs, 0 with 1 and 2 with 3, blocks of two ints, one
// in every five.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {

inline constexpr int tag = 7;

inline int partner() { return rank() ^ 1; }
inline bool has_partner() { return partner() < size(); }
inline bool sends() { return rank() % 2 == 0; }

/// Ints of a block, and from one block to the next.
inline constexpr int length = 2, stride = 5;

/// How one message is sent and received. A receive has the status set.
using Send = std::function<void(const void*, MPI_Datatype, MPI_Comm, int to)>;
using Receive = std::function<void(void*, MPI_Datatype, MPI_Comm, int from, MPI_Status*)>;

inline void send(const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(memory, 1, type, to, tag, communicator));
}
inline void receive(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, 1, type, from, tag, communicator, status));
}

inline void send_by_request(const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
  MPI_Request request;
  MPI_Isend(memory, 1, type, to, tag, communicator, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
inline void send_persistently(const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
  MPI_Request request;
  MPI_Send_init(memory, 1, type, to, tag, communicator, &request);
  const MPI_Request made = request;
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(made, request);
  MPI_Request_free(&request);
}

/// Completes a started persistent request in one of several ways, of which number `how` is taken.
inline void complete_persistent(MPI_Request* request, int how) {
  int flag = 0, index = -1, some = 0;
  switch (how % 7) {
    case 0:
      MPI_Wait(request, MPI_STATUS_IGNORE);
      break;
    case 1:
      while (flag == 0) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
      break;
    case 2:
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE));
      EXPECT_EQ(0, index);
      break;
    case 3:
      while (flag == 0) MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
      EXPECT_EQ(0, index);
      break;
    case 4:
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitsome(1, request, &some, &index, MPI_STATUSES_IGNORE));
      EXPECT_EQ(1, some);
      break;
    case 5:
      while (flag == 0) MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
      MPI_Wait(request, MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  }
  EXPECT_NE(MPI_REQUEST_NULL, *request);
  // Nothing is under way any more.
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_UNDEFINED, index);
}

/// These return the code of the call that completes the receive.
inline int receive_by_request(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  MPI_Request request;
  MPI_Irecv(memory, 1, type, from, tag, communicator, &request);
  return MPI_Wait(&request, status);
}
inline int receive_persistently(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  MPI_Request request;
  MPI_Recv_init(memory, 1, type, from, tag, communicator, &request);
  MPI_Start(&request);
  const int code = MPI_Wait(&request, status);
  MPI_Request_free(&request);
  return code;
}

/// One message of so many blocks, which its receiver takes as `packed` ints in a row.
inline void pass_to_contiguous(const void* memory, MPI_Datatype type, const std::vector<int>& packed) {
  if (sends()) return send(memory, type, MPI_COMM_WORLD, partner());
  std::vector<int> incoming(packed.size() + 1, -1);
  const int count = static_cast<int>(packed.size());
  MPI_Recv(incoming.data(), count, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(-1, incoming.back());
  incoming.pop_back();
  EXPECT_TRUE(packed == incoming);
}

/// One message of so many blocks that is a block too long for its receiver, whose memory stays as it is where
/// `leaves_memory`. Errors must return.
inline void pass_truncated(const void* memory, MPI_Datatype type, int blocks, bool leaves_memory) {
  if (sends()) return send(memory, type, MPI_COMM_WORLD, partner());
  const Owned shorter{strided(blocks - 1, length, stride)};
  const std::vector<int> untouched(static_cast<std::size_t>(blocks * stride), -1);
  std::vector<int> incoming = untouched;
  const int code = MPI_Recv(incoming.data(), 1, shorter, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code));
  if (leaves_memory) {
    EXPECT_TRUE(untouched == incoming);
  }
}

/// The status of one element of a datatype of so many blocks.
inline void expect_message(const MPI_Status& status, MPI_Datatype type, int blocks, int from) {
  EXPECT_EQ(from, status.MPI_SOURCE);
  EXPECT_EQ(tag, status.MPI_TAG);
  int count = -1;
  MPI_Get_count(&status, type, &count);
  EXPECT_EQ(1, count);
  MPI_Get_elements(&status, type, &count);
  EXPECT_EQ(blocks * length, count);
  int flag = 1;
  MPI_Test_cancelled(&status, &flag);
  EXPECT_EQ(0, flag);
}

}  // namespace gapless::test

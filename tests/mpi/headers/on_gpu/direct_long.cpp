// Messages between GPUs of a node that the exported memory has no room for: section by section, through a ring of it.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headers/on_gpu/direct_messages.hpp"

namespace gapless::test {
namespace {

TEST_F(Direct, LongMessagesInEveryKindOfCall) {
  const Send tested = [](const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
    MPI_Request request;
    MPI_Isend(memory, 1, type, to, tag, communicator, &request);
    for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  };
  const Send freed = [](const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
    MPI_Request request;
    MPI_Isend(memory, 1, type, to, tag, communicator, &request);
    MPI_Request_free(&request);
    MPI_Recv(nullptr, 0, MPI_INT, to, tag + 1, communicator, MPI_STATUS_IGNORE);
  };
  for (const int blocks : long_block_counts) {
    pass(blocks, send, receive);
    pass(blocks, send_by_request, receive_by_request);
    pass(blocks, tested, [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
      MPI_Probe(from, tag, communicator, status);
      receive(memory, type, communicator, from, status);
    });
    pass(blocks, freed, [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
      receive_by_request(memory, type, communicator, from, status);
      MPI_Send(nullptr, 0, MPI_INT, from, tag + 1, communicator);
    });
  }
}

/// Each waits for the other's sections while it has yet to pack its own. The first two long messages that a process has
/// under way may find memory for one, and then one goes another way.
TEST_F(Direct, LongMessagesBothWays) {
  if (!has_partner()) return;
  bool is_first = true;
  for (const int blocks : {long_block_counts.front(), long_block_counts.front(), long_block_counts.back()}) {
    const bool counts = goes_direct() && !std::exchange(is_first, false);
    SCOPED_TRACE(std::to_string(blocks) + " blocks");
    Strided mine(blocks, 1000 * rank());
    const std::vector<int> theirs = Strided(blocks, 1000 * partner()).packed();
    Ints first(std::vector<int>(mine.values.size(), -1), true), second(std::vector<int>(mine.values.size(), -1), true);
    const std::uint64_t before = direct_messages();
    MPI_Request requests[4];
    MPI_Irecv(first.data(), 1, mine.type, partner(), tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(second.data(), 1, mine.type, partner(), tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(mine.memory.data(), 1, mine.type, partner(), tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(mine.memory.data(), 1, mine.type, partner(), tag, MPI_COMM_WORLD, &requests[3]);
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    EXPECT_TRUE(arrived(theirs, mine.values.size()) == first.values());
    EXPECT_TRUE(arrived(theirs, mine.values.size()) == second.values());
    if (counts) {
      EXPECT_EQ(before + 4, direct_messages());
    }
    // A send is complete before its receiver has read all, and two such messages fill the exported memory.
    MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag, nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(mine.memory.data(), 1, mine.type, partner(), tag, first.data(), 1, mine.type, partner(), tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(arrived(theirs, mine.values.size()) == first.values());
    if (counts) {
      EXPECT_EQ(before + 6, direct_messages());
    }
  }
}

TEST_F(Direct, LongMessagesIntoHostMemory) {
  if (!has_partner()) return;
  for (const int blocks : long_block_counts) {
    Strided message(blocks);
    if (sends()) {
      const std::uint64_t before = direct_messages();
      send(message.memory.data(), message.type, MPI_COMM_WORLD, partner());
      EXPECT_EQ(before + (goes_direct() ? 1 : 0), direct_messages());
    } else {
      std::vector<int> incoming(message.values.size(), -1);
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
      EXPECT_TRUE(arrived(message.packed(), incoming.size()) == incoming);
    }
  }
}

/// A sender waits for nobody who does not receive: what is left is copied, and the program has its memory back.
TEST_F(Direct, LongMessagesThatNobodyReceivesYetAreCopiedOut) {
  if (!has_partner() || !goes_direct()) return;  // a rendezvous of the library's would wait for the receiver
  using Complete = std::function<void(MPI_Request*)>;
  const std::vector<Complete> ways{[](MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); },
                                   [](MPI_Request* request) {
                                     int index = -1;
                                     MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
                                   },
                                   [](MPI_Request* request) {
                                     for (int flag = 0; flag == 0;) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
                                   }};
  for (const Complete& complete : ways) {
    Strided message(long_block_counts.back());
    if (sends()) {
      const std::uint64_t before = copied_out_of_rings();
      MPI_Request request;
      MPI_Datatype type;
      MPI_Type_dup(message.type, &type);
      MPI_Isend(message.memory.data(), 1, type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Type_free(&type);
      complete(&request);
      EXPECT_EQ(before + 1, copied_out_of_rings());
      message.memory.set(std::vector<int>(message.values.size(), -5));
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      Ints incoming(std::vector<int>(message.values.size(), -1), true);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
      EXPECT_TRUE(arrived(message.packed(), message.values.size()) == incoming.values());
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    }
  }
}

/// More messages than there are rings, of which some are too long for their receive.
TEST_F(Direct, LongMessagesPileUpAndAreTruncated) {
  if (!has_partner()) return;
  constexpr int messages = 8;
  const int blocks = long_block_counts.back();
  Strided message(blocks);
  std::vector<MPI_Request> requests(messages);
  std::vector<std::unique_ptr<Strided>> outgoing;
  for (int k = 0; k < messages; ++k) {
    if (sends()) {
      outgoing.push_back(std::make_unique<Strided>(blocks, k));
      MPI_Isend(outgoing.back()->memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(k)]);
    }
  }
  if (sends()) {
    MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  } else {
    int wrong = 0;
    for (int k = 0; k < messages; ++k) {
      Ints incoming(std::vector<int>(message.values.size(), -1), true);
      const bool is_short = k % 3 == 1;
      const int code =
          is_short ? MPI_Recv(incoming.data(), blocks, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                   : MPI_Recv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT_EQ(is_short ? MPI_ERR_TRUNCATE : MPI_SUCCESS, error_class(code));
      if (!is_short) wrong += incoming.values() != arrived(Strided(blocks, k).packed(), message.values.size());
    }
    EXPECT_EQ(0, wrong);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int times = 0; times < 4; ++times) pass(blocks, send, receive);
}

}  // namespace
}  // namespace gapless::test

// Messages between two processes of a node that are too long for slots: through a ring of shared pages, which the
// sender packs into while the receiver unpacks. The right bytes and status in every kind of call, and by statistics
// that they really went that way.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// Is gapless under this test, and told to use rings?
bool uses_rings() { return is_told_to_use("direct"); }

/// Packed, these are a section more than slots have room for, and many sections and a part of one.
const std::vector<int> long_block_counts{(1 << 17) + 1, 1'000'001};

std::vector<int> arrived(const Strided& message, int blocks) {
  return placed(std::vector<int>(message.values.size(), -1), message.packed(blocks), length, stride);
}

void answer() {
  if (sends()) MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!sends()) MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
}

class Rings : public testing::Test {
 protected:
  /// The first message calls for attention, and one after that asks whether the receiver can map the sender's pages.
  Rings() {
    MPI_Barrier(MPI_COMM_WORLD);
    const int blocks = long_block_counts.front();
    const Strided message(blocks);
    std::vector<int> incoming(message.values.size());
    for (int times = 0; times < 4 && has_partner(); ++times) {
      MPI_Sendrecv(message.values.data(), 1, message.type, partner(), tag, incoming.data(), 1, message.type, partner(),
                   tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }

  template <class Messages>
  static void expect_rings(unsigned count, const Messages& messages) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    const std::uint64_t before = direct_messages();
    messages();
    if (uses_rings()) {
      EXPECT_EQ(before + count, direct_messages());
    }
  }

  const ReturnErrors errors_{MPI_COMM_WORLD};
};

TEST_F(Rings, MessagesInEveryKindOfCall) {
  for (const int blocks : long_block_counts) {
    SCOPED_TRACE(std::to_string(blocks) + " blocks");
    expect_rings(4, [&] {
      pass(blocks, send, receive);
      pass(blocks, send_by_request, receive_by_request);
      pass(blocks, send_persistently, receive_persistently);
      pass(blocks, send, [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
        MPI_Message matched;
        MPI_Mprobe(from, tag, communicator, &matched, status);
        MPI_Mrecv(memory, 1, type, &matched, status);
      });
    });
  }
}

/// Where nothing is forced, and headers are spoken, the model chooses them once the datatype is analysed.
TEST_F(Rings, AreChosenWhereTheyAreFaster) {
  if (!has_partner()) return;
  const int blocks = long_block_counts.back();
  const Strided message(blocks);
  const std::uint64_t before = direct_messages();
  std::vector<int> incoming(message.values.size());
  for (int times = 0; times < 20; ++times) {
    incoming.assign(incoming.size(), -1);
    if (sends()) send(message.values.data(), message.type, MPI_COMM_WORLD, partner());
    if (!sends()) MPI_Recv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    answer();
    EXPECT_TRUE(sends() || arrived(message, blocks) == incoming) << times;
  }
  if (under_gapless()) {
    EXPECT_EQ(may_choose_slots() || uses_rings(), direct_messages() > before);
  }
}

TEST_F(Rings, BothWaysAtOnce) {
  const int blocks = long_block_counts.back();
  const Strided message(blocks);
  expect_rings(4, [&] {
    std::vector<int> incoming(message.values.size(), -1);
    MPI_Sendrecv(message.values.data(), 1, message.type, partner(), tag, incoming.data(), 1, message.type, partner(),
                 tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(arrived(message, blocks) == incoming);
    incoming.assign(incoming.size(), -1);
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_TRUE(arrived(message, blocks) == incoming);
  });
}

TEST_F(Rings, ContiguousReceives) {
  const int blocks = long_block_counts.back();
  const Strided message(blocks);
  expect_rings(1, [&] { pass_to_contiguous(message.values.data(), message.type, message.packed(blocks)); });
}

TEST_F(Rings, TruncatedOnesLeaveTheMemoryAsItIs) {
  const int blocks = long_block_counts.back();
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const Strided message(blocks);
  pass_truncated(message.values.data(), message.type, blocks, uses_rings());
  expect_rings(1, [&] { pass(blocks, send, receive); });
}

/// More than there is memory for: some go another way, in order.
TEST_F(Rings, ManyAtOnceArriveInOrder) {
  constexpr int blocks = (1 << 17) + 1, messages = 24;
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const Strided message(blocks);
  const std::uint64_t before = direct_messages();
  std::vector<std::vector<int>> memory;
  std::vector<MPI_Request> requests(messages);
  for (int k = 0; k < messages; ++k) {
    memory.push_back(sends() ? message.values : std::vector<int>(message.values.size(), -1));
    if (sends()) {
      memory.back()[0] = k;
      MPI_Isend(memory.back().data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &requests[memory.size() - 1]);
    } else {
      MPI_Irecv(memory.back().data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &requests[memory.size() - 1]);
    }
  }
  MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  std::vector<int> wanted = arrived(message, blocks);
  for (int k = 0; k < messages && !sends(); ++k) {
    wanted[0] = k;
    EXPECT_TRUE(wanted == memory[static_cast<std::size_t>(k)]) << "message " << k;
  }
  if (uses_rings()) {
    EXPECT_GT(direct_messages(), before);
    EXPECT_LE(direct_messages(), before + messages);
  }
}

/// A receiver may be in a barrier that waits for the sender. What the program writes to its memory after its send has
/// returned is not received. The peer is then left alone for some messages.
TEST_F(Rings, WhatNobodyFetchesIsCopiedOut) {
  const int blocks = long_block_counts.back();
  if (has_partner() && size() == 2) {
    Strided message(blocks);
    const std::vector<int> wanted = arrived(message, blocks);
    std::vector<int> incoming(message.values.size(), -1);
    const std::uint64_t copied = copied_out_of_rings();
    MPI_Request request = MPI_REQUEST_NULL;
    if (!sends()) MPI_Irecv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    if (sends()) send(message.values.data(), message.type, MPI_COMM_WORLD, partner());
    message.values.assign(message.values.size(), 7);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_TRUE(sends() || wanted == incoming);
    if (uses_rings() && sends()) {
      EXPECT_EQ(copied + 1, copied_out_of_rings());
    }
  }
  expect_rings(1, [&] { pass(blocks, send, receive); });
}

TEST_F(Rings, DatatypesMayBeFreedMeanwhile) {
  const int blocks = long_block_counts.back();
  expect_rings(1, [&] {
    pass(
        blocks,
        [](const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
          MPI_Datatype copy;
          MPI_Type_dup(type, &copy);
          MPI_Request request;
          MPI_Isend(memory, 1, copy, to, tag, communicator, &request);
          MPI_Type_free(&copy);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        },
        receive_by_request);
  });
}

}  // namespace
}  // namespace gapless::test

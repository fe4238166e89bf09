// The first header that a process gets, and the first ones after many messages that were none. These tests run before
// the others of their program, for a process gives its attention where headers have come lately.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int blocks = 1000, times = 100;

std::vector<int> arrived(const Strided& message, int of_blocks = blocks) {
  return placed(std::vector<int>(message.values.size(), -1), message.packed(of_blocks), length, stride);
}

/// Messages one after another, each answered before the next.
void pass_many(const Strided& message, int count = times) {
  for (int k = 0; k < count; ++k) {
    if (sends()) {
      send(message.values.data(), message.type, MPI_COMM_WORLD, partner());
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      std::vector<int> incoming(message.values.size(), -1);
      MPI_Status status{};
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), &status);
      expect_message(status, message.type, blocks, partner());
      EXPECT_TRUE(incoming == arrived(message));
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
    }
  }
}

/// A receive that is under way when a peer first calls gets no header, however long that lasts, and no other does.
TEST(Attention, IsNotGivenWhileTheLibraryReceives) {
  if (!has_partner()) return;
  const Strided message(blocks);
  const std::uint64_t before = slots_messages();
  if (may_choose_slots()) {
    EXPECT_EQ(0U, before) << "this test must be the first one";
  }
  constexpr int early = tag + 1;
  // A datatype that is not analysed yet is the library's, whatever the model says of it later. Beside a GPU it is so
  // for short messages alone.
  constexpr int few = 100;
  const Strided sent_early(few), fresh(few);
  std::vector<int> incoming(fresh.values.size(), -1);
  MPI_Request request = MPI_REQUEST_NULL;
  // The sender waits until the receive is under way.
  constexpr int is_under_way = early + 1;
  if (sends()) {
    MPI_Recv(nullptr, 0, MPI_INT, partner(), is_under_way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Irecv(incoming.data(), 1, fresh.type, partner(), early, MPI_COMM_WORLD, &request);
    MPI_Send(nullptr, 0, MPI_INT, partner(), is_under_way, MPI_COMM_WORLD);
  }
  pass_many(message);
  if (may_choose_slots()) {
    EXPECT_EQ(before, slots_messages());
  }
  if (sends()) {
    MPI_Send(sent_early.values.data(), 1, sent_early.type, partner(), early, MPI_COMM_WORLD);
  } else {
    MPI_Status status{};
    MPI_Wait(&request, &status);
    EXPECT_EQ(early, status.MPI_TAG);
    EXPECT_TRUE(incoming == arrived(fresh, few));
  }
  pass_many(message);
}

TEST(Attention, IsGivenOnceItHasArrived) {
  if (!has_partner()) return;
  const Strided message(blocks);
  const std::uint64_t before = slots_messages();
  pass_many(message);
  if (may_choose_slots()) {
    EXPECT_LT(before, slots_messages());
  }
}

/// Contiguous messages that might be headers, some under way at a time.
void pass_contiguous(int windows) {
  constexpr int window = 16, count = 256;
  std::vector<std::vector<int>> values(window, std::vector<int>(count));
  std::vector<MPI_Request> requests(window);
  for (int k = 0; k < windows; ++k) {
    for (int i = 0; i < window; ++i) {
      auto& each = values[static_cast<std::size_t>(i)];
      MPI_Request* const request = &requests[static_cast<std::size_t>(i)];
      each.assign(count, sends() ? window * k + i : -1);
      if (sends()) {
        MPI_Isend(each.data(), count, MPI_INT, partner(), tag, MPI_COMM_WORLD, request);
      } else {
        MPI_Irecv(each.data(), count, MPI_INT, partner(), tag, MPI_COMM_WORLD, request);
      }
    }
    MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < window; ++i)
      EXPECT_EQ(std::vector<int>(count, window * k + i), values[static_cast<std::size_t>(i)]);
  }
}

/// Many messages without a header: the next that would go by one finds no attention, and calls for it again.
TEST(Attention, IsTakenBackWhileNoHeaderComes) {
  if (!has_partner()) return;
  const Strided message(blocks);
  for (int round = 0; round < 5; ++round) {
    pass_contiguous(160);
    MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag, nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    const std::uint64_t before = slots_messages();
    pass_many(message, 1);
    if (may_choose_slots()) {
      EXPECT_EQ(before, slots_messages());
    }
    pass_many(message);
    if (may_choose_slots()) {
      EXPECT_LE(before + times / 2, slots_messages());
    }
  }
}

/// The same of a receive whose datatype is known, and that is the library's by choice.
TEST(Attention, IsNotGivenWhileALeftAloneReceiveIsUnderWay) {
  if (!has_partner()) return;
  const Strided message(blocks);
  constexpr int rows = 2, row = 128, early = tag + 1, is_under_way = early + 1;
  const Owned type(strided(rows, row, 2 * row));
  std::vector<int> incoming(2 * rows * row, -1);
  const std::vector<int> outgoing = counting(incoming.size(), 5);
  MPI_Request request = MPI_REQUEST_NULL;
  // A persistent request has its datatype analysed at once.
  MPI_Recv_init(incoming.data(), 1, type, MPI_PROC_NULL, early, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  pass_contiguous(160);  // attention is taken back
  const std::uint64_t before = slots_messages(), looked_at = receives_looked_at();
  if (sends()) {
    MPI_Recv(nullptr, 0, MPI_INT, partner(), is_under_way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Irecv(incoming.data(), 1, type, partner(), early, MPI_COMM_WORLD, &request);
    MPI_Send(nullptr, 0, MPI_INT, partner(), is_under_way, MPI_COMM_WORLD);
    if (may_choose_slots()) {
      EXPECT_LT(looked_at, receives_looked_at());
    }
  }
  pass_many(message);
  if (may_choose_slots()) {
    EXPECT_EQ(before, slots_messages());
  }
  if (sends()) {
    MPI_Send(outgoing.data(), 1, type, partner(), early, MPI_COMM_WORLD);
  } else {
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    const std::vector<int> packed = picked(outgoing, rows, row, 2 * row);
    EXPECT_TRUE(incoming == placed(std::vector<int>(incoming.size(), -1), packed, row, 2 * row));
  }
  pass_many(message);
  if (may_choose_slots()) {
    EXPECT_LT(before, slots_messages());
  }
}

}  // namespace
}  // namespace gapless::test

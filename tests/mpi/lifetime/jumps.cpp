// Error handlers that leave the call by longjmp, as handlers of interpreters and frameworks do: the calls that they
// leave keep no memory for good, and later messages are right.

#include "support/jumps.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

enum class Call { send, receive, exchange, broadcast };

/// A call with a rank that the communicator does not have, of 40000 bytes in columns.
void make_mistake(Call call, std::vector<int>& memory, MPI_Datatype type, MPI_Comm communicator) {
  constexpr int nobody = 5, tag = 0;
  switch (call) {
    case Call::send:
      MPI_Send(memory.data(), 1, type, nobody, tag, communicator);
      break;
    case Call::receive:
      MPI_Recv(memory.data(), 1, type, nobody, tag, communicator, MPI_STATUS_IGNORE);
      break;
    case Call::exchange:
      MPI_Sendrecv(memory.data(), 1, type, nobody, tag, memory.data() + 1, 1, type, nobody, tag, communicator,
                   MPI_STATUS_IGNORE);
      break;
    case Call::broadcast:
      MPI_Bcast(memory.data(), 1, type, nobody, communicator);
      break;
  }
}

/// The same, some frames deeper in the stack.
[[gnu::noinline]] void make_mistake_below(int depth, Call call, std::vector<int>& memory, MPI_Datatype type,
                                          MPI_Comm communicator) {
  volatile char frame[300];
  frame[0] = static_cast<char>(depth);
  if (depth == 0) {
    make_mistake(call, memory, type, communicator);
  } else {
    make_mistake_below(depth - 1, call, memory, type, communicator);
  }
  frame[1] = frame[0];
}

std::size_t allocated_bytes() {
  const auto information = mallinfo2();
  return information.uordblks + information.hblkhd;
}

constexpr int rows = 10000;

bool goes_round(MPI_Datatype type, int first) {
  std::vector<int> out = counting(2 * rows, first), in(out.size(), -1);
  MPI_Sendrecv(out.data(), 1, type, 0, 1, in.data(), 1, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != (i % 2 == 0 ? out[i] : -1)) return false;
  }
  return true;
}

TEST(Jumps, OutOfErrorHandlersKeepNoMemory) {
  const Owned type(strided(rows, 1, 2));
  const WithHandler communicator(MPI_COMM_SELF, jump);
  std::vector<int> memory(2 * rows + 1, 7);
  constexpr int times = 10000, warm_up = 100;
  // What lives across a jump must not be in a register.
  static int number, round, wrong = 0;
  static std::size_t before;
  for (number = 0; number < 4; ++number) {
    const auto call = static_cast<Call>(number);
    jumps = 0;
    for (round = 0; round < times; ++round) {
      if (round == warm_up) before = allocated_bytes();
      if (setjmp(landing) == 0) make_mistake_below(round % 3, call, memory, type, communicator);
      if (round % 1000 == 0) wrong += !goes_round(type, round);
    }
    EXPECT_EQ(times, jumps);
    EXPECT_EQ(0, wrong);
    const std::size_t after = allocated_bytes(), kept = after > before ? after - before : 0;
    EXPECT_LT(kept, std::size_t{8} << 20) << "of call " << number;
  }
}

/// `count` times the datatype to this process itself.
void send(MPI_Comm communicator, const std::vector<int>& out, int count, MPI_Datatype type) {
  MPI_Request request;
  MPI_Isend(out.data(), count, type, 0, 5, communicator, &request);
  MPI_Request_free(&request);
}

/// A persistent receive goes on as before, once its handler has left the call that completed or started it.
TEST(Jumps, OutOfPersistentRequestsLeaveThemUsable) {
  const Owned type(strided(rows, 1, 2));
  const WithHandler communicator(MPI_COMM_SELF, jump);
  const HandlerOfWorldAndSelf world(jump);
  static std::vector<int> in(2 * rows);
  static const std::vector<int> out = counting(4 * rows);
  static MPI_Request request;
  static int round;
  const auto expect_one = [] {
    in.assign(in.size(), -1);
    MPI_Start(&request);
  };
  MPI_Recv_init(in.data(), 1, type, 0, 5, communicator, &request);
  for (round = 0; round < 3; ++round) {
    jumps = 0;
    expect_one();
    send(communicator, out, 2, type);  // too long
    if (setjmp(landing) == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(1, jumps);
    expect_one();
    if (setjmp(landing) == 0) MPI_Start(&request);  // active already: some libraries say so
    send(communicator, out, 1, type);
    if (setjmp(landing) == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(placed(std::vector<int>(2 * rows, -1), picked(out, rows, 1, 2), 1, 2), in);
  }
  MPI_Request_free(&request);
}

/// The library ends the request of a receive that is too short for its message, and a jump leaves the call that waits.
void jump_out_of_waiting(MPI_Datatype type, std::vector<int>& in, const std::vector<int>& out, MPI_Comm communicator) {
  static MPI_Request request;
  if (setjmp(landing) != 0) return;
  MPI_Irecv(in.data(), 1, type, 0, 5, communicator, &request);
  send(communicator, out, 2, type);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ADD_FAILURE() << "The handler was not called.";
}

/// The next requests may have the handle of the one that was left.
TEST(Jumps, OutOfWaitLeaveTheHandleToOthers) {
  constexpr int few = 10, tag_of_few = 7, tag_of_many = 8;
  const Owned type(strided(rows, 1, 2));
  const WithHandler communicator(MPI_COMM_SELF, jump);
  const HandlerOfWorldAndSelf world(jump);
  std::vector<int> wasted(2 * rows), out(4 * rows), many(2 * rows), x(few), y(few);
  for (int round = 0; round < 20; ++round) {
    jump_out_of_waiting(type, wasted, out, communicator);
    std::array<MPI_Request, 2> sends, receives;
    MPI_Send_init(x.data(), few, MPI_INT, 0, tag_of_few, communicator, &sends[0]);
    MPI_Send_init(out.data(), 1, type, 0, tag_of_many, communicator, &sends[1]);
    std::ranges::copy(counting(few, round), x.begin());
    std::ranges::copy(counting(out.size(), 1000 * round), out.begin());
    std::ranges::fill(many, -1);
    MPI_Irecv(y.data(), few, MPI_INT, 0, tag_of_few, communicator, &receives[0]);
    MPI_Irecv(many.data(), 1, type, 0, tag_of_many, communicator, &receives[1]);
    MPI_Startall(2, sends.data());
    MPI_Waitall(2, receives.data(), MPI_STATUSES_IGNORE);
    MPI_Waitall(2, sends.data(), MPI_STATUSES_IGNORE);
    EXPECT_EQ(x, y);
    EXPECT_EQ(placed(std::vector<int>(2 * rows, -1), picked(out, rows, 1, 2), 1, 2), many);
    for (MPI_Request& request : sends) MPI_Request_free(&request);
  }
}

void jump_out_of_freeing(MPI_Datatype mistaken) {
  const HandlerOfWorldAndSelf world(jump);
  static MPI_Datatype freed;
  freed = mistaken;
  if (setjmp(landing) == 0) MPI_Type_free(&freed);
}

/// Datatypes that are made after the call was left are gapless's as others are: after the mistaken free of a datatype
/// that gapless knows, of one that it does not know, and of none.
TEST(Jumps, OutOfFreeingDatatypes) {
  std::vector<int> memory(rows), into(rows);  // so that gapless knows MPI_INT
  MPI_Sendrecv(memory.data(), rows, MPI_INT, 0, 1, into.data(), rows, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (const MPI_Datatype mistaken : {MPI_INT, MPI_LONG_DOUBLE, MPI_DATATYPE_NULL}) {
    jumps = 0;
    jump_out_of_freeing(mistaken);
    EXPECT_EQ(1, jumps);
    const std::uint64_t before = analyses();
    const Owned type(strided(rows, 1, 2));
    EXPECT_TRUE(goes_round(type, 3));
    EXPECT_TRUE(!is_everything_packed() || analyses() > before);
  }
}

template <std::size_t requests>
void jump_out_of_waitall(std::array<MPI_Request, requests>& list) {
  const HandlerOfWorldAndSelf leaves(jump);
  if (setjmp(landing) == 0) MPI_Waitall(list.size(), list.data(), MPI_STATUSES_IGNORE);
}

/// The requests of a persistent exchange are completed together with a receive that is too short for its message. While
/// the library is asked, the list may have another request of the same message, and the handler leaves it there.
TEST(Jumps, OutOfWaitallLeavePersistentRequestsUsable) {
  constexpr int rounds = 200, rows = 2048, row = 3, gap = 5, tag = 1, long_tag = 2;
  const int to = (rank() + 1) % size(), from = (rank() + size() - 1) % size();
  const Owned type(strided(rows, row, row + gap));
  std::vector<int> mine(static_cast<std::size_t>(rows) * (row + gap)), theirs(mine.size()), scratch(mine.size());
  std::array<MPI_Request, 2> requests;
  MPI_Recv_init(theirs.data(), 1, type, from, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(mine.data(), 1, type, to, tag, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request sending;
    std::array<MPI_Request, 3> list{requests[0], requests[1], MPI_REQUEST_NULL};
    MPI_Irecv(scratch.data(), 1, MPI_INT, from, long_tag, MPI_COMM_WORLD, &list[2]);
    MPI_Startall(2, list.data());
    MPI_Isend(mine.data(), 2, MPI_INT, to, long_tag, MPI_COMM_WORLD, &sending);
    jump_out_of_waitall(list);
    for (MPI_Request& request : requests) EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&sending, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);

    // The next two exchanges are started by one handle, and completed by the one that was left. Two, for all that is
    // tried goes one way 16 times.
    for (const int first : {1000 * round, 1000 * round + 500}) {
      std::ranges::copy(counting(mine.size(), 1000000 * rank() + first), mine.begin());
      std::ranges::fill(theirs, -1);
      EXPECT_EQ(MPI_SUCCESS, MPI_Startall(2, requests.data()));
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&list[0], MPI_STATUS_IGNORE));
      const std::vector<int> sent = counting(mine.size(), 1000000 * from + first);
      for (std::size_t i = 0; i < theirs.size(); ++i)
        ASSERT_EQ(i % (row + gap) < row ? sent[i] : -1, theirs[i]) << "first " << first << ", int " << i;
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE));
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

}  // namespace
}  // namespace gapless::test

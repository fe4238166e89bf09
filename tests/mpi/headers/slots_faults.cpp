// Slots of messages that come to no good end: truncated, cancelled, never received, or received long after.

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "headers/killed_peers.hpp"
#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/cancelled.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// What is too long is an error of the receiver, and its slots are free again.
TEST(SlotsFaults, Truncation) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  constexpr int blocks = 20'000;
  const Strided message(blocks);
  const Owned half(strided(blocks / 2, length, stride));
  for (int times = 0; times < 40; ++times) {
    if (sends()) {
      MPI_Send(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD);
    } else {
      std::vector<int> incoming(message.values.size(), -1);
      int code = MPI_SUCCESS;
      if (times % 2 == 0) {
        code = MPI_Recv(incoming.data(), 1, half, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Request request;
        MPI_Irecv(incoming.data(), blocks, MPI_INT, partner(), tag, MPI_COMM_WORLD, &request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  pass(131'072, send, receive);
}

/// A call that the library refuses has sent nothing, and its slots are free again.
TEST(SlotsFaults, RefusedExchanges) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  const Strided message(1000);
  constexpr int more_than_there_are_slots = 80;
  for (int times = 0; sends() && times < more_than_there_are_slots; ++times) {
    int never = 0;
    const int code = MPI_Sendrecv(message.values.data(), 1, message.type, partner(), tag, &never, 1, MPI_INT, size(),
                                  tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(MPI_ERR_RANK, error_class(code));
  }
  pass(1000, send, receive);
}

int told = 0;
void tell(MPI_Comm*, int*, ...) { ++told; }

/// Only the communicator of the message that is too long is told, and the others' statuses say that they are well.
TEST(SlotsFaults, OneOfSeveralThatIsTooLong) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int blocks = 20'000;
  const ReturnErrors world(MPI_COMM_WORLD), self(MPI_COMM_SELF);  // what MPICH tells of statuses
  const Strided message(blocks);
  const Owned half(strided(blocks / 2, length, stride));
  MPI_Comm first, second, pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank() / 2, 0, &pair);
  MPI_Comm_dup(pair, &first);
  MPI_Comm_dup(pair, &second);
  MPI_Errhandler counts;
  MPI_Comm_create_errhandler(tell, &counts);
  MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(second, counts);
  const int peer = rank(pair) ^ 1;
  if (sends()) {
    for (const MPI_Comm communicator : {first, second})
      MPI_Send(message.values.data(), 1, message.type, peer, tag, communicator);
  } else {
    std::vector<int> short_one(message.values.size(), -1), good = short_one;
    std::array<MPI_Request, 2> requests;
    std::array<MPI_Status, 2> statuses;
    for (MPI_Status& status : statuses) status.MPI_ERROR = 77;
    MPI_Irecv(short_one.data(), 1, half, peer, tag, first, &requests[0]);
    MPI_Irecv(good.data(), 1, message.type, peer, tag, second, &requests[1]);
    EXPECT_EQ(MPI_ERR_IN_STATUS, error_class(MPI_Waitall(2, requests.data(), statuses.data())));
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(statuses[0].MPI_ERROR));
    // A library may return before all are complete, and says so.
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    } else {
      EXPECT_EQ(MPI_SUCCESS, statuses[1].MPI_ERROR);
    }
    EXPECT_TRUE(placed(std::vector<int>(good.size(), -1), message.packed(blocks), length, stride) == good);
    EXPECT_EQ(0, told);
  }
  MPI_Errhandler_free(&counts);
  for (MPI_Comm* each : {&first, &second, &pair}) MPI_Comm_free(each);
}

/// Messages that nobody receives yet take all slots, and then go packed: nothing waits, and all arrive in order.
TEST(SlotsFaults, UnexpectedMessagesPileUp) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int messages = 100'000, at_once = 1000, blocks = 128;
  Strided message(blocks);
  std::vector<MPI_Request> requests(at_once);
  const std::uint64_t before = slots_messages();
  if (sends()) {
    std::vector<std::vector<int>> outgoing(at_once, message.values);
    for (int k = 0; k < messages; ++k) {
      const auto i = static_cast<std::size_t>(k % at_once);
      outgoing[i][0] = k;
      MPI_Isend(outgoing[i].data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &requests[i]);
      // They are short: the library keeps them, and no receive is needed.
      if (i + 1 == at_once) MPI_Waitall(at_once, requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    if (uses_slots()) {
      EXPECT_EQ(before + 64, slots_messages());
    }
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int k = 0; k < messages; ++k) {
      std::vector<int> incoming(message.values.size(), -1);
      MPI_Recv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      message.values[0] = k;
      wrong += incoming != placed(std::vector<int>(incoming.size(), -1), message.packed(blocks), length, stride);
    }
    EXPECT_EQ(0, wrong);
  }
}

/// A flag in memory that all processes have.
class SharedFlag {
 public:
  SharedFlag() {
    int* own = nullptr;
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window_);
    *own = 0;
    MPI_Win_shared_query(window_, rank() & ~1, &bytes, &unit, &flag_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~SharedFlag() { MPI_Win_free(&window_); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  void set() { std::atomic_ref(*flag_).store(1); }
  void wait() {
    while (std::atomic_ref(*flag_).load() == 0) ::usleep(1000);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  int* flag_ = nullptr;
};

/// The sender's calls that wait for nobody, while its receiver takes none of many messages.
void ask_without_waiting(MPI_Request& sending) {
  int index = 0, flag = 0, number = 0;
  std::array<int, 2> indices{};
  EXPECT_EQ(MPI_SUCCESS, MPI_Request_get_status(sending, &flag, MPI_STATUS_IGNORE));
  const int token = 1;
  int received = 0;
  std::array<MPI_Request, 2> requests{sending, MPI_REQUEST_NULL};
  for (const bool any : {true, false}) {
    MPI_Irecv(&received, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &requests[1]);
    MPI_Send(&token, 1, MPI_INT, 0, tag, MPI_COMM_SELF);
    // The send may be complete as well.
    while (requests[1] != MPI_REQUEST_NULL) {
      if (any) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(2, requests.data(), &index, MPI_STATUS_IGNORE));
        EXPECT_NE(MPI_UNDEFINED, index);
      } else {
        EXPECT_EQ(MPI_SUCCESS, MPI_Waitsome(2, requests.data(), &number, indices.data(), MPI_STATUSES_IGNORE));
        EXPECT_LE(1, number);
      }
    }
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Testany(1, &sending, &index, &flag, MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_Testsome(1, &sending, &number, indices.data(), MPI_STATUSES_IGNORE));
}

/// The library may be full of messages when it is given the header of a persistent send.
TEST(SlotsFaults, PersistentSendsBehindManyMessages) {
  constexpr int messages = 3000, bytes = 1000, blocks = 1000;
  SharedFlag asked;
  if (!has_partner()) return;
  const Strided message(blocks);
  const std::uint64_t before = slots_messages();
  std::vector<char> short_one(bytes);
  std::vector<MPI_Request> others(messages);
  std::vector<int> incoming(message.values.size(), -1);
  MPI_Request request;
  if (sends()) {
    MPI_Send_init(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
  } else {
    MPI_Recv_init(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
  }
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  std::fill(incoming.begin(), incoming.end(), -1);
  if (sends()) {
    for (MPI_Request& other : others)
      MPI_Isend(short_one.data(), bytes, MPI_BYTE, partner(), tag + 1, MPI_COMM_WORLD, &other);
    MPI_Start(&request);
    ask_without_waiting(request);
    asked.set();
    MPI_Waitall(messages, others.data(), MPI_STATUSES_IGNORE);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    asked.wait();
    for (int k = 0; k < messages; ++k)
      MPI_Recv(short_one.data(), bytes, MPI_BYTE, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), message.packed(blocks), length, stride) == incoming);
  }
  MPI_Request_free(&request);
  if (uses_slots()) {
    EXPECT_LE(before + rounds, slots_messages());
  }
}

TEST(SlotsFaults, CancelledReceivesAndSends) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const Strided message(1000);
  std::vector<int> incoming(message.values.size(), -1);
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  MPI_Irecv(incoming.data(), 1, message.type, partner(), tag + 2, MPI_COMM_WORLD, &request);
  EXPECT_NE(0, is_cancelled(&request));
  EXPECT_EQ(std::vector<int>(incoming.size(), -1), incoming);
  // Whether a send is cancelled, the sender says.
  if (sends()) {
    MPI_Isend(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    flag = is_cancelled(&request);
    MPI_Send(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (flag == 0) {
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), &status);
      expect_message(status, message.type, 1000, partner());
    }
  }
}

/// A message by slots, and before it `lost` that end in receives which are too short for a header.
void lose(int lost, int room, bool nonblocking, MPI_Datatype received = MPI_INT) {
  const Strided message(1000);
  std::vector<int> incoming(message.values.size(), -1);
  for (int k = 0; k < lost; ++k) {
    if (sends()) {
      MPI_Send(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD);
      continue;
    }
    int code = MPI_SUCCESS;
    if (nonblocking) {
      MPI_Request request;
      MPI_Irecv(incoming.data(), room, received, partner(), tag, MPI_COMM_WORLD, &request);
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      code = MPI_Recv(incoming.data(), room, received, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code));
  }
  pass(1000, send, receive, MPI_COMM_WORLD, -1);
}

/// The library takes the header for the message, and gapless does not hear of it: the slots come back all the same.
TEST(SlotsFaults, ReceivesTooShortForAHeader) {
  const ReturnErrors world(MPI_COMM_WORLD);
  for (int times = 0; times < 20; ++times) {
    for (const int room : {0, 1, 30}) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (has_partner()) lose(5, room, times % 2 == 1);
    }
  }
  for (int times = 0; times < 70; ++times) pass(1000, send, receive);
}

TEST(SlotsFaults, ReceivesOfDatatypesWithoutBytes) {
  if (!uses_slots()) GTEST_SKIP() << "MPICH divides by zero where a short message comes for such a datatype";
  const ReturnErrors world(MPI_COMM_WORLD);
  MPI_Datatype made;
  MPI_Type_vector(0, 1, 2, MPI_INT, &made);
  const Owned nothing(made);
  for (int times = 0; times < 20; ++times) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (has_partner()) lose(5, 3, times % 2 == 1, nothing);
  }
  // The first finds slots short, and the second has the lost ones taken back.
  for (const int blocks : {131'072, 1000}) pass(blocks, send, receive, MPI_COMM_WORLD, -1);
  pass(131'072, send, receive);
}

/// Slots of messages that are received later than younger ones stay theirs: other tags and communicators are other
/// lines, and nobody takes back while a receive is outstanding or a message is matched.
TEST(SlotsFaults, WhatIsNotLostIsNotTakenBack) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(MPI_COMM_WORLD);
  if (has_partner()) {
    constexpr int waiting = 30, blocks = 1000;
    const Strided message(blocks);
    std::vector<std::vector<int>> incoming(3 * waiting, std::vector<int>(message.values.size(), -1));
    std::vector<MPI_Request> requests(waiting);
    std::vector<MPI_Message> matched(waiting);
    const auto numbered = [&](int k) {
      std::vector<int> values = message.values;
      values[0] = k;
      return values;
    };
    if (sends()) {
      std::vector<std::vector<int>> outgoing;
      for (int k = 0; k < 3 * waiting; ++k) outgoing.push_back(numbered(k));
      for (int k = 0; k < waiting; ++k) {
        const auto at = static_cast<std::size_t>(k);
        MPI_Send(outgoing[at].data(), 1, message.type, partner(), 100, other);
        MPI_Send(outgoing[at + waiting].data(), 1, message.type, partner(), tag, other);
        MPI_Send(outgoing[at + 2 * waiting].data(), 1, message.type, partner(), 100, MPI_COMM_WORLD);
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), 101, MPI_COMM_WORLD);
    } else {
      MPI_Recv(nullptr, 0, MPI_INT, partner(), 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const auto into = [&](int k) { return incoming[static_cast<std::size_t>(k)].data(); };
      // The youngest of a line first, as far as that can be: half are matched, and half are posted, before any is
      // looked at.
      for (int k = 0; k < waiting / 2; ++k)
        MPI_Mprobe(partner(), 100, other, &matched[static_cast<std::size_t>(k)], MPI_STATUS_IGNORE);
      for (int k = 0; k < waiting; ++k)
        MPI_Recv(into(k + 2 * waiting), 1, message.type, partner(), 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = waiting / 2; k < waiting; ++k)
        MPI_Recv(into(k), 1, message.type, partner(), 100, other, MPI_STATUS_IGNORE);
      for (int k = 0; k < waiting / 2; ++k)
        MPI_Mrecv(into(k), 1, message.type, &matched[static_cast<std::size_t>(k)], MPI_STATUS_IGNORE);
      for (int k = 0; k < waiting; ++k)
        MPI_Irecv(into(k + waiting), 1, message.type, partner(), tag, other, &requests[static_cast<std::size_t>(k)]);
      for (int k = waiting; k-- > 0;) MPI_Wait(&requests[static_cast<std::size_t>(k)], MPI_STATUS_IGNORE);
      for (int k = 0; k < 3 * waiting; ++k) {
        EXPECT_TRUE(incoming[static_cast<std::size_t>(k)] == placed(std::vector<int>(message.values.size(), -1),
                                                                    picked(numbered(k), blocks, length, stride), length,
                                                                    stride))
            << k;
      }
    }
  }
  MPI_Comm_free(&other);
}

/// A datatype may end as soon as the calls that it is given to return.
TEST(SlotsFaults, DatatypesFreedInFlight) {
  for (const int blocks : {1000, 131'072}) {
    pass(
        blocks,
        [](const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
          MPI_Datatype own;
          MPI_Request request;
          MPI_Type_dup(type, &own);
          MPI_Isend(memory, 1, own, to, tag, communicator, &request);
          MPI_Type_free(&own);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        },
        [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
          MPI_Datatype own;
          MPI_Request request;
          MPI_Type_dup(type, &own);
          MPI_Irecv(memory, 1, own, from, tag, communicator, &request);
          MPI_Type_free(&own);
          MPI_Wait(&request, status);
        });
  }
}

/// A synchronous send is complete when its receive has begun, and not when a probe has found it.
TEST(SlotsFaults, SynchronousSends) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  for (const int blocks : {1000, 20'000}) {
    const Strided message(blocks);
    if (sends()) {
      MPI_Request request;
      int is_complete = 0;
      MPI_Issend(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int times = 0; times < 100; ++times) {
        MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
        ASSERT_EQ(0, is_complete);
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 2, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      std::vector<int> incoming(message.values.size(), -1);
      MPI_Status status;
      MPI_Probe(partner(), tag, MPI_COMM_WORLD, &status);
      expect_message(status, message.type, blocks, partner());
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), &status);
      expect_message(status, message.type, blocks, partner());
      EXPECT_TRUE(incoming == placed(std::vector<int>(incoming.size(), -1), message.packed(blocks), length, stride));
    }
  }
}

/// In a run of its own (killed_peer.sh): the sender dies while it packs, after its header has left, and the receive
/// that waits for the rest ends in an error.
TEST(SlotsFaults, KilledPeer) {
  if (who_dies() != "sender") return;
  constexpr int blocks = 20'000;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const Owned type(strided(blocks, length, stride));
  const std::size_t bytes = (std::size_t{blocks} * stride * sizeof(int) / page + 1) * page;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  const ReturnErrors world(MPI_COMM_WORLD);
  // So a launcher ends those that are left, before it kills them.
  std::signal(SIGTERM, SIG_IGN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (sends()) {
    ASSERT_EQ(0, ::mprotect(static_cast<std::byte*>(memory) + bytes / 2, page, PROT_NONE));
    MPI_Send(memory, 1, type, partner(), tag, MPI_COMM_WORLD);
  } else {
    expect_peer_failure(MPI_Recv(memory, 1, type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (!testing::Test::HasFailure()) survive();
  }
  ADD_FAILURE() << "nobody has died";
}

}  // namespace
}  // namespace gapless::test

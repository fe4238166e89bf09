// Messages between two processes of a node that go by slots: the right bytes and status in every kind of receive, and
// by statistics that they really went that way.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

TEST(Slots, SendToRecv) {
  for (const int blocks : block_counts) pass(blocks, send, receive);
}

TEST(Slots, ShortAndLongMessagesGoOtherWays) {
  for (const int blocks : {1, 59, 60, 61, 127, 200'000}) pass(blocks, send, receive, MPI_COMM_WORLD, 0);
}

/// Where nothing is forced, and headers are spoken, the model chooses them once the datatype is analysed.
TEST(Slots, AreChosenWhereTheyAreFaster) {
  if (!has_partner()) return;
  const Strided message(1000);
  const std::uint64_t before = slots_messages();
  for (int times = 0; times < 100; ++times) {
    if (sends()) {
      send(message.values.data(), message.type, MPI_COMM_WORLD, partner());
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      std::vector<int> incoming(message.values.size(), -1);
      MPI_Status status;
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), &status);
      expect_message(status, message.type, 1000, partner());
      EXPECT_TRUE(incoming == placed(std::vector<int>(incoming.size(), -1), message.packed(1000), length, stride));
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
    }
  }
  if (under_gapless()) {
    EXPECT_EQ(may_choose_slots() || uses_slots(), slots_messages() > before);
  }
}

TEST(Slots, WildcardsMatchHeaders) {
  pass(1000, send, [](void* memory, MPI_Datatype type, MPI_Comm communicator, int, MPI_Status* status) {
    MPI_Recv(memory, 1, type, size() == 2 ? MPI_ANY_SOURCE : partner(), MPI_ANY_TAG, communicator, status);
  });
}

TEST(Slots, NonblockingAndPersistentReceives) {
  for (const int blocks : block_counts) {
    pass(blocks, send_by_request, receive_by_request);
    pass(blocks, send_by_request,
         [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
           MPI_Request request;
           MPI_Irecv(memory, 1, type, from, tag, communicator, &request);
           for (int flag = 0; flag == 0;) MPI_Request_get_status(request, &flag, status);
           int count = 0;
           MPI_Get_count(status, type, &count);
           EXPECT_EQ(1, count);
           for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, status);
         });
    pass(blocks, send_by_request, receive_persistently);
  }
}

TEST(Slots, PersistentSends) {
  for (const int blocks : block_counts) {
    pass(blocks, send_persistently, receive);
    pass(blocks, send_persistently, receive_by_request);
    pass(blocks, send_persistently, receive_persistently);
  }
}

/// Each start sends what the memory holds then, whatever completes it.
TEST(Slots, PersistentSendsAreStartedAgain) {
  constexpr int rounds = 21;
  for (const int blocks : {128, 1000, 20'000}) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) continue;
    Strided message(blocks);
    std::vector<int> incoming(message.values.size());
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) MPI_Send_init(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    const std::uint64_t before = slots_messages();
    for (int round = 0; round < rounds; ++round) {
      std::ranges::copy(counting(message.values.size(), 1000 * round), message.values.begin());
      if (sends()) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
        complete_persistent(&request, round);
        // The program has its memory back.
        std::ranges::fill(message.values, -7);
        // The slots of this message are free again.
        MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        std::ranges::fill(incoming, -1);
        receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
        EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), message.packed(blocks), length, stride) == incoming)
            << round;
        MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
      }
    }
    if (sends()) MPI_Request_free(&request);
    if (uses_slots()) {
      EXPECT_EQ(before + rounds, slots_messages());
    }
  }
}

/// More than there are slots for: the rest goes as packed bytes under the program's own request, in order.
TEST(Slots, PersistentSendsThatFindNoSlots) {
  constexpr int messages = 20, blocks = 32'768;  // 256 KiB each, of 2 MiB
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const Strided message(blocks);
  std::vector<MPI_Request> requests(messages);
  const std::uint64_t before = slots_messages();
  for (int round = 0; round < 2; ++round) {
    if (sends()) {
      std::vector<std::vector<int>> outgoing;
      for (int k = 0; k < messages; ++k) {
        outgoing.push_back(counting(message.values.size(), k));
        MPI_Send_init(outgoing.back().data(), 1, message.type, partner(), tag, MPI_COMM_WORLD,
                      &requests[static_cast<std::size_t>(k)]);
      }
      EXPECT_EQ(MPI_SUCCESS, MPI_Startall(messages, requests.data()));
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
      // Freed while they are under way.
      if (round == 1) {
        for (MPI_Request& request : requests) MPI_Request_free(&request);
      }
      MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (round == 0) {
        for (MPI_Request& request : requests) MPI_Request_free(&request);
      }
    } else {
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < messages; ++k) {
        std::vector<int> incoming(message.values.size(), -1);
        receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
        const std::vector<int> sent = picked(counting(incoming.size(), k), blocks, length, stride);
        EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), sent, length, stride) == incoming) << k;
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 2, MPI_COMM_WORLD);
    }
  }
  if (uses_slots()) {
    EXPECT_LT(before, slots_messages());
    EXPECT_GT(before + 2 * messages, slots_messages());
  }
}

TEST(Slots, ManyRequestsAtOnce) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int messages = 12, blocks = 1500;
  const Strided message(blocks);
  std::vector<std::vector<int>> incoming(messages, std::vector<int>(message.values.size(), -1));
  std::vector<MPI_Request> requests(2 * messages);
  std::vector<MPI_Status> statuses(2 * messages);
  for (const bool receives_first : {true, false}) {
    const std::uint64_t before = slots_messages();
    const auto post = [&](bool receiving) {
      for (int k = 0; k < messages; ++k) {
        auto& memory = incoming[static_cast<std::size_t>(k)];
        if (receiving) {
          MPI_Irecv(memory.data(), 1, message.type, partner(), k, MPI_COMM_WORLD,
                    &requests[static_cast<std::size_t>(k)]);
        } else {
          MPI_Isend(message.values.data(), 1, message.type, partner(), k, MPI_COMM_WORLD,
                    &requests[static_cast<std::size_t>(messages + k)]);
        }
      }
    };
    post(receives_first);
    post(!receives_first);
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * messages, requests.data(), statuses.data()));
    const std::vector<int> wanted =
        placed(std::vector<int>(message.values.size(), -1), message.packed(blocks), length, stride);
    for (std::size_t k = 0; k < messages; ++k) {
      EXPECT_TRUE(incoming[k] == wanted);
      EXPECT_EQ(static_cast<int>(k), statuses[k].MPI_TAG);
    }
    if (uses_slots()) {
      EXPECT_EQ(before + 2 * messages, slots_messages());
    }
  }
}

/// A datatype that gapless does not understand, for it is nested too deeply, may be what a header lands in.
class Deep {
 public:
  explicit Deep(MPI_Datatype of) {
    MPI_Type_dup(of, &type_);
    for (int depth = 0; depth < 120; ++depth) {
      MPI_Datatype outer;
      MPI_Type_dup(type_, &outer);
      MPI_Type_free(&type_);
      type_ = outer;
    }
    MPI_Type_commit(&type_);
  }
  ~Deep() { MPI_Type_free(&type_); }
  Deep(const Deep&) = delete;
  Deep& operator=(const Deep&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_;
};

TEST(Slots, DatatypesThatAreNotUnderstood) {
  const Receive recv = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, 1, Deep(type), from, tag, communicator, status));
  };
  const Receive wait = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    MPI_Request request;
    const Deep deep(type);
    MPI_Irecv(memory, 1, deep, from, tag, communicator, &request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
  };
  const Receive started = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    MPI_Request request;
    const Deep deep(type);
    MPI_Recv_init(memory, 1, deep, from, tag, communicator, &request);
    MPI_Start(&request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
    MPI_Request_free(&request);
  };
  const Receive matched = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    MPI_Message message;
    MPI_Mprobe(from, tag, communicator, &message, MPI_STATUS_IGNORE);
    EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(memory, 1, Deep(type), &message, status));
  };
  // The datatypes are freed before the receives end, and others take their handles.
  const Receive freed = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    MPI_Request request;
    MPI_Irecv(memory, 1, Deep(type), from, tag, communicator, &request);
    const Owned other(strided(3, 1, 2));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
  };
  const Receive freed_before = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from,
                                  MPI_Status* status) {
    MPI_Request request;
    MPI_Recv_init(memory, 1, Deep(type), from, tag, communicator, &request);
    const Owned other(strided(3, 1, 2));
    MPI_Start(&request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
    MPI_Request_free(&request);
  };
  for (const int blocks : {128, 20'000}) {
    for (const Receive& each : {recv, wait, started, matched, freed, freed_before}) pass(blocks, send, each);
  }
  // What is no header is left to the library.
  const Send deep_send = [](const void* memory, MPI_Datatype type, MPI_Comm communicator, int to) {
    MPI_Send(memory, 1, Deep(type), to, tag, communicator);
  };
  for (const int blocks : {59, 1000}) pass(blocks, deep_send, recv, MPI_COMM_WORLD, 0);
}

TEST(Slots, ShortMessagesIntoDatatypesThatAreNotUnderstood) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int blocks = 500, sent = 301;  // ints: the last block is half there
  const Strided message(blocks);
  if (sends()) {
    MPI_Send(message.values.data(), sent, MPI_INT, partner(), tag, MPI_COMM_WORLD);
    return;
  }
  std::vector<int> incoming(message.values.size(), -1);
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Recv(incoming.data(), 1, Deep(message.type), partner(), tag, MPI_COMM_WORLD, &status));
  int count = 0;
  MPI_Get_elements(&status, message.type, &count);
  EXPECT_EQ(sent, count);
  std::vector<int> wanted(message.values.size(), -1);
  for (int k = 0; k < sent; ++k)
    wanted[static_cast<std::size_t>(k / length * stride + k % length)] = message.values[static_cast<std::size_t>(k)];
  EXPECT_TRUE(wanted == incoming);
}

TEST(Slots, ReplacedDatatypesThatAreNotUnderstood) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int blocks = 1000;
  const Strided message(blocks);
  const Deep deep(message.type);
  std::vector<int> mine = message.values, theirs = message.values;
  for (int& value : mine) value += 1000 * rank();
  for (int& value : theirs) value += 1000 * partner();
  std::vector<int> both = mine;
  MPI_Status status;
  MPI_Sendrecv_replace(both.data(), 1, deep, partner(), tag, partner(), tag, MPI_COMM_WORLD, &status);
  expect_message(status, message.type, blocks, partner());
  EXPECT_TRUE(both == placed(mine, picked(theirs, blocks, length, stride), length, stride));
  std::vector<int> incoming(mine.size(), -1);
  MPI_Sendrecv(mine.data(), 1, message.type, partner(), tag, incoming.data(), 1, deep, partner(), tag, MPI_COMM_WORLD,
               &status);
  EXPECT_TRUE(incoming ==
              placed(std::vector<int>(mine.size(), -1), picked(theirs, blocks, length, stride), length, stride));
#if MPI_VERSION >= 4
  MPI_Request request;
  incoming.assign(incoming.size(), -1);
  MPI_Isendrecv(mine.data(), 1, message.type, partner(), tag, incoming.data(), 1, deep, partner(), tag, MPI_COMM_WORLD,
                &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_TRUE(incoming ==
              placed(std::vector<int>(mine.size(), -1), picked(theirs, blocks, length, stride), length, stride));
#endif
}

int times_told = 0;
void tell(MPI_Comm*, int*, ...) { ++times_told; }

/// The handler is told once of a communicator that never was one.
TEST(Slots, HandlersAreToldOnce) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(tell, &handler);
  const std::vector<MPI_Comm> tellers{MPI_COMM_WORLD, MPI_COMM_SELF};
  for (const MPI_Comm each : tellers) MPI_Comm_set_errhandler(each, handler);
  const Strided message(1000);
  const MPI_Comm never{};
  times_told = 0;
  MPI_Send(message.values.data(), 1, message.type, 0, tag, never);
  EXPECT_EQ(1, times_told);
  for (const MPI_Comm each : tellers) {
    MPI_Errhandler now;
    MPI_Comm_get_errhandler(each, &now);
    EXPECT_TRUE(now == handler);
    MPI_Errhandler_free(&now);
    MPI_Comm_set_errhandler(each, MPI_ERRORS_ARE_FATAL);
  }
  MPI_Errhandler_free(&handler);
}

TEST(Slots, BothWaysInOneCall) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  for (const int blocks : block_counts) {
    const Strided message(blocks);
    std::vector<int> mine = message.values;
    for (int& value : mine) value += 1000 * rank();
    const std::vector<int> theirs = [&] {
      std::vector<int> values = message.values;
      for (int& value : values) value += 1000 * partner();
      return picked(values, blocks, length, stride);
    }();
    const std::uint64_t before = slots_messages();
    std::vector<int> incoming(mine.size(), -1);
    MPI_Status status;
    MPI_Sendrecv(mine.data(), 1, message.type, partner(), tag, incoming.data(), 1, message.type, partner(), tag,
                 MPI_COMM_WORLD, &status);
    expect_message(status, message.type, blocks, partner());
    EXPECT_TRUE(incoming == placed(std::vector<int>(mine.size(), -1), theirs, length, stride));
    std::vector<int> both = mine;
    MPI_Sendrecv_replace(both.data(), 1, message.type, partner(), tag, partner(), tag, MPI_COMM_WORLD, &status);
    expect_message(status, message.type, blocks, partner());
    EXPECT_TRUE(both == placed(mine, theirs, length, stride));
    if (uses_slots()) {
      EXPECT_EQ(before + 4, slots_messages());
    }
    // A receiver that replaces contiguous memory.
    std::vector<int> packed = picked(mine, blocks, length, stride);
    if (sends()) {
      MPI_Sendrecv(mine.data(), 1, message.type, partner(), tag, incoming.data(), static_cast<int>(incoming.size()),
                   MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), incoming.begin()));
    } else {
      MPI_Sendrecv_replace(packed.data(), static_cast<int>(packed.size()), MPI_INT, partner(), tag, partner(), tag,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT_TRUE(packed == theirs);
    }
#if MPI_VERSION >= 4
    MPI_Request request;
    incoming.assign(incoming.size(), -1);
    MPI_Isendrecv(mine.data(), 1, message.type, partner(), tag, incoming.data(), 1, message.type, partner(), tag,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_TRUE(incoming == placed(std::vector<int>(mine.size(), -1), theirs, length, stride));
    // MPICH 5.0.2 gives wrong data here by itself.
    if (!uses_slots()) continue;
    both = mine;
    MPI_Isendrecv_replace(both.data(), 1, message.type, partner(), tag, partner(), tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_TRUE(both == placed(mine, theirs, length, stride));
#endif
  }
}

TEST(Slots, OtherCommunicators) {
  MPI_Comm same, reversed;
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  pass(1000, send, receive, same);
  MPI_Comm_free(&same);
  // Partners stay partners where the number of ranks is even.
  if (size() % 2 == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &reversed);
    pass(1000, send, receive, reversed);
    pass(1000, send, receive, reversed);
    MPI_Comm_free(&reversed);
  }
}

TEST(Slots, IntercommunicatorsHaveNoHeaders) {
  if (size() != 2) return;
  MPI_Comm alone, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank(), 0, &alone);
  MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, partner(), 1, &inter);
  const Strided message(1000);
  const std::uint64_t before = slots_messages();
  if (sends()) {
    MPI_Send(message.values.data(), 1, message.type, 0, tag, inter);
  } else {
    std::vector<int> incoming(message.values.size(), -1);
    MPI_Recv(incoming.data(), 1, message.type, 0, tag, inter, MPI_STATUS_IGNORE);
    EXPECT_TRUE(incoming == placed(std::vector<int>(incoming.size(), -1), message.packed(1000), length, stride));
  }
  EXPECT_EQ(before, slots_messages());
  MPI_Comm_free(&inter);
  MPI_Comm_free(&alone);
}

/// A message of a header's length that is none.
TEST(Slots, MessagesOfAHeadersLength) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  std::vector<std::byte> bytes(480, std::byte{42});
  for (int times = 0; times < 3; ++times) {
    if (sends()) {
      MPI_Send(bytes.data(), 480, MPI_BYTE, partner(), tag, MPI_COMM_WORLD);
    } else {
      std::vector<std::byte> incoming(1000, std::byte{1});
      MPI_Status status;
      MPI_Recv(incoming.data(), 1000, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &status);
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      EXPECT_EQ(480, count);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), incoming.begin()));
      EXPECT_EQ(std::byte{1}, incoming[480]);
    }
  }
}

}  // namespace
}  // namespace gapless::test

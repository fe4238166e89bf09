// Messages between GPUs of a node: the right bytes and status in every kind of receive, and by statistics that they
// really went direct, or did not where that is refused.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headers/killed_peers.hpp"
#include "headers/on_gpu/direct_messages.hpp"
#include "support/cancelled.hpp"

namespace gapless::test {
namespace {

TEST_F(Direct, SendToRecv) {
  for (const int blocks : block_counts) pass(blocks, send, receive);
}

TEST_F(Direct, ShortMessagesGoOtherWays) {
  for (const int blocks : {1, 60, 63}) pass(blocks, send, receive, 0);
}

TEST_F(Direct, EveryKindOfReceive) {
  for (const int blocks : block_counts) {
    pass(blocks, send_by_request, receive_by_request);
    pass(blocks, send_by_request,
         [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
           MPI_Request request;
           MPI_Irecv(memory, 1, type, from, tag, communicator, &request);
           for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, status);
         });
    pass(blocks, send_by_request, receive_persistently);
    pass(blocks, send_by_request, [](void* memory, MPI_Datatype type, MPI_Comm communicator, int, MPI_Status* status) {
      MPI_Message found;
      MPI_Mprobe(size() == 2 ? MPI_ANY_SOURCE : partner(), MPI_ANY_TAG, communicator, &found, status);
      int count = 0;
      MPI_Get_count(status, type, &count);
      EXPECT_EQ(1, count);
      MPI_Mrecv(memory, 1, type, &found, status);
    });
    pass(blocks, send_by_request,
         [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
           MPI_Probe(from, tag, communicator, status);
           int count = 0;
           MPI_Get_count(status, type, &count);
           EXPECT_EQ(1, count);
           receive(memory, type, communicator, from, status);
         });
  }
}

/// What `gapless calibrate` measures with: it says of what does not go direct that it cannot be had, at both ends.
TEST_F(Direct, IsMeasured) {
  struct {
    std::int64_t bytes, block, row_blocks;
  } const shape{65'536, 64, 16};
  using Measure = double(const char*, const void*, void*, int, int, int);
  auto* const measure = reinterpret_cast<Measure*>(variant_function("gapless_measure_message"));
  if (measure == nullptr) return;
  constexpr int round_trips = 3;
  Ints on_gpu(std::vector<int>(shape.bytes), true), on_host(std::vector<int>(shape.bytes), false);
  const std::uint64_t before = direct_messages();
  const double ns = measure("direct", &shape, on_gpu.data(), 0, 1, round_trips);
  const std::uint64_t mine = direct_messages() - before;
  const double slots_ns = measure("slots", &shape, on_host.data(), 0, 1, round_trips);
  const double none_ns = measure("direct", &shape, on_host.data(), 0, 1, round_trips);
  // As it was: a measurement forces its scheme, and none afterwards.
  reinterpret_cast<void (*)(const char*)>(core_function("gapless_transfer_force_scheme"))(
      std::getenv("GAPLESS_SCHEME"));
  if (rank() > 1) return;
  EXPECT_EQ(goes_direct(), ns > 0);
  EXPECT_GE(ns, 0);
  EXPECT_EQ(goes_direct() ? 2 * (round_trips + 1) : 0, mine);
  EXPECT_GT(slots_ns, 0);
  EXPECT_EQ(0, none_ns);
}

TEST_F(Direct, PersistentSends) {
  for (const int blocks : block_counts) {
    pass(blocks, send_persistently, receive);
    pass(blocks, send_persistently, receive_persistently);
  }
}

/// Each start sends what the memory holds then, whatever completes it.
TEST_F(Direct, PersistentSendsAreStartedAgain) {
  constexpr int rounds = 14;
  for (const int blocks : {128, 20'000, 163'840}) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) continue;
    Strided message(blocks);
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) MPI_Send_init(message.memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    const std::uint64_t before = direct_messages();
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> values = counting(message.values.size(), 1000 * round);
      if (sends()) {
        message.memory.set(values);
        EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
        complete_persistent(&request, round);
        message.memory.set(std::vector<int>(values.size(), -7));
      } else {
        Ints incoming(std::vector<int>(values.size(), -1), true);
        receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
        EXPECT_TRUE(arrived(picked(values, blocks, length, stride), values.size()) == incoming.values()) << round;
      }
      // The segments of this message are free again.
      if (sends()) MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!sends()) MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    }
    if (sends()) MPI_Request_free(&request);
    EXPECT_EQ(before + (goes_direct() ? rounds : 0), direct_messages());
  }
}

TEST_F(Direct, BothWaysInOneCall) {
  if (!has_partner()) return;
  for (const int blocks : {128, 20'000}) {
    Strided mine(blocks, 1000 * rank());
    const std::vector<int> theirs = Strided(blocks, 1000 * partner()).packed();
    Ints incoming(std::vector<int>(mine.values.size(), -1), true);
    const std::uint64_t before = direct_messages();
    MPI_Status status;
    MPI_Sendrecv(mine.memory.data(), 1, mine.type, partner(), tag, incoming.data(), 1, mine.type, partner(), tag,
                 MPI_COMM_WORLD, &status);
    expect_message(status, mine.type, blocks, partner());
    EXPECT_TRUE(arrived(theirs, mine.values.size()) == incoming.values());
    MPI_Sendrecv_replace(mine.memory.data(), 1, mine.type, partner(), tag, partner(), tag, MPI_COMM_WORLD, &status);
    expect_message(status, mine.type, blocks, partner());
    EXPECT_TRUE(placed(mine.values, theirs, length, stride) == mine.memory.values());
    EXPECT_EQ(before + (goes_direct() ? 4 : 0), direct_messages());
  }
}

TEST_F(Direct, ContiguousEnds) {
  if (!has_partner()) return;
  for (const int blocks : block_counts) {
    for (const bool is_gathered : {false, true}) {
      MPI_Barrier(MPI_COMM_WORLD);
      Strided message(blocks);
      Ints packed(message.packed(), true);
      const auto count = static_cast<int>(blocks * length);
      const std::uint64_t before = direct_messages();
      if (sends() && is_gathered) {
        send(message.memory.data(), message.type, MPI_COMM_WORLD, partner());
      } else if (sends()) {
        MPI_Send(packed.data(), count, MPI_INT, partner(), tag, MPI_COMM_WORLD);
      } else {
        Ints incoming(std::vector<int>(message.values.size(), -1), true);
        MPI_Status status;
        if (is_gathered) {
          MPI_Recv(incoming.data(), count + 1, MPI_INT, partner(), tag, MPI_COMM_WORLD, &status);
        } else {
          receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), &status);
        }
        int got = 0;
        MPI_Get_count(&status, MPI_INT, &got);
        EXPECT_EQ(count, got);
        const std::vector<int> wanted = message.packed();
        std::vector<int> gathered(message.values.size(), -1);
        std::ranges::copy(wanted, gathered.begin());
        EXPECT_TRUE((is_gathered ? gathered : arrived(wanted, gathered.size())) == incoming.values());
      }
      const bool is_librarys = !is_gathered && library_reads_gpu();
      EXPECT_EQ(before + (goes_direct() && !is_librarys ? 1 : 0), direct_messages());
    }
  }
}

/// The sender does not know where the receiver's memory is.
enum class Receiver { strided, contiguous, of_two_blocks };

TEST_F(Direct, ReceiversInHostMemory) {
  if (!has_partner()) return;
  for (const int blocks : block_counts) {
    for (const Receiver receiver : {Receiver::strided, Receiver::contiguous, Receiver::of_two_blocks}) {
      MPI_Barrier(MPI_COMM_WORLD);
      Strided message(blocks);
      const std::uint64_t before = direct_messages();
      if (sends()) {
        send(message.memory.data(), message.type, MPI_COMM_WORLD, partner());
        EXPECT_EQ(before + (goes_direct() ? 1 : 0), direct_messages());
        continue;
      }
      std::vector<int> incoming(message.values.size(), -1);
      const std::vector<int> wanted = message.packed();
      if (receiver == Receiver::of_two_blocks) {
        // The library's own, where nothing is forced: it scatters a header, too.
        const int half = blocks * length / 2;
        const Owned two_blocks(strided(2, half, half + 1));
        receive(incoming.data(), two_blocks, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
        EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), wanted, half, half + 1) == incoming);
      } else if (receiver == Receiver::contiguous) {
        MPI_Recv(incoming.data(), blocks * length, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_TRUE(std::ranges::equal(wanted, std::span(incoming).first(wanted.size())));
      } else {
        receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
        EXPECT_TRUE(arrived(wanted, incoming.size()) == incoming);
      }
    }
  }
}

/// A send that is complete needs nothing of its sender any more: the receiver fetches while that waits elsewhere.
TEST_F(Direct, CompletedSendsLeaveNothingToTheSender) {
  for (const int blocks : {128, 98'304}) {
    MPI_Barrier(MPI_COMM_WORLD);  // the receiver has fetched the last message, whose segments are free
    if (!has_partner()) {
      MPI_Barrier(MPI_COMM_WORLD);
      continue;
    }
    Strided message(blocks);
    Ints incoming(std::vector<int>(message.values.size(), -1), true);
    MPI_Request request;
    const std::uint64_t before = direct_messages();
    // A rendezvous of the library's would wait for the receiver.
    if (sends() && goes_direct()) {
      MPI_Isend(message.memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      // The program has its memory back.
      message.memory.set(std::vector<int>(message.values.size(), -5));
      MPI_Barrier(MPI_COMM_WORLD);
    } else if (sends()) {
      MPI_Isend(message.memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(incoming.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_TRUE(arrived(message.packed(), message.values.size()) == incoming.values());
    }
    EXPECT_EQ(before + (goes_direct() ? 1 : 0), direct_messages());
  }
}

/// Messages that nobody receives yet fill the memory, and then go other ways: nothing waits, and all arrive in order.
TEST_F(Direct, UnexpectedMessagesPileUp) {
  if (!has_partner()) return;
  constexpr int messages = 40, blocks = 8192;  // 64 KiB each
  Strided message(blocks);
  const std::uint64_t before = direct_messages();
  if (sends()) {
    std::vector<MPI_Request> requests(messages);
    std::vector<std::unique_ptr<Strided>> outgoing;
    for (int k = 0; k < messages; ++k) {
      outgoing.push_back(std::make_unique<Strided>(blocks, k));
      MPI_Isend(outgoing.back()->memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(k)]);
    }
    MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    if (goes_direct()) {
      EXPECT_GT(direct_messages(), before + 4);
      EXPECT_LT(direct_messages(), before + messages);
    }
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int k = 0; k < messages; ++k) {
      Ints incoming(std::vector<int>(message.values.size(), -1), true);
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
      wrong += incoming.values() != arrived(Strided(blocks, k).packed(), message.values.size());
    }
    EXPECT_EQ(0, wrong);
  }
}

TEST_F(Direct, ManyRequestsAtOnce) {
  if (!has_partner()) return;
  constexpr int messages = 12, blocks = 1500;
  Strided message(blocks);
  std::vector<std::unique_ptr<Ints>> incoming;
  std::vector<MPI_Request> requests(2 * messages);
  const std::uint64_t before = direct_messages();
  for (int k = 0; k < messages; ++k) {
    incoming.push_back(std::make_unique<Ints>(std::vector<int>(message.values.size(), -1), true));
    MPI_Irecv(incoming.back()->data(), 1, message.type, partner(), k, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(k)]);
  }
  for (int k = 0; k < messages; ++k) {
    MPI_Isend(message.memory.data(), 1, message.type, partner(), k, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(messages + k)]);
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * messages, requests.data(), MPI_STATUSES_IGNORE));
  for (const auto& each : incoming) EXPECT_TRUE(arrived(message.packed(), message.values.size()) == each->values());
  EXPECT_EQ(before + (goes_direct() ? 2 * messages : 0), direct_messages());
}

/// Small sends of one exchange are packed by one launch, and what arrives is unpacked by one. The order to one
/// destination is the program's, whatever goes which way.
TEST_F(Direct, SmallSendsLeaveTogether) {
  if (!has_partner()) return;
  constexpr int messages = 20, blocks = 200;
  std::vector<std::unique_ptr<Strided>> outgoing;
  std::vector<std::unique_ptr<Ints>> incoming;
  std::vector<MPI_Request> requests(2 * messages);
  const int blocks_of_short = 8;  // goes another way
  for (int k = 0; k < messages; ++k) {
    outgoing.push_back(std::make_unique<Strided>(k % 5 == 4 ? blocks_of_short : blocks, 1000 * rank() + k));
    incoming.push_back(std::make_unique<Ints>(std::vector<int>(outgoing.back()->values.size(), -1), true));
    MPI_Irecv(incoming.back()->data(), 1, outgoing.back()->type, partner(), tag, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(k)]);
  }
  MPI_Barrier(size() == 2 ? MPI_COMM_WORLD : MPI_COMM_SELF);
  const bool is_counted = goes_direct() && gpu_fails_on_request();
  const long start = is_counted ? gpu_count("launches") : 0;
  const std::uint64_t before = direct_messages();
  for (int k = 0; k < messages; ++k) {
    Strided& message = *outgoing[static_cast<std::size_t>(k)];
    MPI_Isend(message.memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(messages + k)]);
  }
  if (is_counted) {
    EXPECT_EQ(start, gpu_count("launches"));
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * messages, requests.data(), MPI_STATUSES_IGNORE));
  if (is_counted) {
    EXPECT_GE(start + 4, gpu_count("launches"));
  }
  for (int k = 0; k < messages; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const int sent = static_cast<int>(outgoing[i]->values.size()) / stride;
    EXPECT_TRUE(arrived(Strided(sent, 1000 * partner() + k).packed(), outgoing[i]->values.size()) ==
                incoming[i]->values());
  }
  EXPECT_EQ(before + (goes_direct() ? 2 * messages / 5 * 4 : 0), direct_messages());
}

TEST_F(Direct, CancelledReceivesAndSends) {
  if (!has_partner()) return;
  Strided message(1000);
  Ints incoming(std::vector<int>(message.values.size(), -1), true);
  MPI_Request request;
  int flag = 0;
  MPI_Irecv(incoming.data(), 1, message.type, partner(), tag + 2, MPI_COMM_WORLD, &request);
  EXPECT_NE(0, is_cancelled(&request));
  EXPECT_EQ(std::vector<int>(message.values.size(), -1), incoming.values());
  // Whether a send is cancelled, the sender says.
  if (sends()) {
    MPI_Isend(message.memory.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    flag = is_cancelled(&request);
    MPI_Send(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (flag == 0) receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
  }
  pass(98'304, send, receive);
}

/// Memory of the program that is freed and allocated again at the same address, and datatypes that are freed while
/// their message is under way.
TEST_F(Direct, MemoryAndDatatypesComeAndGo) {
  if (!has_partner()) return;
  constexpr int times = 300, blocks = 2000;
  int wrong = 0;
  for (int k = 0; k < times; ++k) {
    Strided message(blocks, k);
    MPI_Request request;
    MPI_Datatype type;
    MPI_Type_dup(message.type, &type);
    if (sends()) {
      MPI_Isend(message.memory.data(), 1, type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Type_free(&type);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      Ints incoming(std::vector<int>(message.values.size(), -1), true);
      MPI_Irecv(incoming.data(), 1, type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Type_free(&type);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      wrong += incoming.values() != arrived(message.packed(), message.values.size());
    }
  }
  EXPECT_EQ(0, wrong);
}

TEST_F(Direct, OtherCommunicators) {
  MPI_Comm same;
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  pass(1000, send, receive, 1, same);
  MPI_Comm_free(&same);
}

/// The contexts of both GPUs end between messages: memory is exported and mapped anew.
TEST_F(Direct, ContextsThatEndBetweenMessages) {
  pass(20'000, send, receive);
  MPI_Barrier(MPI_COMM_WORLD);
  reset_gpu();
  MPI_Barrier(MPI_COMM_WORLD);
  introduce();
  pass(20'000, send, receive);
  pass(long_block_counts.back(), send, receive);
}

/// In a run of its own (killed_peer.sh): the receiver dies before it reads a message in its sender's memory, and the
/// send that waits for that ends in an error.
TEST_F(Direct, KilledPeer) {
  if (who_dies() != "receiver") return;
  // So a launcher ends those that are left, before it kills them.
  std::signal(SIGTERM, SIG_IGN);
  Strided message(20'000);
  void* const memory = message.memory.data();
  // Once a few messages have come out of a memory, the next ones are read there.
  for (int times = 0; times < 8; ++times) {
    if (sends()) send(memory, message.type, MPI_COMM_WORLD, partner());
    if (!sends()) receive(memory, message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (!sends()) {
    MPI_Probe(partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::raise(SIGKILL);
  }
  expect_peer_failure(MPI_Send(memory, 1, message.type, partner(), tag, MPI_COMM_WORLD));
  if (!HasFailure()) survive();
  ADD_FAILURE() << "nobody has died";
}

/// In runs of their own: either end of a message that goes through a ring dies in the middle of the message, and the
/// other one's call ends in an error; that of the sender may end well, once the message has been copied out.
TEST_F(Direct, KilledPeerOfALongMessage) {
  const std::string_view who = who_dies();
  if (who != "long sender" && who != "long receiver") return;
  std::signal(SIGTERM, SIG_IGN);
  Strided message(long_block_counts.back());
  void* const memory = message.memory.data();
  const std::uint64_t before = direct_messages();
  for (int times = 0; times < 3; ++times) {
    if (sends()) send(memory, message.type, MPI_COMM_WORLD, partner());
    if (!sends()) receive(memory, message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
  }
  EXPECT_LT(before, direct_messages());
  MPI_Barrier(MPI_COMM_WORLD);
  int code = MPI_SUCCESS;
  if (sends()) {
    MPI_Request request;
    MPI_Isend(memory, 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
    if (who == "long sender") std::raise(SIGKILL);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Probe(partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (who == "long receiver") std::raise(SIGKILL);
    code = MPI_Recv(memory, 1, message.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (!sends() || code != MPI_SUCCESS) expect_peer_failure(code);
  if (!HasFailure()) survive();
  ADD_FAILURE() << "nobody has died";
}

}  // namespace
}  // namespace gapless::test

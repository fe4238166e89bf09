// MPI_THREAD_SERIALIZED: one thread at a time calls MPI, each time another one that ends before the next begins. What
// one thread has begun, another one completes and a third one frees: requests, persistent and partitioned ones,
// collectives, matched messages, datatypes.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int blocks = 2000, length = 2, stride = 5, tag = 3, messages = 4;

int partner() { return (rank() ^ 1) < size() ? rank() ^ 1 : rank(); }

/// Calls MPI in a thread of its own, which is gone on return.
void in_turn(const std::function<void()>& work) { std::thread(work).join(); }

/// Several messages to and from the partner, of strided ints.
struct Exchange {
  Ends ends;
  std::vector<Ints> sent, received;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<MPI_Request> requests;
  const std::uint64_t packed_before = packed_messages(), gpu_before = gpu_messages();

  explicit Exchange(const Ends& memory) : ends(memory), requests(2 * messages, MPI_REQUEST_NULL) {
    for (int k = 0; k < messages; ++k) {
      sent.emplace_back(values(rank(), k), memory.from_gpu);
      received.emplace_back(std::vector<int>(values(0, 0).size(), -1), memory.to_gpu);
    }
    in_turn([&] {
      type = strided(blocks, length, stride);
      MPI_Type_commit(&type);
    });
  }

  static std::vector<int> values(int of_rank, int k) {
    return counting(static_cast<std::size_t>(blocks * stride), 1'000'000 * of_rank + 100'000 * k);
  }
  void begin(int k) {
    const auto at = static_cast<std::size_t>(k);
    MPI_Irecv(received[at].data(), 1, type, partner(), tag + k, MPI_COMM_WORLD, &requests[2 * at]);
    MPI_Isend(sent[at].data(), 1, type, partner(), tag + k, MPI_COMM_WORLD, &requests[2 * at + 1]);
  }
  void free_type() {
    in_turn([&] { MPI_Type_free(&type); });
  }
  /// All has arrived, by gapless where that was asked for.
  void expect_all(const char* how) {
    if (is_everything_packed()) {
      EXPECT_GT(packed_messages(), packed_before) << how;
    }
    if (under_gapless() && ends.from_gpu) {
      EXPECT_GT(gpu_messages(), gpu_before) << how;
    }
    for (int k = 0; k < messages; ++k) {
      const std::vector<int> arrived = picked(values(partner(), k), blocks, length, stride);
      const std::vector<int> wanted = placed(std::vector<int>(values(0, 0).size(), -1), arrived, length, stride);
      EXPECT_TRUE(wanted == received[static_cast<std::size_t>(k)].values())
          << how << ", message " << k << ", " << text(ends);
    }
  }
};

TEST(Turns, TheLevelIsTheLibrarys) {
  int level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Query_thread(&level);
  EXPECT_GE(level, MPI_THREAD_SERIALIZED);
  MPI_Is_thread_main(&is_main);
  EXPECT_NE(0, is_main);
  in_turn([&] { MPI_Is_thread_main(&is_main); });
  EXPECT_EQ(0, is_main);
}

TEST(Turns, RequestsAreCompletedByOtherThreads) {
  for (const Ends& ends : all_ends()) {
    Exchange exchange(ends);
    for (int k = 0; k < messages; ++k) in_turn([&] { exchange.begin(k); });
    exchange.free_type();
    for (int k = 0; k < messages; ++k) {
      in_turn([&] { MPI_Wait(&exchange.requests[2 * static_cast<std::size_t>(k)], MPI_STATUS_IGNORE); });
    }
    in_turn([&] { MPI_Waitall(2 * messages, exchange.requests.data(), MPI_STATUSES_IGNORE); });
    exchange.expect_all("nonblocking");
  }
}

TEST(Turns, EachTestIsAnotherThreads) {
  for (const Ends& ends : all_ends()) {
    Exchange exchange(ends);
    in_turn([&] {
      for (int k = 0; k < messages; ++k) exchange.begin(k);
    });
    for (int done = 0; done == 0;) {
      in_turn([&] { MPI_Testall(2 * messages, exchange.requests.data(), &done, MPI_STATUSES_IGNORE); });
    }
    exchange.free_type();
    exchange.expect_all("tested");
  }
}

TEST(Turns, PersistentRequestsChangeHands) {
  for (const Ends& ends : all_ends()) {
    Exchange exchange(ends);
    std::vector<MPI_Request>& requests = exchange.requests;
    for (std::size_t k = 0; k < messages; ++k) {
      const int tag_of = tag + static_cast<int>(k);
      in_turn([&] {
        MPI_Recv_init(exchange.received[k].data(), 1, exchange.type, partner(), tag_of, MPI_COMM_WORLD,
                      &requests[2 * k]);
        MPI_Send_init(exchange.sent[k].data(), 1, exchange.type, partner(), tag_of, MPI_COMM_WORLD,
                      &requests[2 * k + 1]);
      });
    }
    exchange.free_type();
    for (int round = 0; round < 3; ++round) {
      for (Ints& received : exchange.received) received.set(std::vector<int>(Exchange::values(0, 0).size(), -1));
      in_turn([&] { MPI_Startall(2 * messages, requests.data()); });
      in_turn([&] { MPI_Waitall(2 * messages, requests.data(), MPI_STATUSES_IGNORE); });
      exchange.expect_all("persistent");
    }
    for (MPI_Request& request : requests) in_turn([&] { MPI_Request_free(&request); });
  }
}

TEST(Turns, CollectivesAreCompletedByOtherThreads) {
  for (const Ends& ends : all_ends()) {
    Exchange exchange(ends);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto all = static_cast<std::size_t>(size()) * static_cast<std::size_t>(blocks * stride);
    Ints gathered(std::vector<int>(all, -1), ends.to_gpu);
    in_turn([&] {
      MPI_Iallgather(exchange.sent[0].data(), 1, exchange.type, gathered.data(), 1, exchange.type, MPI_COMM_WORLD,
                     &request);
    });
    in_turn([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    exchange.free_type();
    std::vector<int> wanted;
    for (int k = 0; k < size(); ++k) {
      const std::vector<int> part = placed(std::vector<int>(static_cast<std::size_t>(blocks * stride), -1),
                                           picked(Exchange::values(k, 0), blocks, length, stride), length, stride);
      wanted.insert(wanted.end(), part.begin(), part.end());
    }
    EXPECT_TRUE(wanted == gathered.values()) << text(ends);
  }
}

TEST(Turns, AMatchedMessageIsReceivedByAnotherThread) {
  for (const Ends& ends : all_ends()) {
    Exchange exchange(ends);
    for (int k = 0; k < messages; ++k) {
      const auto at = static_cast<std::size_t>(k);
      MPI_Message message = MPI_MESSAGE_NULL;
      in_turn([&] {
        MPI_Isend(exchange.sent[at].data(), 1, exchange.type, partner(), tag + k, MPI_COMM_WORLD,
                  &exchange.requests[at]);
      });
      in_turn([&] { MPI_Mprobe(partner(), tag + k, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE); });
      in_turn([&] { MPI_Mrecv(exchange.received[at].data(), 1, exchange.type, &message, MPI_STATUS_IGNORE); });
    }
    in_turn([&] { MPI_Waitall(messages, exchange.requests.data(), MPI_STATUSES_IGNORE); });
    exchange.free_type();
    exchange.expect_all("matched");
  }
}

}  // namespace
}  // namespace gapless::test

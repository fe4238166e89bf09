// Messages between GPU memory and processes that use no GPU: even ranks have one, odd ranks have host memory alone. The
// sender packs into memory of the host that both map, and the receiver unpacks from there: GPU to CPU, or CPU to GPU.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "headers/on_gpu/direct_messages.hpp"

namespace gapless::test {
namespace {

/// As the model predicts, some go other ways.
bool all_go_direct() { return goes_direct() && std::getenv("GAPLESS_SCHEME") != nullptr; }

class ToHost : public testing::Test {
 protected:
  ToHost() { find_each_other(); }

  static void find_each_other() {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int times = 0; times < 8 && has_partner(); ++times) pass_and_answer(128, send, receive);
  }

  /// The memory that the message was packed into is free when the answer has come.
  static void pass_and_answer(int blocks, const Send& by, const Receive& into) {
    pass_one(blocks, by, into);
    if (sends()) MPI_Recv(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!sends()) MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
  }

  static void pass_one(int blocks, const Send& by, const Receive& into) {
    const std::vector<int> values = counting(static_cast<std::size_t>(blocks * stride), blocks);
    const Owned type{strided(blocks, length, stride)};
    if (sends()) return by(Ints(values, true).data(), type, MPI_COMM_WORLD, partner());
    std::vector<int> incoming(values.size(), -1);
    MPI_Status status{};
    into(incoming.data(), type, MPI_COMM_WORLD, partner(), &status);
    expect_message(status, type, blocks, partner());
    EXPECT_TRUE(arrived(picked(values, blocks, length, stride), values.size()) == incoming);
  }

  template <class Messages>
  static void expect_direct(unsigned count, const Messages& messages) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    const std::uint64_t before = direct_messages();
    messages();
    if (all_go_direct() || !goes_direct()) {
      EXPECT_EQ(before + (goes_direct() ? count : 0), direct_messages());
    }
  }

  const ReturnErrors errors_{MPI_COMM_WORLD};
};

TEST_F(ToHost, MessagesInEveryKindOfCall) {
  for (const auto& counts : {block_counts, long_block_counts}) {
    for (const int blocks : counts) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks");
      expect_direct(3, [&] {
        pass_and_answer(blocks, send, receive);
        pass_and_answer(blocks, send_by_request, receive_by_request);
        pass_and_answer(blocks, send_persistently, receive_persistently);
      });
    }
  }
}

TEST_F(ToHost, ContiguousReceives) {
  for (const int blocks : {1000, long_block_counts.back()}) {
    expect_direct(1, [&] {
      Strided message(blocks);
      pass_to_contiguous(message.memory.data(), message.type, message.packed());
    });
  }
}

TEST_F(ToHost, TruncatedOnesLeaveTheMemoryAsItIs) {
  for (const int blocks : {1000, long_block_counts.back()}) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    Strided message(blocks);
    pass_truncated(message.memory.data(), message.type, blocks, all_go_direct());
    expect_direct(1, [&] { pass_one(blocks, send, receive); });
  }
}

/// Back from the host, longer ones than slots take. The first goes another way; the second calls for attention, the
/// third introduces the sender's memory, and each may be a message late.
TEST_F(ToHost, LongMessagesBackIntoGpuMemory) {
  if (size() % 2 != 0) return;
  const int blocks = 2 * long_block_counts.front();
  const auto pass_back = [&](int count, const Send& by, const Receive& into, MPI_Datatype sent_as) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::vector<int> values = counting(static_cast<std::size_t>(blocks * stride), blocks);
    const std::vector<int> packed = picked(values, blocks, length, stride);
    const Owned type{strided(blocks, length, stride)};
    if (!sends()) {
      if (count == 1) return by(values.data(), type, MPI_COMM_WORLD, partner());
      EXPECT_EQ(MPI_SUCCESS, MPI_Send(packed.data(), count, sent_as, partner(), tag, MPI_COMM_WORLD));
      return;
    }
    Ints incoming(std::vector<int>(values.size(), -1), true);
    MPI_Status status{};
    into(incoming.data(), type, MPI_COMM_WORLD, partner(), &status);
    expect_message(status, type, blocks, partner());
    EXPECT_TRUE(arrived(packed, values.size()) == incoming.values());
  };
  for (int times = 0; times < 6; ++times) pass_back(1, send, receive, MPI_DATATYPE_NULL);
  const std::uint64_t before = direct_messages();
  for (int times = 0; times < 2; ++times) {
    pass_back(1, send, receive, MPI_DATATYPE_NULL);
    pass_back(1, send_by_request, receive_by_request, MPI_DATATYPE_NULL);
    pass_back(blocks * length, send, receive, MPI_INT);
  }
  if (all_go_direct() || !goes_direct()) {
    EXPECT_EQ(before + (goes_direct() ? 6 : 0), direct_messages());
  }
}

/// Once such a message has gone into host memory, the next leave as usual.
TEST_F(ToHost, LongMessagesBetweenCpusAreTheLibrarys) {
  if (!has_partner()) return;
  const std::vector<int> values = counting(2 * 1024 * 1024, 3);
  for (int times = 0; times < 3; ++times) {
    const std::uint64_t before = direct_messages();
    std::vector<int> incoming(values.size() + 1, -1);
    if (!sends()) {
      MPI_Send(values.data(), static_cast<int>(values.size()), MPI_INT, partner(), tag, MPI_COMM_WORLD);
      // A sender that waits for long may be gone before its message has been met.
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(incoming.data(), static_cast<int>(values.size()), MPI_INT, partner(), tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
      EXPECT_EQ(-1, incoming.back());
      incoming.pop_back();
      EXPECT_TRUE(values == incoming);
    }
    if (times > 0) {
      EXPECT_EQ(before, direct_messages());
    }
  }
}

/// It has said that it uses none, and is asked again.
TEST_F(ToHost, AProcessMayUseAGpuLater) {
  for (int times = 0; times < 2; ++times) {
    expect_direct(1, [] {
      Strided message(20'000);
      if (sends()) return send(message.memory.data(), message.type, MPI_COMM_WORLD, partner());
      Ints incoming(std::vector<int>(message.values.size(), -1), true);
      receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
      EXPECT_TRUE(arrived(message.packed(), message.values.size()) == incoming.values());
    });
    if (has_partner()) pass_one(20'000, send, receive);
  }
}

}  // namespace
}  // namespace gapless::test

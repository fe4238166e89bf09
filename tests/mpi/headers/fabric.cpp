// Messages between two processes that go by a fabric: the right bytes, gaps and status in every kind of call, and by
// counts that they really went by the scheme that was asked for. Rank 0 sends to rank 1 unless a test says otherwise.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int tag = 7;
constexpr std::array scheme_names{"fabric-pipelined", "gather-write", "scatter-read", "multi-write"};
enum Scheme { pipelined, gather_write, scatter_read, multi_write };

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Is gapless under this test, and all messages here are to go by a fabric?
bool uses_fabric() { return under_gapless() && setting("GAPLESS_TEST_FABRIC") == "all"; }
/// Does a send that nobody takes copy its bytes out at once?
bool is_impatient() { return setting("GAPLESS_FABRIC_PATIENCE") == "0"; }

void force(const char* scheme) {
  const auto function = reinterpret_cast<void (*)(const char*)>(core_function("gapless_transfer_force_scheme"));
  if (function != nullptr) function(scheme);
}

/// The numbers of gapless_fabric_counts().
struct Counts {
  std::uint64_t posts, lists, posted_bytes, notifications, copied_bytes, registrations, copied_out, abandoned;
};
Counts counts() {
  Counts now{};
  const auto function = reinterpret_cast<void (*)(Counts*)>(core_function("gapless_fabric_counts"));
  if (function != nullptr) function(&now);
  return now;
}
std::uint64_t messages_by(Scheme scheme) { return internal::messages_by(8 + scheme, 8 + scheme); }
std::uint64_t fabric_messages() { return internal::messages_by(8, 11); }

bool is_sender() { return rank() == 0; }
bool takes_part() { return size() == 2; }
constexpr int receiver = 1, sender = 0;

/// Blocks of ints, and what they hold.
struct Side {
  Side(int blocks, int length, int stride, int first)
      : blocks(blocks),
        length(length),
        stride(stride),
        type(strided(blocks, length, stride)),
        values(first < 0 ? std::vector<int>(static_cast<std::size_t>(blocks * stride), -1)
                         : counting(static_cast<std::size_t>(blocks * stride), first)) {}
  std::vector<int> packed() const { return picked(values, blocks, length, stride); }
  std::vector<int> after(const std::vector<int>& packed_values) const {
    return placed(std::vector<int>(values.size(), -1), packed_values, length, stride);
  }
  int blocks, length, stride;
  Owned type;
  std::vector<int> values;
};

/// Shapes of the same size at both sides.
struct Shape {
  int sent_blocks, sent_length, received_blocks, received_length;
};
const std::vector<Shape> shapes{{64, 128, 64, 128}, {16, 4096, 1024, 64}, {2048, 8, 32, 512}, {300, 700, 100, 2100}};

void expect_status(const MPI_Status& status, int ints) {
  EXPECT_EQ(sender, status.MPI_SOURCE);
  EXPECT_EQ(tag, status.MPI_TAG);
  int count = -1;
  MPI_Get_elements(&status, MPI_INT, &count);
  EXPECT_EQ(ints, count);
}

enum class By { blocking, nonblocking, tested, any };

void send(const Side& side, By by) {
  MPI_Request request;
  int flag = 0, index = -1;
  switch (by) {
    case By::blocking:
      EXPECT_EQ(MPI_SUCCESS, MPI_Send(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD));
      return;
    case By::nonblocking:
      MPI_Isend(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
      return;
    case By::tested:
      MPI_Isend(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
      break;
    case By::any:
      MPI_Isend(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
      EXPECT_EQ(0, index);
      break;
  }
  EXPECT_EQ(MPI_REQUEST_NULL, request);
}

void receive(Side& side, By by, MPI_Status& status) {
  MPI_Request request;
  int flag = 0, index = -1;
  switch (by) {
    case By::blocking:
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Recv(side.values.data(), 1, side.type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      return;
    case By::nonblocking:
      MPI_Irecv(side.values.data(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
      return;
    case By::tested:
      MPI_Irecv(side.values.data(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, &status));
      return;
    case By::any:
      MPI_Irecv(side.values.data(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(1, &request, &index, &status));
      return;
  }
}

/// One message of that shape.
void pass(const Shape& shape, By by) {
  const Side from(shape.sent_blocks, shape.sent_length, shape.sent_length + 3, 5);
  if (is_sender()) return send(from, by);
  Side to(shape.received_blocks, shape.received_length, 2 * shape.received_length, -1);
  MPI_Status status{};
  receive(to, by, status);
  expect_status(status, shape.sent_blocks * shape.sent_length);
  EXPECT_TRUE(to.after(from.packed()) == to.values);
}

class Fabric : public testing::Test {
 protected:
  void SetUp() override { MPI_Barrier(MPI_COMM_WORLD); }
  void TearDown() override {
    force("");
    MPI_Barrier(MPI_COMM_WORLD);
  }
};

TEST_F(Fabric, EverySchemeInEveryKindOfCall) {
  if (!takes_part()) return;
  for (const Scheme scheme : {pipelined, gather_write, scatter_read, multi_write}) {
    force(scheme_names[scheme]);
    for (const By by : {By::blocking, By::nonblocking, By::tested, By::any}) {
      for (const Shape& shape : shapes) {
        MPI_Barrier(MPI_COMM_WORLD);
        const std::uint64_t before = messages_by(scheme);
        pass(shape, by);
        // What a sender has copied out goes on after its call.
        MPI_Barrier(MPI_COMM_WORLD);
        if (uses_fabric() && !is_sender()) {
          EXPECT_EQ(before + 1, messages_by(scheme)) << scheme_names[scheme];
        }
      }
    }
  }
}

TEST_F(Fabric, CopiesAndRegistrationsAreThoseOfTheScheme) {
  if (!takes_part()) return;
  const Shape shape{128, 1024, 64, 2048};
  constexpr std::uint64_t bytes = 128 * 1024 * sizeof(int);
  const Side from(shape.sent_blocks, shape.sent_length, shape.sent_length + 3, 5);
  Side to(shape.received_blocks, shape.received_length, 2 * shape.received_length, -1);
  for (const Scheme scheme : {pipelined, gather_write, scatter_read, multi_write}) {
    force(scheme_names[scheme]);
    constexpr int rounds = 8;
    Counts before{};
    for (int round = 0; round < rounds + 1; ++round) {
      if (round == 1) before = counts();
      MPI_Status status{};
      if (is_sender()) {
        send(from, By::blocking);
      } else {
        receive(to, By::blocking, status);
      }
      // The receiver has said so: nothing of the message is under way at either side.
      MPI_Barrier(MPI_COMM_WORLD);
    }
    const Counts after = counts();
    if (!uses_fabric() || is_impatient()) continue;
    const bool copies = scheme == pipelined || scheme == (is_sender() ? scatter_read : gather_write);
    EXPECT_EQ(copies ? rounds * bytes : 0, after.copied_bytes - before.copied_bytes) << scheme_names[scheme];
    EXPECT_EQ(before.registrations, after.registrations) << scheme_names[scheme];
    EXPECT_EQ(0u, after.copied_out - before.copied_out);
    EXPECT_EQ(0u, after.abandoned);
    const bool posts = (scheme == scatter_read) != is_sender();
    EXPECT_EQ(posts ? rounds * bytes : 0, after.posted_bytes - before.posted_bytes) << scheme_names[scheme];
    // tcp and shm gather 4 blocks into a write. No two segments, or blocks of the receiver, share one.
    const std::uint64_t blocks = scheme == multi_write ? 64 : scheme == pipelined ? 8 : 32;
    const std::uint64_t most = scheme == multi_write ? 64 * 2 : blocks + 16;
    if (posts) {
      EXPECT_GE(after.posts - before.posts, rounds * (scheme == pipelined ? 4 : scheme == scatter_read ? 16 : blocks));
      EXPECT_LE(after.posts - before.posts, rounds * most) << scheme_names[scheme];
    }
  }
}

TEST_F(Fabric, ExchangesGoBothWaysAtOnce) {
  if (!takes_part()) return;
  const int peer = 1 - rank();
  for (const char* scheme : scheme_names) {
    force(scheme);
    const std::uint64_t before = fabric_messages();
    const Side from(256, 300, 400, 1 + rank()), theirs(256, 300, 400, 1 + peer);
    Side to(256, 300, 512, -1);
    MPI_Sendrecv(from.values.data(), 1, from.type, peer, tag, to.values.data(), 1, to.type, peer, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_TRUE(to.after(theirs.packed()) == to.values);
    MPI_Barrier(MPI_COMM_WORLD);
    std::array<MPI_Request, 2> requests;
    std::fill(to.values.begin(), to.values.end(), -1);
    MPI_Irecv(to.values.data(), 1, to.type, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from.values.data(), 1, from.type, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_TRUE(to.after(theirs.packed()) == to.values);
    MPI_Barrier(MPI_COMM_WORLD);
    if (uses_fabric()) {
      EXPECT_LE(before + 2, fabric_messages());  // both that are received, at least
    }
  }
}

TEST_F(Fabric, ManyMessagesAreInOrder) {
  if (!takes_part()) return;
  constexpr int many = 24;
  std::vector<MPI_Request> requests(many);
  std::deque<Side> sides;
  for (int i = 0; i < many; ++i) sides.emplace_back(100 + i, 200, 300, is_sender() ? i : -1);
  for (int i = 0; i < many; ++i) {
    Side& side = sides[static_cast<std::size_t>(i)];
    MPI_Request& request = requests[static_cast<std::size_t>(i)];
    if (is_sender()) {
      MPI_Isend(side.values.data(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(side.values.data(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
    }
  }
  MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
  if (is_sender()) return;
  for (int i = 0; i < many; ++i) {
    const Side& side = sides[static_cast<std::size_t>(i)];
    EXPECT_TRUE(side.after(Side(100 + i, 200, 300, i).packed()) == side.values) << i;
  }
}

// What is legal without gapless must not hang: the peer waits for something else than the message.
TEST_F(Fabric, NoSendWaitsForAReceiverThatWaitsForItsSender) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  Side to(256, 300, 512, -1);
  MPI_Request request;
  for (const bool blocks : {false, true}) {
    // With all the patience of the world a blocking send may wait for its receiver's call.
    if (blocks && uses_fabric() && !is_impatient()) continue;
    if (is_sender()) {
      if (blocks) {
        MPI_Send(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD);
      } else {
        MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (!blocks) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      std::fill(to.values.begin(), to.values.end(), -1);
      MPI_Irecv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_TRUE(to.after(from.packed()) == to.values);
    }
    // The receiver has its message while the sender is in a collective of the library's.
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(Fabric, AFreedRequestsMessageArrives) {
  if (!takes_part()) return;
  Side from(256, 300, 400, 1);
  if (is_sender()) {
    MPI_Request request;
    MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(nullptr, 0, MPI_INT, receiver, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  Side to(256, 300, 512, -1);
  MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_TRUE(to.after(from.packed()) == to.values);
  MPI_Send(nullptr, 0, MPI_INT, sender, tag, MPI_COMM_WORLD);
}

TEST_F(Fabric, ATruncatedMessageIsAnErrorOfItsReceiverAlone) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD));
  } else {
    Side to(255, 300, 512, -1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                    &error_class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class);
    if (uses_fabric()) {
      EXPECT_EQ(-1, *std::ranges::max_element(to.values));
    }
  }
  pass(shapes[0], By::blocking);
}

TEST_F(Fabric, AProbeTellsOfTheMessage) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) return send(from, By::nonblocking);
  Side to(256, 300, 512, -1);
  MPI_Status status;
  MPI_Message message;
  MPI_Mprobe(sender, tag, MPI_COMM_WORLD, &message, &status);
  expect_status(status, 256 * 300);
  MPI_Mrecv(to.values.data(), 1, to.type, &message, &status);
  expect_status(status, 256 * 300);
  EXPECT_TRUE(to.after(from.packed()) == to.values);
}

TEST_F(Fabric, AShorterMessageThanTheReceiveAndAContiguousReceive) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  for (const char* scheme : scheme_names) {
    force(scheme);
    if (is_sender()) {
      send(from, By::blocking);
      send(from, By::blocking);
      continue;
    }
    Side to(400, 300, 512, -1);
    MPI_Status status{};
    receive(to, By::blocking, status);
    expect_status(status, 256 * 300);
    EXPECT_TRUE(to.after(from.packed()) == to.values);
    std::vector<int> plain(256 * 300 + 10, -1);
    MPI_Recv(plain.data(), static_cast<int>(plain.size()), MPI_INT, sender, tag, MPI_COMM_WORLD, &status);
    expect_status(status, 256 * 300);
    std::vector<int> expected = from.packed();
    expected.resize(plain.size(), -1);
    EXPECT_TRUE(expected == plain);
  }
}

}  // namespace
}  // namespace gapless::test

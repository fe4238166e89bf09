// What the tests of messages by a fabric share: rank 0 sends to rank 1, and counts tell how a message has gone.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

inline constexpr int tag = 7;
inline constexpr std::array scheme_names{"fabric-pipelined", "gather-write", "scatter-read", "multi-write"};
enum Scheme { pipelined, gather_write, scatter_read, multi_write };

inline std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Is gapless under this test, and all messages here are to go by a fabric?
inline bool uses_fabric() { return under_gapless() && setting("GAPLESS_TEST_FABRIC") == "all"; }
/// MPICH 5.0.2 over UCX's tcp loses messages that MPI_ANY_SOURCE is to take from another node, without gapless as well.
inline int any_source() { return setting("GAPLESS_TEST_NODES").empty() ? MPI_ANY_SOURCE : 0; }

/// Does a send that nobody takes copy its bytes out at once?
inline bool is_impatient() { return setting("GAPLESS_FABRIC_PATIENCE") == "0"; }

/// Does the fabric reach GPU memory?
inline bool reaches_gpus() { return setting("GAPLESS_TEST_GPU_PROVIDER") == "reaches"; }

inline void force(const char* scheme) {
  const auto function = reinterpret_cast<void (*)(const char*)>(core_function("gapless_transfer_force_scheme"));
  if (function != nullptr) function(scheme);
}

/// The numbers of gapless_fabric_counts().
struct Counts {
  std::uint64_t posts, lists, posted_bytes, notifications, copied_bytes, registrations, copied_out, abandoned,
      completions, gpu_bytes;
};
inline Counts counts() {
  Counts now{};
  const auto function = reinterpret_cast<void (*)(Counts*)>(core_function("gapless_fabric_counts"));
  if (function != nullptr) function(&now);
  return now;
}
inline std::uint64_t messages_by(Scheme scheme) { return internal::messages_by(8 + scheme, 8 + scheme); }

inline bool is_sender() { return rank() == 0; }
inline bool takes_part() { return size() == 2; }
inline constexpr int receiver = 1, sender = 0;

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
inline const std::vector<Shape> shapes{
    {64, 128, 64, 128}, {16, 4096, 1024, 64}, {2048, 8, 32, 512}, {300, 700, 100, 2100}};

inline void expect_status(const MPI_Status& status, int ints) {
  EXPECT_EQ(sender, status.MPI_SOURCE);
  EXPECT_EQ(tag, status.MPI_TAG);
  int count = -1;
  MPI_Get_elements(&status, MPI_INT, &count);
  EXPECT_EQ(ints, count);
}

enum class By { blocking, nonblocking, tested, any };

inline void send(const Side& side, By by) {
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

inline void receive(Side& side, By by, MPI_Status& status) {
  MPI_Request request;
  int flag = 0, index = -1;
  switch (by) {
    case By::blocking:
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Recv(side.values.data(), 1, side.type, any_source(), MPI_ANY_TAG, MPI_COMM_WORLD, &status));
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
inline void pass(const Shape& shape, By by) {
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
  /// Unless a test says otherwise, all that can goes by the fabric.
  void SetUp() override {
    force(scheme_names[pipelined]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void TearDown() override { MPI_Barrier(MPI_COMM_WORLD); }
};

}  // namespace gapless::test

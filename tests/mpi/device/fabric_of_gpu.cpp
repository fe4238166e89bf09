// Messages of GPU memory by a fabric: from and to GPU memory and host memory, strided and contiguous, by every scheme,
// with gaps untouched; and what a failure of the GPU does to them.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headers/fabric_messages.hpp"
#include "support/gpu.hpp"

namespace gapless::test {
namespace {

/// A side whose values may lie on the GPU.
struct PlacedSide {
  PlacedSide(const Side& side, bool is_on_gpu) : side(side) {
    if (is_on_gpu) gpu.emplace(bytes_of(side.values));
  }
  static std::vector<std::byte> bytes_of(const std::vector<int>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(int));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  void* memory() { return gpu ? gpu->at() : const_cast<int*>(side.values.data()); }
  std::vector<int> found() const {
    if (!gpu) return side.values;
    std::vector<int> values(side.values.size());
    const std::vector<std::byte> bytes = gpu->bytes();
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const Side& side;
  std::optional<OnGpu> gpu;
};

constexpr Shape contiguous{1, 30000, 1, 30000};

class FabricOfGpu : public Fabric {
 protected:
  /// One message, nonblocking or not, and what has arrived.
  static void pass(const Shape& shape, bool from_gpu, bool to_gpu, bool nonblocking) {
    const Side from(shape.sent_blocks, shape.sent_length, shape.sent_length + 3, 5);
    if (is_sender()) {
      PlacedSide placed(from, from_gpu);
      if (!nonblocking) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Send(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD));
        return;
      }
      MPI_Request request;
      MPI_Isend(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
      return;
    }
    Side to(shape.received_blocks, shape.received_length, 2 * shape.received_length, -1);
    PlacedSide placed(to, to_gpu);
    MPI_Status status{};
    if (nonblocking) {
      MPI_Request request;
      MPI_Irecv(placed.memory(), 1, to.type, sender, tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
    } else {
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv(placed.memory(), 1, to.type, sender, tag, MPI_COMM_WORLD, &status));
    }
    expect_status(status, shape.sent_blocks * shape.sent_length);
    EXPECT_TRUE(to.after(from.packed()) == placed.found());
  }
};

TEST_F(FabricOfGpu, EverySchemeFromAndToEveryMemory) {
  if (!takes_part()) return;
  std::vector<Shape> all = shapes;
  all.push_back(contiguous);
  for (const Scheme scheme : {pipelined, gather_write, scatter_read, multi_write}) {
    force(scheme_names[scheme]);
    for (const auto& [from_gpu, to_gpu] : {std::pair(true, true), {true, false}, {false, true}}) {
      for (const Shape& shape : all) {
        // What lies contiguous in host memory is the library's.
        if (!from_gpu && shape.sent_blocks == 1) continue;
        for (const bool nonblocking : {false, true}) {
          MPI_Barrier(MPI_COMM_WORLD);
          // No CPU packs what the fabric reaches, so that there is nothing to be read from staging.
          const bool is_written = from_gpu && reaches_gpus() && scheme == scatter_read;
          const Scheme taken = is_written ? pipelined : scheme;
          const std::uint64_t before = messages_by(taken);
          pass(shape, from_gpu, to_gpu, nonblocking);
          MPI_Barrier(MPI_COMM_WORLD);
          if (uses_fabric() && !is_sender()) {
            EXPECT_EQ(before + 1, messages_by(taken)) << scheme_names[scheme] << ' ' << from_gpu << to_gpu;
          }
        }
      }
    }
  }
}

TEST_F(FabricOfGpu, ManyAtOnceAreInOrder) {
  if (!takes_part()) return;
  constexpr int many = 12;
  std::vector<MPI_Request> requests(many);
  std::deque<Side> sides;
  std::vector<std::unique_ptr<PlacedSide>> placed;
  for (int i = 0; i < many; ++i) sides.emplace_back(100 + i, 200, 300, is_sender() ? i : -1);
  for (int i = 0; i < many; ++i) {
    const Side& side = sides[static_cast<std::size_t>(i)];
    placed.push_back(std::make_unique<PlacedSide>(side, true));
    MPI_Request& request = requests[static_cast<std::size_t>(i)];
    if (is_sender()) {
      MPI_Isend(placed.back()->memory(), 1, side.type, receiver, tag, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(placed.back()->memory(), 1, side.type, sender, tag, MPI_COMM_WORLD, &request);
    }
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE));
  if (is_sender()) return;
  for (int i = 0; i < many; ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_TRUE(sides[k].after(Side(100 + i, 200, 300, i).packed()) == placed[k]->found()) << i;
  }
}

// The packed bytes are the message's, so the program may write over its memory once the send is complete, whoever
// receives.
TEST_F(FabricOfGpu, NobodyReadsTheMemoryOfACompleteSend) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    PlacedSide placed(from, true);
    MPI_Request request;
    MPI_Isend(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Send(nullptr, 0, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  MPI_Recv(nullptr, 0, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Side to(256, 300, 512, -1);
  PlacedSide placed(to, true);
  MPI_Recv(placed.memory(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_TRUE(to.after(from.packed()) == placed.found());
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Has a send complete that nobody receives yet.
void send_alone(const Side& from) {
  PlacedSide placed(from, true);
  MPI_Request request;
  int index = -1;
  MPI_Isend(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
}

// Where the receiver's memory is registered nobody copies, and packed bytes that wait for it are copied no more often.
TEST_F(FabricOfGpu, ASendThatNobodyTakesIsCompleteAndNotCopied) {
  if (!takes_part() || !uses_fabric()) return;
  const Side from(256, 300, 400, 1);
  for (const Scheme scheme : {pipelined, gather_write, multi_write}) {
    force(scheme_names[scheme]);
    const Counts before = counts();
    if (is_sender()) {
      send_alone(from);
      MPI_Send(nullptr, 0, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(nullptr, 0, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      Side to(256, 300, 512, -1);
      MPI_Status status{};
      receive(to, By::blocking, status);
      EXPECT_TRUE(to.after(from.packed()) == to.values);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_sender()) continue;
    const bool is_staged = scheme == pipelined && !reaches_gpus();
    const std::uint64_t once = is_staged ? from.packed().size() * sizeof(int) : 0;
    EXPECT_EQ(before.copied_bytes + once, counts().copied_bytes) << scheme_names[scheme];
    EXPECT_EQ(before.copied_out, counts().copied_out);
  }
}

// Where the fabric reaches GPU memory, it alone moves the packed bytes, which are never in host memory: the receiver's
// GPU unpacks from its own. In the simulation the CPU cannot even touch them.
TEST_F(FabricOfGpu, NoHostMemoryIsOnTheWayOfWhatTheFabricReaches) {
  if (!takes_part() || !uses_fabric()) return;
  std::vector<Shape> all = shapes;
  all.push_back(contiguous);
  // On one node GPUs reach each other, and only what is forced goes by a fabric.
  const bool is_free = !setting("GAPLESS_TEST_NODES").empty();
  force(is_free ? "" : scheme_names[multi_write]);
  for (const Shape& shape : all) {
    pass(shape, true, true, false);  // registers
    MPI_Barrier(MPI_COMM_WORLD);
    const Counts before = counts();
    const std::uint64_t packed = gpu_messages();
    const long flushes = gpu_count("flushes");
    constexpr int rounds = 3;
    for (int round = 0; round < rounds; ++round) pass(shape, true, true, round != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const Counts after = counts();
    const std::uint64_t bytes = sizeof(int) * static_cast<std::uint64_t>(shape.sent_blocks * shape.sent_length);
    EXPECT_EQ(reaches_gpus() ? rounds * bytes : 0, after.gpu_bytes - before.gpu_bytes);
    if (!reaches_gpus()) continue;
    EXPECT_EQ(is_sender() ? rounds * bytes : 0, after.posted_bytes - before.posted_bytes);
    EXPECT_EQ(before.copied_bytes, after.copied_bytes);
    EXPECT_EQ(before.registrations, after.registrations);
    EXPECT_EQ(packed, gpu_messages());
    EXPECT_EQ(is_sender() ? 0 : rounds, gpu_count("flushes") - flushes);
  }
}

TEST_F(FabricOfGpu, AFailedFlushIsAnErrorOfTheReceiver) {
  if (!takes_part() || !reaches_gpus()) return;
  force(scheme_names[multi_write]);
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    PlacedSide placed(from, true);
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD));
  } else {
    Side to(256, 300, 512, -1);
    PlacedSide placed(to, true);
    const ReturnErrors world(MPI_COMM_WORLD);
    fail_next("flush");
    EXPECT_EQ(MPI_ERR_OTHER,
              error_class(MPI_Recv(placed.memory(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    EXPECT_TRUE(std::vector<int>(to.values.size(), -1) == placed.found());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pass(contiguous, true, true, false);
}

// A send that is complete does not keep the program from resetting its GPU, with which the packed bytes go.
TEST_F(FabricOfGpu, WhatIsLostWithTheGpuIsAnErrorOfTheReceiver) {
  if (!takes_part() || !uses_fabric()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    send_alone(from);
    reset_gpu();
    MPI_Send(nullptr, 0, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    Side to(256, 300, 512, -1);
    const ReturnErrors world(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_ERR_OTHER,
              error_class(MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    EXPECT_TRUE(std::vector<int>(to.values.size(), -1) == to.values);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pass(contiguous, true, true, false);
}

TEST_F(FabricOfGpu, WhatCannotBePackedForTheFabricGoesAnotherWay) {
  if (!takes_part() || !uses_fabric()) return;
  const Side from(256, 300, 400, 1);
  if (is_sender()) {
    PlacedSide placed(from, true);
    fail_next("run", 1);
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(placed.memory(), 1, from.type, receiver, tag, MPI_COMM_WORLD));
  } else {
    Side to(256, 300, 512, -1);
    const std::uint64_t before = fabric_messages();
    MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(to.after(from.packed()) == to.values);
    EXPECT_EQ(before, fabric_messages());
  }
}

}  // namespace
}  // namespace gapless::test

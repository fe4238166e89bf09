// Buffers in GPU memory that a program attaches for its buffered sends.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int length = 3000, rounds = 3;
constexpr int room = 2 * (length * static_cast<int>(sizeof(int)) + MPI_BSEND_OVERHEAD);

/// The rank before gets what the rank behind sends from its GPU, through a buffer on the GPU, too.
TEST(AttachedBuffers, OnTheGpuServeBufferedSends) {
  OnGpu attached{std::vector<std::byte>(room)};
  Ints sent(counting(length, 1000 * rank()), true), received(std::vector<int>(length), true);
  const int behind = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_attach(attached.at(), room));
    for (int message = 0; message < 2; ++message)
      ASSERT_EQ(MPI_SUCCESS, MPI_Bsend(sent.data(), length, MPI_INT, behind, message, MPI_COMM_WORLD));
    for (int message = 0; message < 2; ++message) {
      received.set(std::vector<int>(length));
      MPI_Recv(received.data(), length, MPI_INT, before, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ASSERT_EQ(counting(length, 1000 * before), received.values());
    }
    void* address = nullptr;
    int bytes = 0;
    ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_detach(&address, &bytes));
    EXPECT_EQ(attached.at(), address);
    EXPECT_EQ(room, bytes);
  }
}

TEST(AttachedBuffers, OnTheGpuAreAttachedOnce) {
  OnGpu first{std::vector<std::byte>(room)}, second{std::vector<std::byte>(room)};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_attach(first.at(), room));
  EXPECT_NE(MPI_SUCCESS, MPI_Buffer_attach(second.at(), room));
  void* address = nullptr;
  int bytes = 0;
  ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_detach(&address, &bytes));
  EXPECT_EQ(first.at(), address);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
TEST(AttachedBuffers, OfACommunicator) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  OnGpu attached{std::vector<std::byte>(room)};
  ASSERT_EQ(MPI_SUCCESS, MPI_Comm_attach_buffer(all, attached.at(), room));
  Ints sent(counting(length, 1000 * rank()), true), received(std::vector<int>(length), true);
  const int behind = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  ASSERT_EQ(MPI_SUCCESS, MPI_Bsend(sent.data(), length, MPI_INT, behind, 0, all));
  MPI_Recv(received.data(), length, MPI_INT, before, 0, all, MPI_STATUS_IGNORE);
  EXPECT_EQ(counting(length, 1000 * before), received.values());
  void* address = nullptr;
  int bytes = 0;
  ASSERT_EQ(MPI_SUCCESS, MPI_Comm_detach_buffer(all, &address, &bytes));
  EXPECT_EQ(attached.at(), address);
  MPI_Comm_free(&all);
}
#endif

}  // namespace
}  // namespace gapless::test

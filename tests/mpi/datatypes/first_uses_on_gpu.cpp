// Datatypes of GPU memory are analysed at their first use, whatever was counted of them before: the libraries at hand
// cannot read that memory. Host memory waits in a process that uses a GPU, too.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int blocks = 50;

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(int));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const std::vector<int>& values() {
  static const std::vector<int> counted = counting(2 * blocks);
  return counted;
}

/// Packs one of `type` and expects every other value.
void expect_packs(const void* memory, MPI_Datatype type) {
  std::vector<int> packed(blocks, -1);
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Pack(memory, 1, type, packed.data(), blocks * static_cast<int>(sizeof(int)), &position, MPI_COMM_SELF));
  EXPECT_EQ(picked(values(), blocks, 1, 2), packed);
}

TEST(FirstUsesOnGpu, GpuMemoryIsAnalysedAtOnce) {
  OnGpu memory(bytes_of(values()));
  const Owned type(strided(blocks, 1, 2));
  const auto before = analyses();
  expect_packs(memory.at(), type);
  EXPECT_EQ(before + 1, analyses());
}

TEST(FirstUsesOnGpu, HostMemoryWaits) {
  OnGpu memory(bytes_of(values()));
  const Owned type(strided(blocks, 1, 2));
  const auto before = analyses();
  for (int use = 0; use < 3; ++use) expect_packs(values().data(), type);
  EXPECT_EQ(before, analyses());
  expect_packs(memory.at(), type);
  EXPECT_EQ(before + 1, analyses());
}

TEST(FirstUsesOnGpu, HostMemoryPackedIntoGpuMemoryDoesNotWait) {
  OnGpu packed(std::vector<std::byte>(blocks * sizeof(int)));
  const Owned type(strided(blocks, 1, 2));
  const auto before = analyses();
  int position = 0;
  MPI_Pack(values().data(), 1, type, packed.at(), blocks * static_cast<int>(sizeof(int)), &position, MPI_COMM_SELF);
  EXPECT_EQ(bytes_of(picked(values(), blocks, 1, 2)), packed.bytes());
  EXPECT_EQ(before + 1, analyses());
}

TEST(FirstUsesOnGpu, MessagesFromGpuMemoryDoNotWait) {
  OnGpu memory(bytes_of(values()));
  const Owned type(strided(blocks, 1, 2));
  std::vector<int> received(2 * blocks, -1);
  expect_packs(values().data(), type);
  const auto before = analyses();
  MPI_Sendrecv(memory.at(), 1, type, rank(), 1, received.data(), 1, type, rank(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(2 * blocks, -1), picked(values(), blocks, 1, 2), 1, 2), received);
  EXPECT_EQ(before + 1, analyses());
}

/// The origin is no GPU memory, the displaced blocks are.
TEST(FirstUsesOnGpu, BlocksFarFromTheOriginAreSeen) {
  OnGpu memory(bytes_of(values()));
  MPI_Aint address;
  MPI_Get_address(memory.at(), &address);
  const Owned every_other(strided(blocks, 1, 2));
  const MPI_Datatype types[] = {MPI_INT, every_other, MPI_INT};
  const MPI_Aint displacements[] = {0, address, 0};
  const int lengths[] = {0, 1, 0};
  MPI_Datatype handle;
  MPI_Type_create_struct(3, lengths, displacements, types, &handle);
  const Owned absolute(handle);
  expect_packs(MPI_BOTTOM, absolute);

  static int origin;
  MPI_Aint from;
  MPI_Get_address(&origin, &from);
  const MPI_Aint relative[] = {0, MPI_Aint_diff(address, from), 64};
  MPI_Type_create_struct(3, lengths, relative, types, &handle);
  const Owned displaced(handle);
  expect_packs(&origin, displaced);
}

/// Neither the library nor gapless can read it, and the one does not try.
TEST(FirstUsesOnGpu, AbsoluteBlocksThatAreNotUnderstoodAreRefused) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  OnGpu memory(bytes_of(values()));
  MPI_Aint address;
  MPI_Get_address(memory.at(), &address);
  constexpr int count = 2 * blocks;
  MPI_Datatype type;
  MPI_Type_create_hindexed(1, &count, &address, MPI_INT, &type);
  constexpr int too_deep = 120;
  for (int depth = 0; depth < too_deep; ++depth) {
    MPI_Datatype outer;
    MPI_Type_dup(type, &outer);
    MPI_Type_free(&type);
    type = outer;
  }
  const Owned absolute(type);
  EXPECT_NE(MPI_SUCCESS, MPI_Send(MPI_BOTTOM, 1, absolute, rank(), 1, MPI_COMM_WORLD));
  std::vector<int> packed(count);
  int position = 0;
  EXPECT_NE(MPI_SUCCESS, MPI_Pack(MPI_BOTTOM, 1, absolute, packed.data(), count * static_cast<int>(sizeof(int)),
                                  &position, MPI_COMM_WORLD));
}

/// Freed past gapless: what is left in its tables is of host memory that waited, and of a contiguous datatype.
TEST(FirstUsesOnGpu, LeftoversOfOtherDatatypesDoNotLetGpuMemoryThrough) {
  OnGpu memory(bytes_of(values()));
  for (int round = 0; round < 100; ++round) {
    MPI_Datatype old;
    MPI_Type_contiguous(blocks, MPI_INT, &old);
    MPI_Type_commit(&old);
    std::vector<int> packed(blocks);
    for (int use = 0; use < round; ++use) {
      int position = 0;
      MPI_Pack(values().data(), 1, old, packed.data(), blocks * static_cast<int>(sizeof(int)), &position,
               MPI_COMM_SELF);
    }
    GAPLESS_TEST_NATIVE(Type_free)(&old);
    const Owned type(strided(blocks, 1, 2));
    expect_packs(memory.at(), type);
  }
}

}  // namespace
}  // namespace gapless::test

// Packing for other machines, from and to GPU memory.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

TEST(External, PackingIsTheLibrarysOwn) {
  for_datatypes([&](MPI_Datatype type) {
    MPI_Aint there = 0, back = 0;
    expect_same_as_on_host(
        "Pack_external",
        [&](void* s, void* r) {
          MPI_Aint position = 12;
          return GAPLESS_TEST_NATIVE(Pack_external)("external32", s, 3, type, r, 4096, &position);
        },
        [&](void* s, void* r) { return MPI_Pack_external("external32", s, 3, type, r, 4096, &(there = 12)); });
    expect_same_as_on_host(
        "Unpack_external",
        [&](void* s, void* r) {
          MPI_Aint position = 12;
          return GAPLESS_TEST_NATIVE(Unpack_external)("external32", s, 4096, &position, r, 3, type);
        },
        [&](void* s, void* r) { return MPI_Unpack_external("external32", s, 4096, &(back = 12), r, 3, type); });
    EXPECT_EQ(there, back);
    EXPECT_LT(12, there);
  });
}

/// Of a long buffer as much is staged as a call can touch.
TEST(External, ALongBufferIsNotStagedWhole) {
  constexpr MPI_Aint length = MPI_Aint{24} << 20, middle = length / 2 + 3;
  std::vector<std::byte> expected(length, std::byte{0x6B});
  OnGpu buffer(expected);
  TwoMemories memories;
  const Owned type(strided(3, 2, 4));
  const std::size_t before = gpu_fails_on_request() ? gpu_bytes_in_use() : 0;
  MPI_Aint wanted = middle, there = middle, back = middle;
  GAPLESS_TEST_NATIVE(Pack_external)("external32", memories.sent.data(), 5, type, expected.data(), length, &wanted);
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack_external("external32", memories.sent.data(), 5, type, buffer.at(), length, &there));
  EXPECT_EQ(wanted, there);
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Unpack_external("external32", buffer.at(), length, &back, memories.received.data(), 5, type));
  EXPECT_EQ(wanted, back);
  for (std::size_t k = 0; k < 60; ++k) {
    EXPECT_EQ(k % 4 < 2, std::memcmp(&memories.sent[4 * k], &memories.received[4 * k], 4) == 0) << k;
  }
  if (gpu_fails_on_request()) {
    EXPECT_LT(gpu_bytes_in_use(), before + (std::size_t{1} << 20));
  }
  EXPECT_TRUE(same_bytes(expected, buffer.bytes()));
}

/// What takes the last byte of a buffer fits.
TEST(External, ToTheEndOfABuffer) {
  TwoMemories memories;
  OnGpu buffer(memories.received);
  constexpr MPI_Aint length = ints * sizeof(int), packed = 10 * sizeof(int);
  MPI_Aint wanted = length - packed, there = wanted;
  GAPLESS_TEST_NATIVE(Pack_external)
  ("external32", memories.sent.data(), 10, MPI_INT, memories.received.data(), length, &wanted);
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Pack_external("external32", memories.sent.data(), 10, MPI_INT, buffer.at(), length, &there));
  EXPECT_EQ(length, wanted);
  EXPECT_EQ(length, there);
  EXPECT_TRUE(same_bytes(memories.received, buffer.bytes()));
}

}  // namespace
}  // namespace gapless::test

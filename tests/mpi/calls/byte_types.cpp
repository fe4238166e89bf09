// Datatypes of bytes, in the place of ones with gaps: of any number of bytes, also more than an int counts.
#include "mpi/calls/staged/byte_types.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

constexpr std::int64_t lengths[] = {1, 12345, INT32_MAX, std::int64_t{INT32_MAX} + 1, (std::int64_t{5} << 30) + 3};

void expect_extent(MPI_Datatype type, std::int64_t first, std::int64_t bytes) {
  MPI_Count size = 0, lower = -1, extent = 0, true_lower = -1, true_extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &lower, &extent);
  MPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
  EXPECT_EQ(bytes, size);
  EXPECT_EQ(first, lower);
  EXPECT_EQ(bytes, extent);
  EXPECT_EQ(first, true_lower);
  EXPECT_EQ(bytes, true_extent);
}

TEST(ByteTypes, HaveAsManyBytesAsAreAskedFor) {
  for (const std::int64_t bytes : lengths) {
    SCOPED_TRACE(bytes);
    const ByteType type(bytes);
    EXPECT_TRUE(type);
    expect_extent(type.handle(), 0, bytes);
  }
  EXPECT_FALSE(ByteType(0));
}

TEST(ByteTypes, LieWhereTheyAreDisplaced) {
  for (const std::int64_t bytes : lengths) {
    for (const std::int64_t place : lengths) {
      SCOPED_TRACE(bytes);
      const ByteType type(bytes), displaced = ByteType::displaced(type.handle(), place);
      EXPECT_TRUE(displaced);
      expect_extent(displaced.handle(), place, bytes);
    }
  }
}

}  // namespace
}  // namespace gapless::mpi

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  const auto find = [](const char* name, void*) { return dlsym(RTLD_DEFAULT, name); };
  if (gapless::mpi::load_native(find, nullptr) != nullptr) MPI_Abort(MPI_COMM_WORLD, 2);
  const int failed = RUN_ALL_TESTS();
  gapless::mpi::free_byte_types();
  MPI_Finalize();
  return failed;
}

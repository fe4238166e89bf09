// Types of very many levels, and types that hold the same types over and over: what the library builds and packs
// without trouble must not take more than it either, of time or of stack.

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/packs_something.hpp"

namespace gapless::test {
namespace {

/// Duplicates of duplicates, each freed once it is duplicated: what a program does that keeps a type of its own of
/// every type it is given.
Owned duplicated(MPI_Datatype type, int times) {
  for (int i = 0; i < times; ++i) {
    MPI_Datatype duplicate;
    MPI_Type_dup(type, &duplicate);
    MPI_Type_free(&type);
    type = duplicate;
  }
  return Owned(type);
}

void expect_every_second(MPI_Datatype type) {
  const std::vector<int> values = counting(6);
  std::vector<int> packed(3, -1);
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(values.data(), 1, type, packed.data(), 12, &position, MPI_COMM_WORLD));
  EXPECT_EQ((std::vector<int>{0, 2, 4}), packed);
}

TEST(Nesting, ChainsOfDuplicates) {
  // Beyond some hundreds a type is the library's.
  const PacksSomething packs(2);
  for (const int length : {1, 10, 1000, 30000}) expect_every_second(duplicated(strided(3, 1, 2), length));
}

/// `levels` structs, each of which holds the one before and a duplicate of it.
Owned doubled(MPI_Datatype type, int levels) {
  for (int i = 0; i < levels; ++i) {
    MPI_Datatype parts[2] = {type, MPI_DATATYPE_NULL}, both;
    MPI_Type_dup(type, &parts[1]);
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, 0};
    MPI_Type_create_struct(2, lengths, places, parts, &both);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    type = both;
  }
  return Owned(type);
}

/// 2 to the 40 empty leaves, of 80 types.
TEST(Nesting, TypesThatHoldTheSameTypesOverAndOver) {
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  const Owned type = doubled(nothing, 40);
  int value = 7, position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(&value, 1, type, &value, sizeof value, &position, MPI_COMM_WORLD));
  EXPECT_EQ(0, position);
}

TEST(Nesting, TypesThatNameTheSameBytesOverAndOver) {
  const PacksSomething packs;
  const Owned type = doubled(strided(3, 1, 2), 12);
  const std::vector<int> values = counting(6);
  std::vector<int> packed(3 << 12, -1), wanted;
  for (int i = 0; i < 1 << 12; ++i) wanted.insert(wanted.end(), {0, 2, 4});
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(values.data(), 1, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)),
                                  &position, MPI_COMM_WORLD));
  EXPECT_EQ(wanted, packed);
}

}  // namespace
}  // namespace gapless::test

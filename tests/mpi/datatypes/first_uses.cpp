// The first uses of a datatype go to the MPI library, later ones are served by gapless: when the change comes, and that
// nobody sees it in the data.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// Is gapless there, and free to choose? Where it is made to pack, it analyses at once.
bool waits() {
  const char* scheme = std::getenv("GAPLESS_SCHEME");
  return under_gapless() && scheme == nullptr;
}
bool packs_always() { return under_gapless() && !waits(); }

struct Packing {
  std::vector<int> memory, expected;
};

Packing of_strided(int blocks, int length, int stride) {
  Packing packing{counting(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(stride)), {}};
  packing.expected = picked(packing.memory, blocks, length, stride);
  return packing;
}

void expect_packs(const Packing& packing, MPI_Datatype type, int uses = 1) {
  std::vector<int> packed(packing.expected.size());
  for (int use = 0; use < uses; ++use) {
    std::fill(packed.begin(), packed.end(), -1);
    int position = 0;
    MPI_Pack(packing.memory.data(), 1, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)), &position,
             MPI_COMM_SELF);
    ASSERT_EQ(packing.expected, packed) << "use " << use;
    ASSERT_EQ(static_cast<int>(packed.size() * sizeof(int)), position);
  }
}

TEST(FirstUses, AFewAreTheLibrarys) {
  const Owned type(strided(50, 1, 2));
  const auto before = analyses();
  expect_packs(of_strided(50, 1, 2), type, 3);
  if (waits()) {
    EXPECT_EQ(before, analyses());
  }
  if (packs_always()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

TEST(FirstUses, ManyBringOneAnalysis) {
  const Owned type(strided(200, 1, 3));
  const auto before = analyses(), packed_before = packed_messages();
  expect_packs(of_strided(200, 1, 3), type, 300);
  if (!under_gapless()) return;
  EXPECT_EQ(before + 1, analyses());
  EXPECT_GT(packed_messages(), packed_before + 100);
  EXPECT_LE(packed_messages(), packed_before + (waits() ? 299 : 300));
}

TEST(FirstUses, ALargeOneDoesNotWait) {
  const Owned type(strided(1 << 19, 1, 2));
  const auto before = analyses();
  expect_packs(of_strided(1 << 19, 1, 2), type);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

/// One use costs as much as the analysis, and little more: to weigh it is left to the second.
TEST(FirstUses, OneOfManyKilobytesWaitsOnce) {
  const Owned type(strided(8192, 1, 2));
  const auto before = analyses();
  expect_packs(of_strided(8192, 1, 2), type);
  if (waits()) {
    EXPECT_EQ(before, analyses());
  }
  expect_packs(of_strided(8192, 1, 2), type);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

/// A small datatype in a large number is a large use.
TEST(FirstUses, TheCountMatters) {
  constexpr int count = 100000;
  const Owned type(strided(2, 1, 2));
  const Packing packing = of_strided(2 * count, 1, 2);
  std::vector<int> packed(packing.expected.size());
  const auto before = analyses();
  int position = 0;
  MPI_Pack(packing.memory.data(), count, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)), &position,
           MPI_COMM_SELF);
  EXPECT_EQ(packing.expected, packed);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

struct List {
  MPI_Datatype handle;
  Packing packing;
};

List irregular_list(int blocks) {
  std::mt19937 random(1);
  std::vector<int> lengths, displacements;
  int next = 0;
  for (int block = 0; block < blocks; ++block) {
    lengths.push_back(1 + static_cast<int>(random() % 3));
    displacements.push_back(next);
    next += lengths.back() + 1 + static_cast<int>(random() % 5);
  }
  List list{MPI_DATATYPE_NULL, {counting(static_cast<std::size_t>(next)), {}}};
  for (std::size_t block = 0; block < lengths.size(); ++block) {
    for (int k = 0; k < lengths[block]; ++k) list.packing.expected.push_back(displacements[block] + k);
  }
  MPI_Type_indexed(blocks, lengths.data(), displacements.data(), MPI_INT, &list.handle);
  return list;
}

/// Analysing it takes as long as many uses, also if it is a child of the datatype that is used.
TEST(FirstUses, ALongListWaits) {
  const List list = irregular_list(100000);
  MPI_Datatype handle;
  MPI_Type_create_resized(list.handle, 0, 1 << 30, &handle);
  MPI_Datatype child = list.handle;
  MPI_Type_free(&child);
  const Owned type(handle);
  const auto before = analyses();
  expect_packs(list.packing, type, 2);
  if (waits()) {
    EXPECT_EQ(before, analyses());
  }
  expect_packs(list.packing, type, 60);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

/// Too few blocks for packing to save anything under Open MPI, and enough for slots to.
TEST(FirstUses, AListThatSlotsAreSoonerForIsAnalysed) {
  constexpr int blocks = 456, length = 3, stride = 5, uses = 100;
  if (size() < 2) GTEST_SKIP() << "slots are between two processes";
  std::vector<int> displacements;
  for (int block = 0; block < blocks; ++block) displacements.push_back(block * stride + block % 2);
  MPI_Datatype handle;
  MPI_Type_create_indexed_block(blocks, length, displacements.data(), MPI_INT, &handle);
  const Owned type(handle);
  const int partner = 1 - rank();
  const auto before = analyses();
  for (int use = 0; use < uses; ++use) {
    const std::vector<int> mine = counting(blocks * stride + length, 1000 * rank() + use);
    std::vector<int> theirs(mine.size(), -1), expected(theirs);
    const std::vector<int> sent = counting(mine.size(), 1000 * partner + use);
    for (const int displacement : displacements) {
      const auto first = static_cast<std::size_t>(displacement);
      std::copy_n(&sent[first], length, &expected[first]);
    }
    if (rank() == 0) MPI_Send(mine.data(), 1, type, partner, 0, MPI_COMM_WORLD);
    MPI_Recv(theirs.data(), 1, type, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank() == 1) MPI_Send(mine.data(), 1, type, partner, 0, MPI_COMM_WORLD);
    ASSERT_EQ(expected, theirs) << "use " << use;
  }
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

/// What is learnt of the messages of a datatype holds for the next one like it, and not for another one, which may have
/// the handle of one that has been freed.
TEST(FirstUses, EqualDatatypesAreOneKind) {
  const auto kind_of_strided = [](int blocks, int length, int stride) {
    const Owned type(strided(blocks, length, stride));
    const std::uint64_t unknown = kind_of(type);
    expect_packs(of_strided(blocks, length, stride), type, 300);
    if (waits()) {
      EXPECT_NE(unknown, kind_of(type));
    }
    return kind_of(type);
  };
  const std::uint64_t first = kind_of_strided(200, 1, 3);
  EXPECT_EQ(first, kind_of_strided(200, 1, 3));
  if (!under_gapless()) return;
  EXPECT_NE(first, kind_of_strided(200, 1, 4));
  EXPECT_NE(first, kind_of_strided(201, 1, 3));
  EXPECT_NE(first, kind_of_strided(200, 2, 3));
}

/// Short enough to cost little, and long enough for the analysis to cost more than of a vector.
TEST(FirstUses, AListOfAThousandWaits) {
  const List list = irregular_list(1000);
  const Owned type(list.handle);
  const auto before = analyses();
  expect_packs(list.packing, type, 5);
  if (waits()) {
    EXPECT_EQ(before, analyses());
  }
  expect_packs(list.packing, type, 60);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

TEST(FirstUses, ContiguousTypesAreSeenToBeContiguous) {
  MPI_Datatype handle;
  MPI_Type_contiguous(30, MPI_INT, &handle);
  const Owned type(handle);
  const auto before = analyses(), packed_before = packed_messages();
  expect_packs({counting(30), counting(30)}, type, 300);
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
  EXPECT_EQ(packed_before, packed_messages());
}

/// What was counted for a handle is not believed of the next datatype that has it.
TEST(FirstUses, AFreedDatatypeTakesItsUsesAlong) {
  const auto before = analyses();
  for (int round = 0; round < 200; ++round) {
    const int stride = 2 + round % 5;
    const Owned type(strided(50, 1, stride));
    expect_packs(of_strided(50, 1, stride), type, 2);
  }
  if (waits()) {
    EXPECT_EQ(before, analyses());
  }
}

/// Freed past gapless, which some Fortran bindings do: the count is wrong for the next datatype, its data is not.
TEST(FirstUses, HandlesFreedPastUsMayComeAgain) {
  for (int round = 0; round < 300; ++round) {
    const int blocks = 1 + round % 70, stride = 2 + round % 5;
    MPI_Datatype type = strided(blocks, 1, stride);
    MPI_Type_commit(&type);
    expect_packs(of_strided(blocks, 1, stride), type, 1 + round % 40);
    GAPLESS_TEST_NATIVE(Type_free)(&type);
    if (round % 3 != 0) continue;
    const List list = irregular_list(3000 + round);
    const Owned listed(list.handle);
    expect_packs(list.packing, listed, 1 + round % 7);
  }
}

/// More datatypes than any table of early uses holds.
TEST(FirstUses, EveryOneOfManyDatatypesIsAnalysedInTheEnd) {
  constexpr int many = 3000;
  std::vector<MPI_Datatype> types;
  for (int i = 0; i < many; ++i) {
    types.push_back(strided(40 + i % 7, 1, 2));
    MPI_Type_commit(&types.back());
  }
  const auto before = analyses();
  for (int use = 0; use < 120; ++use) {
    for (int i = 0; i < many; ++i) {
      const int blocks = 40 + i % 7;
      if (use % 40 == 0) {
        expect_packs(of_strided(blocks, 1, 2), types[static_cast<std::size_t>(i)]);
      } else {
        int position = 0;
        static const std::vector<int> memory = counting(100);
        int packed[50];
        MPI_Pack(memory.data(), 1, types[static_cast<std::size_t>(i)], packed, sizeof packed, &position, MPI_COMM_SELF);
      }
    }
  }
  if (under_gapless()) {
    EXPECT_EQ(before + many, analyses());
  }
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

TEST(FirstUses, MessagesChangeTheirWayUnseen) {
  const Owned type(strided(300, 1, 2));
  const Packing packing = of_strided(300, 1, 2);
  const auto before = analyses();
  for (int round = 0; round < 60; ++round) {
    std::vector<int> received(600, -1);
    MPI_Sendrecv(packing.memory.data(), 1, type, rank(), 1, received.data(), 1, type, rank(), 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    ASSERT_EQ(placed(std::vector<int>(600, -1), packing.expected, 1, 2), received) << round;
  }
  if (under_gapless()) {
    EXPECT_EQ(before + 1, analyses());
  }
}

/// An erroneous program is told what it would be told without gapless, however often it tries.
TEST(FirstUses, UncommittedDatatypesStayErrors) {
  const ReturnErrors on(MPI_COMM_SELF);
  MPI_Datatype type;
  MPI_Type_vector(10, 1, 2, MPI_INT, &type);
  const std::vector<int> memory = counting(20);
  int packed[10];
  for (int use = 0; use < 100; ++use) {
    int position = 0;
    const int code = MPI_Pack(memory.data(), 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    ASSERT_EQ(MPI_ERR_TYPE, error_class(code)) << use;
  }
  MPI_Type_commit(&type);
  expect_packs(of_strided(10, 1, 2), type, 100);
  MPI_Type_free(&type);
}

/// Two ints with a gap, under that many structs of `children` children each, of which only the first has an element
/// unless `all` have.
MPI_Datatype tree(int depth, int children, bool all) {
  MPI_Datatype type = strided(2, 1, 2);
  MPI_Aint extent = 4 * sizeof(int);
  for (; depth > 0; --depth) {
    const auto n = static_cast<std::size_t>(children);
    std::vector<int> lengths(n, all ? 1 : 0);
    std::vector<MPI_Aint> places;
    for (std::size_t k = 0; k < n; ++k) places.push_back(static_cast<MPI_Aint>(k) * extent);
    const std::vector<MPI_Datatype> types(n, type);
    lengths.front() = 1;
    MPI_Type_create_struct(children, lengths.data(), places.data(), types.data(), &type);
    MPI_Datatype child = types.front();
    MPI_Type_free(&child);
    extent = all ? extent * children : extent;
  }
  return type;
}

#ifdef OPEN_MPI
constexpr bool gives_children_handles_of_their_own = true;
#else
constexpr bool gives_children_handles_of_their_own = false;
#endif
constexpr std::uint64_t analyses_of_a_tree = gives_children_handles_of_their_own ? 0 : 1;

/// A library that gives each child a handle of its own shows a tree of 2^40 types here. Nobody looks at them all.
TEST(FirstUses, OfATreeFewTypesAreLookedAt) {
  const Owned type(tree(40, 2, false));
  const auto before = analyses();
  const std::vector<int> memory = counting(4);
  for (int use = 0; use < 300; ++use) {
    int packed[2] = {-1, -1}, position = 0;
    MPI_Pack(memory.data(), 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    ASSERT_EQ(0, packed[0]);
    ASSERT_EQ(2, packed[1]);
  }
  if (waits()) {
    EXPECT_EQ(before + analyses_of_a_tree, analyses());
  }
}

/// To decode each of 37449 handles takes as long as hundreds of uses.
TEST(FirstUses, ATreeOfManyTypesWaits) {
  const Owned type(tree(5, 8, true));
  const auto before = analyses();
  expect_packs(of_strided(2 << 15, 1, 2), type, 2);
  if (gives_children_handles_of_their_own ? waits() : under_gapless()) {
    EXPECT_EQ(before + analyses_of_a_tree, analyses());
  }
}

}  // namespace
}  // namespace gapless::test

// Handles come and go: types freed straight after use, handles used again for another type, attributes, and buffers
// whose operation still runs.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/packs_something.hpp"

namespace gapless::test {
namespace {

std::vector<int> pack_all(const std::vector<int>& values, MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  std::vector<int> packed(static_cast<std::size_t>(size) / sizeof(int) + 1, -1);
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(values.data(), 1, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)),
                                  &position, MPI_COMM_WORLD));
  packed.pop_back();
  return packed;
}

/// Libraries hand out a freed handle again at once: nothing known about the old type may be believed of the new one.
TEST(Lifetimes, ReusedHandlesAreNewTypes) {
  const PacksSomething packs(100);
  const std::vector<int> values = counting(400);
  for (int round = 0; round < 300; ++round) {
    const int blocks = 1 + round % 7;
    const int length = 1 + round % 3;
    const int stride = length + round % 5;
    MPI_Datatype type = strided(blocks, length, stride);
    MPI_Type_commit(&type);
    EXPECT_EQ(picked(values, blocks, length, stride), pack_all(values, type)) << round;
    MPI_Type_free(&type);
  }
}

/// The attribute callbacks of a program may use the datatype that ends, before or after gapless has forgotten it.
TEST(Lifetimes, DeleteCallbacksMayUseTheDatatype) {
  const PacksSomething packs(100);
  static const std::vector<int> values = counting(400);
  static int wrong;
  wrong = 0;
  const auto pack_again = [](MPI_Datatype type, int, void* stride, void*) -> int {
    const std::vector<int> packed = pack_all(values, type);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      wrong += packed[i] != static_cast<int>(i * reinterpret_cast<std::uintptr_t>(stride));
    }
    return MPI_SUCCESS;
  };
  int keyval;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, pack_again, &keyval, nullptr);
  for (int round = 0; round < 100; ++round) {
    const int blocks = 1 + round % 7;
    const int stride = 2 + round % 5;
    MPI_Datatype type = strided(blocks, 1, stride);
    MPI_Type_commit(&type);
    void* value = reinterpret_cast<void*>(static_cast<std::uintptr_t>(stride));
    if (round % 2 == 0) MPI_Type_set_attr(type, keyval, value);
    EXPECT_EQ(picked(values, blocks, 1, stride), pack_all(values, type)) << round;
    if (round % 2 != 0) MPI_Type_set_attr(type, keyval, value);
    MPI_Type_free(&type);
  }
  EXPECT_EQ(0, wrong);
  MPI_Type_free_keyval(&keyval);
}

TEST(Lifetimes, DeleteCallbacksMayFail) {
  const PacksSomething packs(40);
  const auto fail = [](MPI_Datatype, int, void*, void*) -> int { return MPI_ERR_OTHER; };
  ReturnErrors world(MPI_COMM_WORLD), self(MPI_COMM_SELF);
  int keyval;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, fail, &keyval, nullptr);
  const std::vector<int> values = counting(400);
  for (int round = 0; round < 60; ++round) {
    const int blocks = 1 + round % 7;
    const int stride = 2 + round % 5;
    MPI_Datatype type = strided(blocks, 1, stride);
    MPI_Type_commit(&type);
    EXPECT_EQ(picked(values, blocks, 1, stride), pack_all(values, type)) << round;
    MPI_Type_set_attr(type, keyval, nullptr);
    MPI_Type_free(&type);  // says success in both libraries, and the handle may come again
  }
  MPI_Type_free_keyval(&keyval);
}

TEST(Lifetimes, TypesMayBeFreedStraightAfterSending) {
  const PacksSomething packs(4);
  std::vector<int> source = counting(3000);
  std::vector<int> destination(3000, -1);
  MPI_Datatype type = strided(1000, 2, 3);
  MPI_Type_commit(&type);
  MPI_Request requests[2];
  MPI_Irecv(destination.data(), 1, type, rank(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(source.data(), 1, type, rank(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Datatype another = strided(500, 1, 6);
  MPI_Type_commit(&another);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(3000, -1), picked(source, 1000, 2, 3), 2, 3), destination);

  destination.assign(3000, -1);
  MPI_Irecv(destination.data(), 1, another, rank(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send(source.data(), 1, another, rank(), 1, MPI_COMM_WORLD);
  MPI_Type_free(&another);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(3000, -1), picked(source, 500, 1, 6), 1, 6), destination);
}

TEST(Lifetimes, ChildrenMayBeFreedBeforeTheirParents) {
  const PacksSomething packs;
  MPI_Datatype child = strided(3, 1, 2);
  MPI_Datatype parent, copy;
  MPI_Type_contiguous(4, child, &parent);
  MPI_Type_free(&child);
  MPI_Type_dup(parent, &copy);
  MPI_Type_free(&parent);
  const Owned type(copy);
  EXPECT_EQ(picked(counting(24), 12, 1, 2), pack_all(counting(24), type));
}

TEST(Lifetimes, ATypeHasNoAttributesButTheProgramsOwn) {
  const PacksSomething packs;
  int keyval;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, nullptr);
  const Owned type(strided(3, 1, 2));
  int value = 42;
  MPI_Type_set_attr(type, keyval, &value);
  EXPECT_EQ(3u, pack_all(counting(6), type).size());
  void* found = nullptr;
  int present = 0;
  MPI_Type_get_attr(type, keyval, &found, &present);
  EXPECT_EQ(1, present);
  EXPECT_EQ(&value, found);
  MPI_Datatype copy;
  MPI_Type_dup(type, &copy);
  MPI_Type_get_attr(copy, keyval, &found, &present);
  EXPECT_EQ(0, present);
  MPI_Type_free(&copy);
  MPI_Type_free_keyval(&keyval);
}

TEST(Lifetimes, CommunicatorAttributesAreLeftAlone) {
  const PacksSomething packs(2);
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
  MPI_Comm own, copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  int value = 7;
  MPI_Comm_set_attr(own, keyval, &value);
  const Owned type(strided(3, 1, 2));
  std::vector<int> source = counting(6);
  std::vector<int> destination(6, -1);
  MPI_Sendrecv(source.data(), 1, type, rank(), 0, destination.data(), 1, type, rank(), 0, own, MPI_STATUS_IGNORE);
  MPI_Comm_dup(own, &copy);
  void* found = nullptr;
  int present = 0;
  MPI_Comm_get_attr(copy, keyval, &found, &present);
  EXPECT_EQ(1, present);
  EXPECT_EQ(&value, found);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&own);
  MPI_Comm_free_keyval(&keyval);
}

TEST(Lifetimes, PersistentOperationsStartAgainAndAgain) {
  const PacksSomething packs(10);
  const Owned type(strided(50, 2, 3));
  std::vector<int> source(150), destination(150, -1);
  MPI_Request requests[2];
  MPI_Send_init(source.data(), 1, type, rank(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(destination.data(), 1, type, rank(), 1, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 5; ++round) {
    std::iota(source.begin(), source.end(), round);  // in place: the request keeps the address
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(placed(std::vector<int>(150, -1), picked(source, 50, 2, 3), 2, 3), destination);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace
}  // namespace gapless::test

// Several threads send and receive strided data at once, with types of their own and with shared ones.

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int threads = 4;
constexpr int rounds = 40;

template <typename Work>
void in_threads(Work work) {
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
  for (std::thread& thread : all) thread.join();
}

int partner() { return (rank() ^ 1) < size() ? rank() ^ 1 : rank(); }

/// Counts wrong messages; checks of GoogleTest are made after the threads are done.
int exchange_in(int thread, int round, MPI_Datatype type, int length, int stride) {
  const int blocks = 50;
  const auto size = static_cast<std::size_t>(blocks * stride);
  std::vector<int> source = counting(size, 100000 * partner() + 1000 * thread + round);
  const std::vector<int> mine = counting(size, 100000 * rank() + 1000 * thread + round);
  std::vector<int> destination(size, -1);
  MPI_Sendrecv(mine.data(), 1, type, partner(), thread, destination.data(), 1, type, partner(), thread, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return destination != placed(std::vector<int>(size, -1), picked(source, blocks, length, stride), length, stride);
}

TEST(Threads, ShareAType) {
  const Owned type(strided(50, 2, 5));
  std::atomic<int> wrong = 0;
  in_threads([&](int thread) {
    for (int round = 0; round < rounds; ++round) wrong += exchange_in(thread, round, type, 2, 5);
  });
  EXPECT_EQ(0, wrong);
}

/// Every thread creates, uses and frees types of its own, so handles change hands between threads.
TEST(Threads, MakeAndFreeTheirOwnTypes) {
  std::atomic<int> wrong = 0;
  in_threads([&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      const int length = 1 + (thread + round) % 3;
      const Owned type(strided(50, length, length + 2));
      wrong += exchange_in(thread, round, type, length, length + 2);
    }
  });
  EXPECT_EQ(0, wrong);
}

TEST(Threads, PackAtTheSameTime) {
  const Owned type(strided(200, 2, 5));
  const std::vector<int> values = counting(1000);
  const std::vector<int> wanted = picked(values, 200, 2, 5);
  std::atomic<int> wrong = 0;
  in_threads([&](int) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> packed(400, -1);
      int position = 0;
      MPI_Pack(values.data(), 1, type, packed.data(), 1600, &position, MPI_COMM_WORLD);
      wrong += packed != wanted || position != 1600;
    }
  });
  EXPECT_EQ(0, wrong);
}

}  // namespace
}  // namespace gapless::test

// Several threads call MPI on GPU memory at once: messages, collectives on communicators of their own, and one-sided
// calls under requests, each with data of its own.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int threads = 4, rounds = 12;
constexpr int blocks = 50, length = 2, stride = 5;
constexpr std::size_t span = static_cast<std::size_t>(blocks * stride);

void in_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
  for (std::thread& thread : all) thread.join();
}

int after() { return (rank() + 1) % size(); }
int before() { return (rank() + size() - 1) % size(); }

/// What a thread of a process has to send in a round.
std::vector<int> values_of(int process, int thread, int round) {
  return counting(span, 1'000'000 * process + 10'000 * thread + 300 * round);
}
std::vector<int> untouched() { return std::vector<int>(span, -1); }
/// What is left of memory that was untouched when the blocks of `values` have arrived in it.
std::vector<int> arrived(const std::vector<int>& values) {
  return placed(untouched(), picked(values, blocks, length, stride), length, stride);
}

class GpuThreads : public testing::Test {
 protected:
  std::uint64_t before_ = gpu_messages();
  std::atomic<int> wrong_ = 0;

  void TearDown() override {
    EXPECT_EQ(0, wrong_);
    if (under_gapless()) {
      EXPECT_LT(before_, gpu_messages());
    }
  }
  void expect(bool right) { wrong_ += right ? 0 : 1; }
};

TEST_F(GpuThreads, ExchangeMessages) {
  const Owned type(strided(blocks, length, stride));
  in_threads([&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> values = values_of(rank(), thread, round);
      Ints outgoing(values, true), incoming(untouched(), true);
      std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      MPI_Irecv(incoming.data(), 1, type, before(), thread, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(outgoing.data(), 1, type, after(), thread, MPI_COMM_WORLD, &requests[1]);
      if (round % 3 == 0) {
        expect(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      } else if (round % 3 == 1) {
        int index = 0;
        for (int k = 0; k < 2; ++k) expect(MPI_Waitany(2, requests.data(), &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      } else {
        for (MPI_Request& request : requests) {
          for (int flag = 0; flag == 0;) expect(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        }
      }
      expect(incoming.values() == arrived(values_of(before(), thread, round)));
    }
  });
}

/// MPI wants collectives of one communicator in one order, so every thread has its own.
TEST_F(GpuThreads, CallCollectives) {
  std::array<MPI_Comm, threads> worlds;
  for (MPI_Comm& world : worlds) MPI_Comm_dup(MPI_COMM_WORLD, &world);
  const Owned type(strided(blocks, length, stride));
  in_threads([&](int thread) {
    const MPI_Comm world = worlds[static_cast<std::size_t>(thread)];
    for (int round = 0; round < rounds; ++round) {
      Ints memory(rank() == 0 ? values_of(0, thread, round) : untouched(), true);
      MPI_Request request = MPI_REQUEST_NULL;
      if (round % 2 == 0) {
        expect(MPI_Bcast(memory.data(), 1, type, 0, world) == MPI_SUCCESS);
      } else {
        expect(MPI_Ibcast(memory.data(), 1, type, 0, world, &request) == MPI_SUCCESS);
        expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      }
      expect(memory.values() == (rank() == 0 ? values_of(0, thread, round) : arrived(values_of(0, thread, round))));
    }
  });
  for (MPI_Comm& world : worlds) MPI_Comm_free(&world);
}

/// A part of the window for each thread of the process before, and a place that all threads add to.
TEST_F(GpuThreads, CallOneSided) {
  constexpr std::size_t part = span * sizeof(int);
  std::vector<int> memory(span * (threads + 1), 0);
  const int sum_at = static_cast<int>(span) * threads;
  MPI_Win window;
  MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), static_cast<int>(sizeof(int)),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const Owned type(strided(blocks, length, stride));
  MPI_Win_lock_all(0, window);
  in_threads([&](int thread) {
    const MPI_Aint mine = static_cast<MPI_Aint>(span) * thread;
    const auto finish = [&](int code, MPI_Request& request) {
      expect(code == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    };
    Ints one(std::vector<int>{1}, true), old(std::vector<int>{-1}, true);
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> values = values_of(rank(), thread, round);
      Ints outgoing(values, true), back(untouched(), true), older(untouched(), true);
      MPI_Request request = MPI_REQUEST_NULL;
      finish(MPI_Rput(outgoing.data(), 1, type, after(), mine, 1, type, window, &request), request);
      expect(MPI_Win_flush(after(), window) == MPI_SUCCESS);
      finish(MPI_Rget(back.data(), 1, type, after(), mine, 1, type, window, &request), request);
      expect(back.values() == arrived(values));
      finish(MPI_Rget_accumulate(outgoing.data(), 1, type, older.data(), 1, type, after(), mine, 1, type, MPI_SUM,
                                 window, &request),
             request);
      expect(older.values() == arrived(values));
      finish(MPI_Raccumulate(one.data(), 1, MPI_INT, after(), sum_at, 1, MPI_INT, MPI_SUM, window, &request), request);
      expect(MPI_Fetch_and_op(one.data(), old.data(), MPI_INT, after(), sum_at, MPI_SUM, window) == MPI_SUCCESS);
      expect(MPI_Win_flush(after(), window) == MPI_SUCCESS);
      expect(old.values()[0] >= 2 * round + 1 && old.values()[0] < 2 * rounds * threads);
    }
  });
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(2 * rounds * threads, memory[static_cast<std::size_t>(sum_at)]);
  for (int thread = 0; thread < threads; ++thread) {
    std::vector<int> wanted(span, 0);
    const std::vector<int> sent = values_of(before(), thread, rounds - 1);
    for (std::size_t i = 0; i < span; ++i) wanted[i] = i % stride < length ? 2 * sent[i] : 0;
    const auto first = memory.begin() + static_cast<std::ptrdiff_t>(span) * thread;
    EXPECT_EQ(wanted, std::vector<int>(first, first + static_cast<std::ptrdiff_t>(part / sizeof(int))));
  }
  MPI_Win_free(&window);
}

}  // namespace
}  // namespace gapless::test

// One-sided calls with GPU memory at their origin, on windows in host memory.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

/// The ways to complete what was begun, at its origin.
enum class Completion { fence, unlock, flush, flush_local, unlock_all, flush_all, start_complete };
constexpr Completion completions[] = {Completion::fence,         Completion::unlock,     Completion::flush,
                                      Completion::flush_local,   Completion::unlock_all, Completion::flush_all,
                                      Completion::start_complete};

class OneSided : public testing::Test {
 protected:
  static constexpr MPI_Aint window_bytes = 16384;
  int target_ = (rank() + 1) % size();
  std::vector<std::byte> memory_ = std::vector<std::byte>(window_bytes);
  MPI_Win window_ = MPI_WIN_NULL;
  std::uint64_t before_ = gpu_messages();

  void SetUp() override {
    MPI_Win_create(memory_.data(), window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  }
  void TearDown() override {
    MPI_Win_free(&window_);
    if (under_gapless()) {
      EXPECT_LT(before_, gpu_messages());
    }
  }

  void fill_window() {
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_[i] = static_cast<std::byte>(i * 3 + 50 * static_cast<std::size_t>(rank()));
    MPI_Barrier(MPI_COMM_WORLD);
  }

  static void expect_success(int code) { EXPECT_EQ(MPI_SUCCESS, code); }

  /// `operation` between the beginning and the end of an epoch; `look` when it must be complete at its origin.
  void in_epoch(Completion how, const std::function<void()>& operation, const std::function<void()>& look) {
    const bool is_fence = how == Completion::fence, is_started = how == Completion::start_complete;
    const bool locks_all = how == Completion::unlock_all || how == Completion::flush_all;
    MPI_Group world, mine, others;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int before = (rank() + size() - 1) % size();
    MPI_Group_incl(world, 1, &target_, &mine);
    MPI_Group_incl(world, 1, &before, &others);
    if (is_fence) MPI_Win_fence(0, window_);
    if (is_started) MPI_Win_post(others, 0, window_);
    if (is_started) MPI_Win_start(mine, 0, window_);
    if (locks_all) MPI_Win_lock_all(0, window_);
    if (!is_fence && !is_started && !locks_all) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target_, 0, window_);
    operation();
    if (how == Completion::flush) expect_success(MPI_Win_flush(target_, window_));
    if (how == Completion::flush_local) expect_success(MPI_Win_flush_local(target_, window_));
    if (how == Completion::flush_all) expect_success(MPI_Win_flush_all(window_));
    const bool is_flushed = how == Completion::flush || how == Completion::flush_local || how == Completion::flush_all;
    if (is_flushed) look();
    if (is_fence) expect_success(MPI_Win_fence(0, window_));
    if (is_started) expect_success(MPI_Win_complete(window_));
    if (is_started) expect_success(MPI_Win_wait(window_));
    if (locks_all) expect_success(MPI_Win_unlock_all(window_));
    if (!is_fence && !is_started && !locks_all) expect_success(MPI_Win_unlock(target_, window_));
    if (!is_flushed) look();
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    MPI_Group_free(&others);
  }

  /// What `operation` leaves of origin, result and window is the same from GPU memory as from host memory.
  void expect_same(const std::string& what, const HostOrGpuCall& operation) {
    expect_same_by({std::begin(completions), std::end(completions)}, what, operation);
  }
  void expect_same_by(const std::vector<Completion>& ways, const std::string& what, const HostOrGpuCall& operation) {
    for (const Completion how : ways) {
      SCOPED_TRACE(what + ", completion " + std::to_string(static_cast<int>(how)));
      TwoMemories wanted;
      OnGpu sent(wanted.sent), received(wanted.received);
      fill_window();
      in_epoch(
          how, [&] { ASSERT_EQ(MPI_SUCCESS, operation(wanted.sent.data(), wanted.received.data())); }, [] {});
      MPI_Barrier(MPI_COMM_WORLD);
      const std::vector<std::byte> wanted_window = memory_;
      fill_window();
      const auto packed = gpu_messages();
      in_epoch(
          how, [&] { EXPECT_EQ(MPI_SUCCESS, operation(sent.at(), received.at())); },
          [&] { EXPECT_TRUE(same_bytes(wanted.received, received.bytes())); });
      MPI_Barrier(MPI_COMM_WORLD);
      EXPECT_TRUE(same_bytes(wanted_window, memory_));
      EXPECT_TRUE(same_bytes(wanted.sent, sent.bytes()));
      if (under_gapless()) {
        EXPECT_LT(packed, gpu_messages());
      }
    }
  }
};

TEST_F(OneSided, PutsAndGets) {
  for_datatypes([&](MPI_Datatype type) {
    expect_same("Put", [&](void* s, void*) { return MPI_Put(s, 3, type, target_, 64, 3, type, window_); });
    expect_same("Get", [&](void*, void* r) { return MPI_Get(r, 3, type, target_, 64, 3, type, window_); });
  });
}

TEST_F(OneSided, Accumulates) {
  for_datatypes([&](MPI_Datatype type) {
    expect_same("Accumulate",
                [&](void* s, void*) { return MPI_Accumulate(s, 3, type, target_, 64, 3, type, MPI_SUM, window_); });
    expect_same("Get_accumulate", [&](void* s, void* r) {
      return MPI_Get_accumulate(s, 3, type, r, 3, type, target_, 64, 3, type, MPI_SUM, window_);
    });
  });
  expect_same("Fetch_and_op",
              [&](void* s, void* r) { return MPI_Fetch_and_op(s, r, MPI_INT, target_, 64, MPI_SUM, window_); });
  expect_same("Compare_and_swap", [&](void* s, void* r) {
    return MPI_Compare_and_swap(s, static_cast<std::byte*>(s) + 4, r, MPI_INT, target_, 64, window_);
  });
}

#if !defined(OPEN_MPI)  // which lacks them
TEST_F(OneSided, OfLargeCounts) {
  const auto wait = [](int code, MPI_Request& request) {
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  for_datatypes([&](MPI_Datatype type) {
    expect_same("Put_c", [&](void* s, void*) { return MPI_Put_c(s, 3, type, target_, 64, 3, type, window_); });
    expect_same("Get_c", [&](void*, void* r) { return MPI_Get_c(r, 3, type, target_, 64, 3, type, window_); });
    expect_same("Accumulate_c",
                [&](void* s, void*) { return MPI_Accumulate_c(s, 3, type, target_, 64, 3, type, MPI_SUM, window_); });
    expect_same("Get_accumulate_c", [&](void* s, void* r) {
      return MPI_Get_accumulate_c(s, 3, type, r, 3, type, target_, 64, 3, type, MPI_SUM, window_);
    });
    // No requests but of a passive target.
    const std::vector<Completion> passive{Completion::unlock, Completion::flush, Completion::unlock_all};
    expect_same_by(passive, "Rput_c", [&](void* s, void*) {
      MPI_Request request;
      return wait(MPI_Rput_c(s, 3, type, target_, 64, 3, type, window_, &request), request);
    });
    expect_same_by(passive, "Rget_c", [&](void*, void* r) {
      MPI_Request request;
      return wait(MPI_Rget_c(r, 3, type, target_, 64, 3, type, window_, &request), request);
    });
    expect_same_by(passive, "Raccumulate_c", [&](void* s, void*) {
      MPI_Request request;
      return wait(MPI_Raccumulate_c(s, 3, type, target_, 64, 3, type, MPI_SUM, window_, &request), request);
    });
    expect_same_by(passive, "Rget_accumulate_c", [&](void* s, void* r) {
      MPI_Request request;
      return wait(MPI_Rget_accumulate_c(s, 3, type, r, 3, type, target_, 64, 3, type, MPI_SUM, window_, &request),
                  request);
    });
  });
}
#endif

TEST_F(OneSided, UnderRequests) {
  for_datatypes([&](MPI_Datatype type) {
    TwoMemories wanted;
    OnGpu sent(wanted.sent), received(wanted.received);
    MPI_Request request;
    fill_window();
    MPI_Win_lock_all(0, window_);
    GAPLESS_TEST_NATIVE(Get)(wanted.received.data(), 3, type, target_, 64, 3, type, window_);
    MPI_Win_flush_all(window_);
    EXPECT_EQ(MPI_SUCCESS, MPI_Rget(received.at(), 3, type, target_, 64, 3, type, window_, &request));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_TRUE(same_bytes(wanted.received, received.bytes()));
    EXPECT_EQ(MPI_SUCCESS, MPI_Rput(sent.at(), 3, type, target_, 4096, 3, type, window_, &request));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Win_flush_all(window_);
    TwoMemories back = wanted;
    GAPLESS_TEST_NATIVE(Get)(back.sent.data(), 3, type, target_, 4096, 3, type, window_);
    MPI_Win_flush_all(window_);
    EXPECT_TRUE(same_bytes(wanted.sent, back.sent));
    MPI_Win_unlock_all(window_);
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

/// A flush completes what was begun under a request as well, so the program may look, and write anew, before it waits.
TEST_F(OneSided, RequestsThatAFlushCompletes) {
  for_datatypes([&](MPI_Datatype type) {
    for (const Completion how : {Completion::flush, Completion::flush_local, Completion::flush_all}) {
      TwoMemories wanted;
      OnGpu sent(wanted.sent), received(wanted.received), result(wanted.received);
      const std::vector<std::byte> other(wanted.received.size(), std::byte{0x6B});
      MPI_Request requests[3];
      fill_window();
      MPI_Win_lock_all(0, window_);
      GAPLESS_TEST_NATIVE(Get)(wanted.received.data(), 3, type, target_, 64, 3, type, window_);
      MPI_Win_flush_all(window_);
      EXPECT_EQ(MPI_SUCCESS, MPI_Rget(received.at(), 3, type, target_, 64, 3, type, window_, &requests[0]));
      EXPECT_EQ(MPI_SUCCESS, MPI_Rput(sent.at(), 3, type, target_, 4096, 3, type, window_, &requests[1]));
      EXPECT_EQ(MPI_SUCCESS, MPI_Rget_accumulate(sent.at(), 3, type, result.at(), 3, type, target_, 64, 3, type,
                                                 MPI_NO_OP, window_, &requests[2]));
      if (how == Completion::flush) expect_success(MPI_Win_flush(target_, window_));
      if (how == Completion::flush_local) expect_success(MPI_Win_flush_local(target_, window_));
      if (how == Completion::flush_all) expect_success(MPI_Win_flush_all(window_));
      EXPECT_TRUE(same_bytes(wanted.received, received.bytes()));
      EXPECT_TRUE(same_bytes(wanted.received, result.bytes()));
      received.write(other);
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
      EXPECT_TRUE(same_bytes(other, received.bytes()));
      MPI_Win_unlock_all(window_);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  });
}

/// What the library refuses is its own error, and leaves nothing behind.
TEST_F(OneSided, MistakesOfTheProgram) {
  const Owned type(strided(3, 2, 4));
  TwoMemories values;
  OnGpu sent(values.sent), received(values.received);
  const int nobody = size();
  MPI_Request request = MPI_REQUEST_NULL;
  const auto expect_error = [&](int wanted, int code) {
    EXPECT_EQ(wanted, error_class(code));
    EXPECT_EQ(MPI_REQUEST_NULL, request);
  };
  MPI_Win_lock_all(0, window_);
  expect_error(MPI_ERR_RANK, MPI_Rput(sent.at(), 3, type, nobody, 64, 3, type, window_, &request));
  expect_error(MPI_ERR_RANK, MPI_Rget(received.at(), 3, type, nobody, 64, 3, type, window_, &request));
  expect_error(MPI_ERR_RANK, MPI_Raccumulate(sent.at(), 3, type, nobody, 64, 3, type, MPI_SUM, window_, &request));
  expect_error(MPI_ERR_RANK, MPI_Rget_accumulate(sent.at(), 3, type, received.at(), 3, type, nobody, 64, 3, type,
                                                 MPI_SUM, window_, &request));
  expect_error(MPI_ERR_RANK, MPI_Put(sent.at(), 3, type, nobody, 64, 3, type, window_));
  expect_error(MPI_ERR_RANK, MPI_Fetch_and_op(sent.at(), received.at(), MPI_INT, nobody, 64, MPI_SUM, window_));
  expect_error(MPI_ERR_RANK, MPI_Compare_and_swap(sent.at(), sent.at(4), received.at(), MPI_INT, nobody, 64, window_));
  expect_error(MPI_ERR_TYPE, MPI_Rput(sent.at(), 3, MPI_DATATYPE_NULL, target_, 64, 3, type, window_, &request));
  expect_error(MPI_ERR_TYPE, MPI_Rget(received.at(), 3, type, target_, 64, 3, MPI_DATATYPE_NULL, window_, &request));
  EXPECT_EQ(MPI_SUCCESS, MPI_Get(received.at(), 3, type, target_, 64, 3, type, window_));
  MPI_Win_unlock_all(window_);
}

/// Synchronising with one target says nothing of what another is asked for.
TEST_F(OneSided, SeveralTargetsAtOnce) {
  TwoMemories wanted;
  fill_window();
  std::vector<std::byte> expected = wanted.received;
  OnGpu received(wanted.received);
  MPI_Win_lock_all(0, window_);
  for (int k = 0; k < size(); ++k)
    GAPLESS_TEST_NATIVE(Get)(expected.data() + 256 * k, 100, MPI_BYTE, k, 64, 100, MPI_BYTE, window_);
  MPI_Win_flush_all(window_);
  for (int k = 0; k < size(); ++k)
    EXPECT_EQ(MPI_SUCCESS, MPI_Get(received.at(256 * k), 100, MPI_BYTE, k, 64, 100, MPI_BYTE, window_));
  for (int k = size() - 1; k >= 0; --k) EXPECT_EQ(MPI_SUCCESS, MPI_Win_flush(k, window_));
  EXPECT_TRUE(same_bytes(expected, received.bytes()));
  MPI_Win_unlock_all(window_);
}

/// Nobody is asked for anything, and to synchronise with nobody completes nothing.
TEST_F(OneSided, OfNobody) {
  TwoMemories wanted;
  OnGpu received(wanted.received);
  fill_window();
  MPI_Win_lock_all(0, window_);
  GAPLESS_TEST_NATIVE(Get)(wanted.received.data(), 500, MPI_INT, target_, 64, 500, MPI_INT, window_);
  MPI_Win_flush_all(window_);
  EXPECT_EQ(MPI_SUCCESS, MPI_Get(received.at(), 500, MPI_INT, target_, 64, 500, MPI_INT, window_));
#if !defined(OPEN_MPI)  // 5.0.11 crashes
  EXPECT_EQ(MPI_SUCCESS, MPI_Win_flush(MPI_PROC_NULL, window_));
#endif
  EXPECT_EQ(MPI_SUCCESS, MPI_Win_flush(target_, window_));
  EXPECT_TRUE(same_bytes(wanted.received, received.bytes()));
  const std::vector<std::byte> other(wanted.received.size(), std::byte{0x6B});
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_SUCCESS, MPI_Get(received.at(), 500, MPI_INT, MPI_PROC_NULL, 64, 500, MPI_INT, window_));
  EXPECT_EQ(MPI_SUCCESS, MPI_Rget(received.at(), 500, MPI_INT, MPI_PROC_NULL, 64, 500, MPI_INT, window_, &request));
  received.write(other);
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI_Win_unlock_all(window_);
  EXPECT_TRUE(same_bytes(other, received.bytes()));
  MPI_Barrier(MPI_COMM_WORLD);
}

/// What cannot be packed is not begun.
TEST_F(OneSided, AFailureOfTheGpuLeavesTheWindowAsItIs) {
  const Owned type(strided(3, 2, 4));
  TwoMemories values;
  OnGpu sent(values.sent);
  MPI_Request request = MPI_REQUEST_NULL;
  fill_window();
  const std::vector<std::byte> before = memory_;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window_);
  const auto expect_error = [&](const std::function<int()>& call) {
    if (!gpu_fails_on_request()) return;
    fail_next("run");
    EXPECT_NE(MPI_SUCCESS, call());
    EXPECT_EQ(MPI_REQUEST_NULL, request);
  };
  expect_error([&] { return MPI_Put(sent.at(), 3, type, target_, 64, 3, type, window_); });
  expect_error([&] { return MPI_Accumulate(sent.at(), 3, type, target_, 64, 3, type, MPI_SUM, window_); });
  expect_error([&] { return MPI_Rput(sent.at(), 3, type, target_, 64, 3, type, window_, &request); });
  expect_error([&] { return MPI_Raccumulate(sent.at(), 3, type, target_, 64, 3, type, MPI_SUM, window_, &request); });
  MPI_Win_flush_all(window_);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(same_bytes(before, memory_));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(MPI_SUCCESS, MPI_Put(sent.at(), 3, type, target_, 64, 3, type, window_));
  MPI_Win_unlock_all(window_);
}

/// Where all processes are known to run gapless, none is left alone in the library.
TEST(Windows, OnGpuMemoryAreRefusedByAll) {
  if (std::getenv("GAPLESS_ALL_RANKS") == nullptr) GTEST_SKIP() << "not all processes are known to run gapless";
  const ReturnErrors errors(MPI_COMM_WORLD);
  TwoMemories memories;
  OnGpu memory(memories.sent);
  for (int refused = 0; refused < size(); ++refused) {
    void* mine = rank() == refused ? memory.at() : memories.received.data();
    MPI_Win window = MPI_WIN_NULL;
    const int code = MPI_Win_create(mine, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    EXPECT_NE(MPI_SUCCESS, code);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    EXPECT_NE(nullptr, std::strstr(text, "MPI_Win_create")) << text;
    EXPECT_EQ(rank() != refused, std::strstr(text, "another process") != nullptr) << text;
  }
  MPI_Win window = MPI_WIN_NULL;
  // No bytes of a GPU's are nobody's trouble.
  EXPECT_EQ(MPI_SUCCESS, MPI_Win_create(memory.at(), 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  MPI_Win_free(&window);
}

/// Memory is attached by one process alone, so its mistake is its own.
TEST(Windows, DynamicOnesTakeHostMemoryAlone) {
  MPI_Win window = MPI_WIN_NULL;
  ASSERT_EQ(MPI_SUCCESS, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  TwoMemories memories;
  OnGpu sent(memories.sent), received(memories.sent);
  if (under_gapless()) {
    EXPECT_NE(MPI_SUCCESS, MPI_Win_attach(window, sent.at(), 64));
  }
  std::vector<std::byte> memory(memories.sent.size());
  ASSERT_EQ(MPI_SUCCESS, MPI_Win_attach(window, memory.data(), static_cast<MPI_Aint>(memory.size())));
  MPI_Aint mine = 0;
  std::vector<MPI_Aint> places(static_cast<std::size_t>(size()));
  MPI_Get_address(memory.data(), &mine);
  MPI_Allgather(&mine, 1, MPI_AINT, places.data(), 1, MPI_AINT, MPI_COMM_WORLD);
  const int target = (rank() + 1) % size();
  const MPI_Aint there = places[static_cast<std::size_t>(target)];
  const Owned pairs(three_pairs());
  MPI_Win_fence(0, window);
  EXPECT_EQ(MPI_SUCCESS, MPI_Put(sent.at(), 5, pairs, target, there, 30, MPI_INT, window));
  MPI_Win_fence(0, window);
  EXPECT_EQ(MPI_SUCCESS, MPI_Get(received.at(), 5, pairs, target, there, 30, MPI_INT, window));
  MPI_Win_fence(0, window);
  // What was put there and what came back are the same numbers at the same places.
  EXPECT_TRUE(same_bytes(memories.sent, received.bytes()));
  std::vector<int> arrived(30), wanted;
  std::memcpy(arrived.data(), memory.data(), 30 * sizeof(int));
  const int before = (rank() + size() - 1) % size();
  for (int k = 0; k < 60; ++k) {
    if (k % 4 < 2) wanted.push_back(k + 10'000 * before);
  }
  EXPECT_EQ(wanted, arrived);
  MPI_Win_detach(window, memory.data());
  MPI_Win_free(&window);
}

int calls_of_handler = 0;
void count_call(MPI_Win*, int*, ...) { ++calls_of_handler; }

/// Once the program's handler has returned, MPICH returns MPI_SUCCESS from a call that has failed.
TEST_F(OneSided, AGetThatFailsLeavesGpuMemoryAlone) {
  MPI_Errhandler handler;
  MPI_Win_create_errhandler(count_call, &handler);
  MPI_Win_set_errhandler(window_, handler);
  MPI_Errhandler_free(&handler);
  const TwoMemories memories;
  OnGpu received(memories.received);
  MPI_Win_lock_all(0, window_);
  const int before = calls_of_handler;
  MPI_Get(received.at(), 4, MPI_INT, size(), 0, 4, MPI_INT, window_);
  EXPECT_EQ(before + 1, calls_of_handler);
  received.write(memories.sent);
  MPI_Win_unlock_all(window_);
  EXPECT_TRUE(same_bytes(memories.sent, received.bytes()));
  // The next call is served as ever.
  MPI_Win_lock_all(0, window_);
  MPI_Get(received.at(), 4, MPI_INT, target_, 0, 4, MPI_INT, window_);
  MPI_Win_unlock_all(window_);
}

int calls_of_world = 0;
void count_call_of_world(MPI_Comm*, int*, ...) { ++calls_of_world; }

/// The program is told of a null handle as often as the library tells it.
TEST(Windows, OfNullHandlesAreToldOfAsTheLibraryDoes) {
  TwoMemories memories;
  OnGpu sent(memories.sent);
  const HandlerOfWorldAndSelf handlers(count_call_of_world);
  const auto told = [](auto call) {
    const int before = calls_of_world;
    call();
    return calls_of_world - before;
  };
  MPI_Win window = MPI_WIN_NULL;
  void* const on_host = memories.sent.data();
  EXPECT_EQ(told([&] {
              GAPLESS_TEST_NATIVE(Win_create)
              (on_host, 64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &window);
            }),
            told([&] { MPI_Win_create(on_host, 64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &window); }));
  EXPECT_EQ(told([&] {
              GAPLESS_TEST_NATIVE(Put)
              (on_host, 4, MPI_INT, 0, 0, 4, MPI_INT, MPI_WIN_NULL);
            }),
            told([&] { MPI_Put(sent.at(), 4, MPI_INT, 0, 0, 4, MPI_INT, MPI_WIN_NULL); }));
}

/// What is under way on one window costs the others nothing. Two windows may share a list by chance, four do not.
TEST(Windows, AFlushLooksAtOperationsOfItsWindowAlone) {
  constexpr int left = 500, flushes = 20;
  TwoMemories memories;
  OnGpu received(memories.received);
  MPI_Win busy = MPI_WIN_NULL;
  MPI_Win_create(memories.sent.data(), 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &busy);
  MPI_Win_lock_all(0, busy);
  for (int k = 0; k < left; ++k) MPI_Get(received.at(4 * k), 1, MPI_INT, rank(), 0, 1, MPI_INT, busy);
  std::uint64_t fewest = left * flushes;
  std::vector<MPI_Win> others(4);
  for (MPI_Win& window : others) {
    MPI_Win_create(memories.sent.data(), 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    const auto before = count_by("gapless_operations_looked_at");
    for (int k = 0; k < flushes; ++k) {
      MPI_Get(received.at(4 * left), 1, MPI_INT, rank(), 4, 1, MPI_INT, window);
      MPI_Win_flush(rank(), window);
    }
    fewest = std::min(fewest, count_by("gapless_operations_looked_at") - before);
    MPI_Win_unlock_all(window);
  }
  EXPECT_EQ(under_gapless() ? flushes : 0, static_cast<int>(fewest));
  MPI_Win_unlock_all(busy);
  std::vector<std::byte> expected = memories.received;
  for (int k = 0; k <= left; ++k) std::memcpy(&expected[4 * k], &memories.sent[k < left ? 0 : 4], sizeof(int));
  EXPECT_TRUE(same_bytes(expected, received.bytes()));
  for (MPI_Win& window : others) MPI_Win_free(&window);
  MPI_Win_free(&busy);
}

}  // namespace
}  // namespace gapless::test

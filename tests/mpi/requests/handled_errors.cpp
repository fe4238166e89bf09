// Calls that complete several requests, of which some fail or are not complete: where the program's own error handler
// returns, after which MPICH 5.0.2 returns MPI_SUCCESS, and where a message that a probe has matched is still under
// way.

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int length = 20'000;

void ignore(MPI_Comm*, int*, ...) {}

/// A request that is not complete where the one beside it has failed stays the program's to wait for.
TEST(HandledErrors, APersistentReceiveBesideAFailedOneIsReceived) {
  if (size() < 2) return;
  const Owned type(strided(length, 1, 2));
  const HandlerOfWorldAndSelf handled(ignore);
  if (rank() == 0) {
    int too_short = -1;
    std::vector<int> memory(2 * length, -1);
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(&too_short, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(memory.data(), 1, type, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Start(&requests[1]);
    std::array<MPI_Status, 2> statuses{};
    MPI_Waitall(2, requests.data(), statuses.data());
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(statuses[0].MPI_ERROR));
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    EXPECT_TRUE(placed(std::vector<int>(2 * length, -1), counting(length, 5), 1, 2) == memory);
    MPI_Request_free(&requests[1]);
  } else if (rank() == 1) {
    const std::vector<int> two(2), sent = placed(std::vector<int>(2 * length), counting(length, 5), 1, 2);
    MPI_Send(two.data(), 2, MPI_INT, 0, 1, MPI_COMM_WORLD);
    ::usleep(200'000);  // so that the receiver meets the failed message alone
    MPI_Send(sent.data(), 1, type, 0, 2, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Persistent receives that are all too short: the program is told.
TEST(HandledErrors, OfPersistentReceivesAreTold) {
  if (size() < 2) return;
  const Owned type(strided(length, 1, 2)), shorter(strided(length / 2, 1, 2));
  const HandlerOfWorldAndSelf handled(ignore);
  constexpr int messages = 3;
  std::vector<int> memory(2 * length, -1);
  if (rank() == 0) {
    std::array<MPI_Request, messages> requests{};
    for (int i = 0; i < messages; ++i) MPI_Recv_init(memory.data(), 1, shorter, 1, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Startall(messages, requests.data());
    std::array<MPI_Status, messages> statuses{};
    const int code = MPI_Waitall(messages, requests.data(), statuses.data());
    const auto is_told = [](const MPI_Status& status) { return error_class(status.MPI_ERROR) == MPI_ERR_TRUNCATE; };
    EXPECT_TRUE(error_class(code) == MPI_ERR_IN_STATUS || std::ranges::any_of(statuses, is_told));
    for (MPI_Request& request : requests) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
    }
  } else if (rank() == 1) {
    for (int i = 0; i < messages; ++i) MPI_Send(memory.data(), 1, type, 0, i, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

#if !defined(MPI_ABI)  // MPICH's library of that ABI sets the variable to the null request itself
/// The program's variable may hold another request.
TEST(HandledErrors, ACallThatFailsLeavesTheRequestAsItIs) {
  const Owned type(strided(length, 1, 2));
  const ReturnErrors returned(MPI_COMM_WORLD);
  const int nobody = size() + 50;
  std::vector<int> memory(2 * length);
  int token = -1;
  MPI_Request waiting;
  MPI_Irecv(&token, 1, MPI_INT, rank(), 3, MPI_COMM_WORLD, &waiting);
  MPI_Request request = waiting;
  EXPECT_NE(MPI_SUCCESS, MPI_Isend(memory.data(), 1, type, nobody, 1, MPI_COMM_WORLD, &request));
  EXPECT_EQ(waiting, request);
  EXPECT_NE(MPI_SUCCESS, MPI_Irecv(memory.data(), 1, type, nobody, 1, MPI_COMM_WORLD, &request));
  EXPECT_EQ(waiting, request);
  EXPECT_NE(MPI_SUCCESS, MPI_Send_init(memory.data(), 1, type, nobody, 1, MPI_COMM_WORLD, &request));
  EXPECT_EQ(waiting, request);
  EXPECT_NE(MPI_SUCCESS, MPI_Recv_init(memory.data(), 1, type, nobody, 1, MPI_COMM_WORLD, &request));
  EXPECT_EQ(waiting, request);
  const int sent = 5;
  MPI_Send(&sent, 1, MPI_INT, rank(), 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(sent, token);
}
#endif

int handled_so_far = 0;
void count(MPI_Comm*, int*, ...) { ++handled_so_far; }

/// Where the handler returns, MPICH calls a call without a place for its result a success.
TEST(HandledErrors, CallsWithoutAPlaceForTheirResultAreErrors) {
  const Owned type(strided(length, 1, 2));
  const HandlerOfWorldAndSelf handled(count);
  const auto is_told = [](auto call) {
    const int before = handled_so_far;
    return call() != MPI_SUCCESS || handled_so_far > before;
  };
  std::vector<int> memory(2 * length);
  const int peer = rank();
  EXPECT_TRUE(is_told(
      [&] { return MPI_Isendrecv_replace(memory.data(), 1, type, peer, 0, peer, 0, MPI_COMM_WORLD, nullptr); }));
  EXPECT_TRUE(is_told([] { return MPI_Comm_dup(MPI_COMM_WORLD, nullptr); }));
  MPI_Barrier(MPI_COMM_WORLD);
}

/// A number that the processes of a node share.
class SharedNumber {
 public:
  SharedNumber() {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    void* mine = nullptr;
    MPI_Win_allocate_shared(rank() == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, node, &mine, &window_);
    MPI_Aint bytes = 0;
    int unit = 0;
    void* first = nullptr;
    MPI_Win_shared_query(window_, 0, &bytes, &unit, &first);
    number_ = static_cast<int*>(first);
    if (rank() == 0) *number_ = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&node);
  }
  ~SharedNumber() { MPI_Win_free(&window_); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  void set(int number) { std::atomic_ref(*number_).store(number); }
  int get() { return std::atomic_ref(*number_).load(); }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  int* number_ = nullptr;
};

/// Asks by one of the calls that must return at once.
bool is_complete(int how, MPI_Request* requests) {
  int flag = 0, index = 0;
  std::array<int, 2> indices{};
  if (how == 0) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  if (how == 1) MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
  if (how == 2) MPI_Testsome(2, requests, &flag, indices.data(), MPI_STATUSES_IGNORE);
  if (how == 3) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  if (how == 4) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
  return flag > 0;
}

/// A persistent receive of a long message that a probe of another message has taken. The sender, whose library may have
/// to make progress, waits for the receiver outside MPI.
TEST(Matched, PersistentReceivesAreAskedWithoutWaiting) {
  if (size() < 2) return;
  constexpr int ways = 5, rows = 160, row = 12'500;
  const Owned type(strided(rows, row, 2 * row)), warm(strided(8000, 1, 2));
  std::vector<int> memory(2 * rows * row, rank()), short_one(120, rank());
  for (int k = 0; k < 100; ++k) {  // for the receiver's attention
    if (rank() == 1) MPI_Send(memory.data(), 1, warm, 0, 0, MPI_COMM_WORLD);
    if (rank() == 0) MPI_Recv(memory.data(), 1, warm, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int how = 0; how < ways; ++how) {
    enum Stage { begun, probed, asked };
    SharedNumber stage;
    if (rank() == 1) {
      std::array<MPI_Request, 2> requests{};
      MPI_Isend(memory.data(), 1, type, 0, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(short_one.data(), 120, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[1]);
      int flag = 0;
      while (stage.get() == begun) MPI_Testall(2, requests.data(), &flag, MPI_STATUSES_IGNORE);
      while (stage.get() == probed) ::usleep(100);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    } else if (rank() == 0) {
      std::vector<int> arrived(rows * row, -1);
      std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      MPI_Probe(1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      stage.set(probed);
      MPI_Recv_init(arrived.data(), rows * row, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Start(&requests[0]);
      bool is_done = is_complete(how, requests.data());
      stage.set(asked);
      while (!is_done) is_done = is_complete(how, requests.data());
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      EXPECT_TRUE(std::vector<int>(rows * row, 1) == arrived) << "way " << how;
      MPI_Recv(short_one.data(), 120, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Request_free(&requests[0]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace gapless::test

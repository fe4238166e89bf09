// Small sends out of GPU memory wait to be packed together: by one launch, in program order for each destination, and
// to be completed by every call that completes sends.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int blocks = 20, length = 2, stride = 5;
constexpr std::size_t span = static_cast<std::size_t>(blocks * stride);
constexpr std::size_t packed = static_cast<std::size_t>(blocks * length);

int after() { return (rank() + 1) % size(); }
int before() { return (rank() + size() - 1) % size(); }
std::vector<int> values_of(int sender, int message) { return counting(span, 1000 * message + 7 * sender); }
std::vector<int> sent_by(int sender, int message) { return picked(values_of(sender, message), blocks, length, stride); }

/// Messages of one strided block of GPU memory each to the next process, and what has come from the previous one.
class Deferred : public testing::Test {
 protected:
  void* out(int message) {
    outgoing_.push_back(std::make_unique<Ints>(values_of(rank(), message), true));
    return outgoing_.back()->data();
  }
  MPI_Request send(int message, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(MPI_SUCCESS, MPI_Isend(out(message), 1, type_, after(), tag, world_, &request));
    EXPECT_NE(MPI_REQUEST_NULL, request);
    return request;
  }
  MPI_Request receive(int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    incoming_.push_back(std::make_unique<std::vector<int>>(packed, -1));
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Irecv(incoming_.back()->data(), static_cast<int>(packed), MPI_INT, before(), tag, world_, &request));
    return request;
  }
  /// Were received, in this order, messages first, first + 1, ...?
  void expect_received(int first = 0) {
    for (std::size_t k = 0; k < incoming_.size(); ++k) {
      EXPECT_EQ(sent_by(before(), first + static_cast<int>(k)), *incoming_[k]) << "message " << k;
    }
  }
  /// Launches so far; what a real GPU launches is not counted.
  long launches() { return gpu_fails_on_request() ? gpu_count("launches") : 0; }
  long one_launch() { return gpu_fails_on_request() ? 1 : 0; }

  MPI_Comm world_ = MPI_COMM_WORLD;
  Owned type_{strided(blocks, length, stride)};
  std::vector<std::unique_ptr<Ints>> outgoing_;
  std::vector<std::unique_ptr<std::vector<int>>> incoming_;
};

TEST_F(Deferred, AHaloIsPackedByOneLaunchAndUnpackedByOne) {
  constexpr int halos = 26;
  std::vector<MPI_Request> requests;
  std::vector<Ints> incoming;
  incoming.reserve(halos);
  const std::uint64_t messages = gpu_messages();
  for (int i = 0; i < halos; ++i) {
    incoming.emplace_back(std::vector<int>(span, -1), true);
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Irecv(incoming.back().data(), 1, type_, before(), i, world_, &requests.back());
  }
  const long start = launches();
  for (int i = 0; i < halos; ++i) requests.push_back(send(i, i));
  EXPECT_EQ(start, launches());
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * halos, requests.data(), MPI_STATUSES_IGNORE));
  EXPECT_EQ(start + 2 * one_launch(), launches());
  EXPECT_EQ(messages + 2 * halos, gpu_messages());
  for (int i = 0; i < halos; ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_EQ(placed(std::vector<int>(span, -1), sent_by(before(), i), length, stride), incoming[k].values());
    EXPECT_EQ(MPI_REQUEST_NULL, requests[k + halos]);
  }
}

TEST_F(Deferred, MoreThanAreGatheredLeaveByThemselves) {
  constexpr int many = 70, gathered = 32;
  std::vector<MPI_Request> requests;
  for (int i = 0; i < many; ++i) requests.push_back(receive(i));
  const long start = launches();
  for (int i = 0; i < many; ++i) {
    requests.push_back(send(i, i));
    EXPECT_EQ(start + one_launch() * ((i + 1) / gathered), launches());
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE));
  expect_received();
}

TEST_F(Deferred, LongMessagesLeaveInOrderToo) {
  constexpr int ints = 100'000;
  const Owned long_type(strided(ints, 1, 2));
  Ints values(counting(2 * ints, rank()), true);
  std::vector<int> arrived(ints, -1);
  MPI_Request requests[6];
  requests[0] = receive(1);
  MPI_Irecv(arrived.data(), ints, MPI_INT, before(), 1, world_, &requests[1]);
  requests[2] = receive(1);
  requests[3] = send(0, 1);
  MPI_Isend(values.data(), 1, long_type, after(), 1, world_, &requests[4]);
  requests[5] = send(1, 1);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
  expect_received();
  EXPECT_EQ(picked(counting(2 * ints, before()), ints, 1, 2), arrived);
}

/// Whatever else is sent to the same process with the same tag: each of these stands between two deferred sends.
TEST_F(Deferred, SendsOfEveryKindLeaveInProgramOrder) {
  struct Kind {
    const char* name;
    std::function<void(const int*, MPI_Request*)> send;
  };
  const int tag = 3, n = static_cast<int>(packed);
  const std::vector<Kind> kinds = {
      {"Isend", [&](const int* p, MPI_Request* r) { MPI_Isend(p, n, MPI_INT, after(), tag, world_, r); }},
      {"Issend", [&](const int* p, MPI_Request* r) { MPI_Issend(p, n, MPI_INT, after(), tag, world_, r); }},
      {"Irsend", [&](const int* p, MPI_Request* r) { MPI_Irsend(p, n, MPI_INT, after(), tag, world_, r); }},
      {"Ibsend", [&](const int* p, MPI_Request* r) { MPI_Ibsend(p, n, MPI_INT, after(), tag, world_, r); }},
      {"Send", [&](const int* p, MPI_Request*) { MPI_Send(p, n, MPI_INT, after(), tag, world_); }},
      {"Bsend", [&](const int* p, MPI_Request*) { MPI_Bsend(p, n, MPI_INT, after(), tag, world_); }},
      {"Start",
       [&](const int* p, MPI_Request* r) {
         MPI_Send_init(p, n, MPI_INT, after(), tag, world_, r);
         MPI_Start(r);
       }},
      {"Sendrecv",
       [&](const int* p, MPI_Request*) {
         int in = 0;
         MPI_Sendrecv(p, n, MPI_INT, after(), tag, &in, 0, MPI_INT, MPI_PROC_NULL, 0, world_, MPI_STATUS_IGNORE);
       }},
  };
  std::vector<char> buffer(1 << 16);
  MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const std::vector<int> middle = sent_by(rank(), 1);
    std::vector<MPI_Request> requests = {receive(tag), receive(tag), receive(tag)};
    MPI_Barrier(world_);  // ready sends need their receive
    requests.push_back(send(0, tag));
    requests.push_back(MPI_REQUEST_NULL);
    kind.send(middle.data(), &requests.back());
    const bool is_persistent = std::string(kind.name) == "Start";
    requests.push_back(send(2, tag));
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(6, requests.data(), MPI_STATUSES_IGNORE));
    if (is_persistent) MPI_Request_free(&requests[4]);
    expect_received();
    incoming_.clear();
  }
  void* detached = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&detached, &bytes);
}

/// To detach a buffer is to wait for the message in it, for which the receiver has no place before it has the others.
TEST_F(Deferred, LeaveBeforeABufferIsDetached) {
  constexpr int tag = 3;
  if (size() < 2 || rank() > 1) return;
  const std::vector<int> large = counting(1 << 20, 1);
  const int count = static_cast<int>(large.size());
  if (rank() == 0) {
    const int room = count * static_cast<int>(sizeof(int)) + MPI_BSEND_OVERHEAD;
    std::vector<char> buffer(static_cast<std::size_t>(room));
    MPI_Buffer_attach(buffer.data(), room);
    MPI_Bsend(large.data(), count, MPI_INT, 1, tag + 1, world_);
    MPI_Request request = send(0, tag);
    void* detached = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&detached, &bytes);
    EXPECT_EQ(buffer.data(), detached);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Request request = receive(tag);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    std::vector<int> incoming(large.size(), -1);
    MPI_Recv(incoming.data(), count, MPI_INT, 0, tag + 1, world_, MPI_STATUS_IGNORE);
    EXPECT_TRUE(large == incoming);
    expect_received();
  }
}

/// A program may look for a name in a loop, which the receiver publishes when it has the message.
TEST_F(Deferred, LeaveBeforeANameIsLookedUp) {
  constexpr int tag = 3;
  const ReturnErrors of_world(MPI_COMM_WORLD), of_self(MPI_COMM_SELF);  // libraries differ in which one they tell
  MPI_Request requests[] = {receive(tag), send(0, tag)};
  const long so_far = launches();
  char port[MPI_MAX_PORT_NAME] = "";
  EXPECT_NE(MPI_SUCCESS, MPI_Lookup_name("gapless: nobody's name", MPI_INFO_NULL, port));
  EXPECT_EQ(so_far + one_launch(), launches());
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect_received();
}

TEST_F(Deferred, SendsThatNeedNoPackingDoNotEndTheGathering) {
  const std::vector<int> plain = sent_by(rank(), 1);
  MPI_Request requests[] = {receive(1), receive(1), receive(1), send(0, 1), MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const long start = launches();
  MPI_Isend(plain.data(), static_cast<int>(packed), MPI_INT, after(), 1, world_, &requests[4]);
  requests[5] = send(2, 1);
  EXPECT_EQ(start, launches());
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
  EXPECT_EQ(start + one_launch(), launches());
  expect_received();
}

/// Contiguous messages of GPU memory are the business of a library that reads it. Short ones go together through host
/// memory, by one launch for packing and one for unpacking, where there are several in a row, or were the last time.
TEST_F(Deferred, ShortContiguousOnesJoinUnderALibraryThatReadsGpuMemory) {
  const bool is_asked = gpu_fails_on_request() && library_reads_gpu() && std::getenv("GAPLESS_SCHEME") == nullptr;
  // Messages of so many numbers each. How many sends and receives went through host memory, and by how many launches?
  // A single one is copied without any.
  const auto exchange = [&](const std::vector<std::size_t>& sizes) {
    const std::uint64_t messages = oneshot_messages();
    const long start = launches();
    std::vector<Ints> sent, received;
    sent.reserve(sizes.size());
    received.reserve(sizes.size());
    std::vector<MPI_Request> requests(2 * sizes.size());
    MPI_Request* request = requests.data();
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      received.emplace_back(std::vector<int>(sizes[k], -1), true);
      MPI_Irecv(received[k].data(), static_cast<int>(sizes[k]), MPI_INT, before(), static_cast<int>(k), world_,
                request++);
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      sent.emplace_back(counting(sizes[k], 100 * rank() + static_cast<int>(k)), true);
      MPI_Isend(sent[k].data(), static_cast<int>(sizes[k]), MPI_INT, after(), static_cast<int>(k), world_, request++);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t k = 0; k < sizes.size(); ++k)
      EXPECT_EQ(counting(sizes[k], 100 * before() + static_cast<int>(k)), received[k].values()) << k;
    return std::pair(oneshot_messages() - messages, launches() - start);
  };
  using Seen = std::pair<std::uint64_t, long>;
  for (int times = 0; times < 2; ++times) {
    exchange({1});
    const Seen alone = exchange({1}), long_ones = exchange({100'000, 100'000}), first = exchange({1, 500, 100'000}),
               second = exchange({1, 500, 100'000}), mistaken = exchange({1});
    if (!is_asked) continue;
    EXPECT_EQ(Seen(0, 0), alone);
    EXPECT_EQ(Seen(0, 0), long_ones);
    EXPECT_EQ(Seen(2, 0), first);
    EXPECT_EQ(Seen(4, 2), second);
    EXPECT_EQ(Seen(2, 0), mistaken);
  }
}

/// Completes all of the requests, each time by other calls.
void complete(std::vector<MPI_Request>& requests, int how) {
  const int n = static_cast<int>(requests.size());
  int flag = 0, index = 0, number = 0;
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  int left = n;
  switch (how) {
    case 0:
      for (MPI_Request& request : requests) EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, statuses.data()));
      break;
    case 1:
      for (MPI_Request& request : requests) {
        for (flag = 0; flag == 0;) EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
      }
      break;
    case 2:
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(n, requests.data(), statuses.data()));
      break;
    case 3:
      while (flag == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE));
      break;
    case 4:
      for (; left > 0; --left) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(n, requests.data(), &index, statuses.data()));
        EXPECT_NE(MPI_UNDEFINED, index);
      }
      break;
    case 5:
      for (; left > 0; --left) {
        for (flag = 0; flag == 0;) EXPECT_EQ(MPI_SUCCESS, MPI_Testany(n, requests.data(), &index, &flag, &statuses[0]));
        EXPECT_NE(MPI_UNDEFINED, index);
      }
      break;
    case 6:
      for (; left > 0; left -= number) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Waitsome(n, requests.data(), &number, indices.data(), statuses.data()));
        EXPECT_NE(MPI_UNDEFINED, number);
      }
      break;
    case 7:
      for (; left > 0; left -= number) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Testsome(n, requests.data(), &number, indices.data(), statuses.data()));
        EXPECT_NE(MPI_UNDEFINED, number);
      }
      break;
  }
  for (const MPI_Request request : requests) EXPECT_EQ(MPI_REQUEST_NULL, request);
}

TEST_F(Deferred, EveryCallThatCompletesRequestsCompletesThem) {
  for (int how = 0; how < 8; ++how) {
    for (const bool looks_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << "way " << how << (looks_first ? ", looked at first" : ""));
      std::vector<MPI_Request> requests = {receive(1), receive(2), receive(3), send(0, 1), send(1, 2), send(2, 3)};
      if (looks_first) {
        for (std::size_t k = 3; k < 6; ++k) {
          for (int flag = 0; flag == 0;)
            EXPECT_EQ(MPI_SUCCESS, MPI_Request_get_status(requests[k], &flag, MPI_STATUS_IGNORE));
        }
      }
      complete(requests, how);
      expect_received();
      incoming_.clear();
    }
  }
}

/// Memory of operations under way stays where it is: calls that only start some ask once, and anew after any other.
TEST_F(Deferred, MemoryIsLocatedOnceUntilACallMayHaveCompletedSomething) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "only the simulated GPU counts questions";
  const ReturnErrors errors(world_);
  Ints field(values_of(rank(), 0), true);
  const auto send_field = [&](int destination, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(field.data(), 1, type_, destination, tag, world_, &request);
    return request;
  };
  const auto questions_for = [](auto start) {
    const long before = gpu_count("locates");
    start();
    return gpu_count("locates") - before;
  };
  std::vector<MPI_Request> first = {receive(0), send_field(after(), 0)};
  complete(first, 2);  // the first one finds out more
  incoming_.clear();
  for (int how = 0; how < 8; ++how) {
    SCOPED_TRACE(how);
    std::vector<MPI_Request> requests = {receive(0), receive(1), receive(2)};
    EXPECT_EQ(1, questions_for([&] {
                for (int tag = 0; tag < 3; ++tag) requests.push_back(send_field(after(), tag));
              }));
    EXPECT_EQ(1, questions_for([&] {
                send_field(size(), 0);
                requests.push_back(send_field(MPI_PROC_NULL, 0));
                requests.push_back(send_field(after(), 3));
              }))
        << "memory of a send that is refused may be freed";
    requests.push_back(receive(3));
    complete(requests, how);
    for (const std::unique_ptr<std::vector<int>>& arrived : incoming_) EXPECT_EQ(sent_by(before(), 0), *arrived);
    incoming_.clear();
  }
}

TEST_F(Deferred, RequestsMayBeFreedAndCancelled) {
  MPI_Request requests[] = {receive(1), receive(2), send(0, 1), send(1, 2)};
  EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&requests[2]));
  EXPECT_EQ(MPI_REQUEST_NULL, requests[2]);
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  // It is under way and wanted, so it is sent.
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_Cancel(&requests[3]));
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[3], &status));
  int is_cancelled = 1;
  MPI_Test_cancelled(&status, &is_cancelled);
  EXPECT_EQ(0, is_cancelled);
  expect_received();
}

TEST_F(Deferred, TypesAndCommunicatorsMayBeFreedMeanwhile) {
  MPI_Comm_dup(MPI_COMM_WORLD, &world_);
  MPI_Datatype type = strided(blocks, length, stride);
  MPI_Type_commit(&type);
  MPI_Request requests[] = {receive(1), MPI_REQUEST_NULL};
  MPI_Isend(out(0), 1, type, after(), 1, world_, &requests[1]);
  MPI_Type_free(&type);
  MPI_Comm_free(&world_);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  expect_received();
}

TEST_F(Deferred, ErrorsOfTheProgramAreToldAtOnce) {
  const ReturnErrors errors(world_);
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_ERR_RANK, error_class(MPI_Isend(out(0), 1, type_, size(), 1, world_, &request)));
  EXPECT_EQ(MPI_ERR_TAG, error_class(MPI_Isend(out(0), 1, type_, 0, -5, world_, &request)));
}

/// A message that is too long ends MPI_Waitall early: sends that the call names pending are to be waited for again.
TEST_F(Deferred, SendsThatACallNamesPendingStay) {
  if (size() == 1) return;  // no message comes to a process itself before its receive ends
  const ReturnErrors errors(world_), own_errors(MPI_COMM_SELF);  // to which MPICH tells those of lists
  const std::vector<int> too_many(100'000);
  std::vector<int> room(too_many.size());  // Open MPI writes beyond what is named of a message that is too long
  MPI_Request others[] = {receive(2), receive(2), MPI_REQUEST_NULL};
  MPI_Isend(too_many.data(), static_cast<int>(too_many.size()), MPI_INT, after(), 1, world_, &others[2]);
  MPI_Request requests[3];
  MPI_Irecv(room.data(), 10, MPI_INT, before(), 1, world_, &requests[0]);
  for (int i : {1, 2}) requests[i] = send(i - 1, 2);
  const auto is_there = [](MPI_Request request) { return request != MPI_REQUEST_NULL; };
  for (int round = 0; round < 20 && std::ranges::any_of(requests, is_there); ++round) {
    MPI_Status statuses[3];
    for (MPI_Status& status : statuses) status.MPI_ERROR = MPI_SUCCESS;
    if (error_class(MPI_Waitall(3, requests, statuses)) != MPI_ERR_IN_STATUS) continue;
    for (int i = 0; i < 3; ++i) {
      if (error_class(statuses[i].MPI_ERROR) != MPI_ERR_PENDING) continue;
      EXPECT_NE(MPI_REQUEST_NULL, requests[i]) << i;
    }
  }
  EXPECT_TRUE(std::ranges::none_of(requests, is_there));
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(3, others, MPI_STATUSES_IGNORE));
  expect_received();
}

/// A launch for all that fails is tried again for each; what fails then is told by the call that completes it.
TEST_F(Deferred, FailuresOfTheGpuAreToldAtCompletion) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "only the simulated GPU fails on request";
  const ReturnErrors errors(world_);
  MPI_Request requests[] = {receive(1), receive(2), send(0, 1), send(1, 2)};
  fail_next("run");
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
  expect_received();
  incoming_.clear();
  for (int how = 0; how < 4; ++how) {
    SCOPED_TRACE(how);
    MPI_Request wanted = receive(2), sends[] = {send(7, 1), send(0, 2)};
    MPI_Status statuses[2];
    int index = -1, code = MPI_SUCCESS, number = 0, indices[2];
    fail_next("run", 2);
    switch (how) {
      case 0:
        EXPECT_EQ(MPI_ERR_IN_STATUS, error_class(MPI_Waitall(2, sends, statuses)));
        EXPECT_EQ(MPI_SUCCESS, statuses[1].MPI_ERROR);
        code = statuses[0].MPI_ERROR;
        break;
      case 1:
        code = MPI_Wait(&sends[0], statuses);
        break;
      case 2:
        code = MPI_Waitany(2, sends, &index, statuses);
        EXPECT_EQ(0, index);
        break;
      case 3:
        EXPECT_EQ(MPI_ERR_IN_STATUS, error_class(MPI_Waitsome(2, sends, &number, indices, statuses)));
        EXPECT_EQ(1, number);
        EXPECT_EQ(0, indices[0]);
        code = statuses[0].MPI_ERROR;
        break;
    }
    EXPECT_NE(MPI_SUCCESS, code);
    EXPECT_EQ(MPI_REQUEST_NULL, sends[0]);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&sends[1], MPI_STATUS_IGNORE));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&wanted, MPI_STATUS_IGNORE));
    expect_received();
    incoming_.clear();
  }
}

}  // namespace
}  // namespace gapless::test

// Nonblocking messages and the calls that complete them: whichever call it is, the data is there when it says so,
// statuses are the library's, and nothing is left over.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int messages = 9;

/// Ints of every message: short ones, and some beyond every eager limit.
int ints_of(int message) { return message % 3 == 2 ? 40'000 : 8 + 16 * message; }

/// One rank's part of a ring: `messages` to the next rank, as many from the one before.
class Ring {
 public:
  Ring() : requests_(2 * messages, MPI_REQUEST_NULL) {
    for (int i = 0; i < messages; ++i) {
      const auto ints = static_cast<std::size_t>(ints_of(i));
      outgoing_.push_back(counting(3 * ints, 1000 * rank() + i));
      incoming_.emplace_back(3 * ints, -1);
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Starts everything, receives first; datatypes are freed before anything is complete.
  void start(MPI_Comm communicator = MPI_COMM_WORLD) {
    for (int i = 0; i < messages; ++i) {
      const Owned type(type_of(i));
      MPI_Irecv(incoming_[at(i)].data(), 1, type, before(), i, communicator, &requests_[at(i)]);
    }
    for (int i = 0; i < messages; ++i) {
      const Owned type(type_of(i));
      MPI_Isend(outgoing_[at(i)].data(), 1, type, after(), i, communicator, &requests_[at(messages + i)]);
    }
  }

  std::vector<MPI_Request>& requests() { return requests_; }
  static int before() { return (rank() + size() - 1) % size(); }
  static int after() { return (rank() + 1) % size(); }

  /// Is all of message `i` there, and nothing else changed?
  void expect_received(int i) const {
    const int ints = ints_of(i);
    const auto sent = picked(counting(static_cast<std::size_t>(3 * ints), 1000 * before() + i), ints / 2, 2, 6);
    const std::vector<int> empty(3 * static_cast<std::size_t>(ints), -1);
    EXPECT_TRUE(placed(empty, sent, 2, 6) == incoming_[at(i)]) << "message " << i;
  }
  /// Of request `i` of requests(), if that is a receive.
  void expect_complete(int i, const MPI_Status& status) const {
    if (i >= messages) return;
    expect_received(i);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(ints_of(i), count);
    EXPECT_EQ(before(), status.MPI_SOURCE);
    EXPECT_EQ(i, status.MPI_TAG);
  }
  static MPI_Datatype type_of(int i) { return strided(ints_of(i) / 2, 2, 6); }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::vector<std::vector<int>> outgoing_, incoming_;
  std::vector<MPI_Request> requests_;
};

/// A way to complete all requests of a ring; expects of each request that it is complete when the call says so.
struct Way {
  const char* name;
  std::function<void(Ring&, std::vector<MPI_Request>&)> complete;
};
constexpr int all = 2 * messages;

const std::vector<Way>& ways() {
  static const std::vector<Way> result{
      {"Wait",
       [](Ring& ring, auto& requests) {
         for (int i = all - 1; i >= 0; --i) {
           MPI_Status status;
           EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[static_cast<std::size_t>(i)], &status));
           ring.expect_complete(i, status);
         }
       }},
      {"WaitIgnoringStatuses",
       [](Ring&, auto& requests) {
         for (MPI_Request& request : requests) EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
       }},
      {"Test",
       [](Ring& ring, auto& requests) {
         for (int i = 0; i < all; ++i) {
           MPI_Status status;
           for (int flag = 0; flag == 0;)
             EXPECT_EQ(MPI_SUCCESS, MPI_Test(&requests[static_cast<std::size_t>(i)], &flag, &status));
           ring.expect_complete(i, status);
         }
       }},
      {"Waitall",
       [](Ring& ring, auto& requests) {
         std::vector<MPI_Status> statuses(all);
         EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(all, requests.data(), statuses.data()));
         for (int i = 0; i < all; ++i) ring.expect_complete(i, statuses[static_cast<std::size_t>(i)]);
       }},
      {"WaitallIgnoringStatuses",
       [](Ring&, auto& requests) { EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(all, requests.data(), MPI_STATUSES_IGNORE)); }},
      {"Testall",
       [](Ring& ring, auto& requests) {
         std::vector<MPI_Status> statuses(all);
         for (int flag = 0; flag == 0;)
           EXPECT_EQ(MPI_SUCCESS, MPI_Testall(all, requests.data(), &flag, statuses.data()));
         for (int i = 0; i < all; ++i) ring.expect_complete(i, statuses[static_cast<std::size_t>(i)]);
       }},
      {"Waitany",
       [](Ring& ring, auto& requests) {
         for (int k = 0; k < all; ++k) {
           MPI_Status status;
           int i = -1;
           EXPECT_EQ(MPI_SUCCESS, MPI_Waitany(all, requests.data(), &i, &status));
           ring.expect_complete(i, status);
         }
       }},
      {"Testany",
       [](Ring& ring, auto& requests) {
         for (int completed = 0; completed < all;) {
           MPI_Status status;
           int i = -1, flag = 0;
           EXPECT_EQ(MPI_SUCCESS, MPI_Testany(all, requests.data(), &i, &flag, &status));
           if (flag == 0) continue;
           ring.expect_complete(i, status);
           ++completed;
         }
       }},
      {"Waitsome",
       [](Ring& ring, auto& requests) {
         for (int completed = 0; completed < all;) {
           std::vector<MPI_Status> statuses(all);
           std::vector<int> indices(all);
           int some = 0;
           EXPECT_EQ(MPI_SUCCESS, MPI_Waitsome(all, requests.data(), &some, indices.data(), statuses.data()));
           for (std::size_t k = 0; k < static_cast<std::size_t>(some); ++k)
             ring.expect_complete(indices[k], statuses[k]);
           completed += some;
         }
       }},
      {"Testsome",
       [](Ring& ring, auto& requests) {
         for (int completed = 0; completed < all;) {
           std::vector<MPI_Status> statuses(all);
           std::vector<int> indices(all);
           int some = 0;
           EXPECT_EQ(MPI_SUCCESS, MPI_Testsome(all, requests.data(), &some, indices.data(), statuses.data()));
           for (std::size_t k = 0; k < static_cast<std::size_t>(some); ++k)
             ring.expect_complete(indices[k], statuses[k]);
           completed += some;
         }
       }},
      {"RequestGetStatus",
       [](Ring& ring, auto& requests) {
         for (int i = 0; i < all; ++i) {
           MPI_Request& request = requests[static_cast<std::size_t>(i)];
           MPI_Status status;
           for (int flag = 0; flag == 0;) EXPECT_EQ(MPI_SUCCESS, MPI_Request_get_status(request, &flag, &status));
           ring.expect_complete(i, status);
           EXPECT_NE(MPI_REQUEST_NULL, request);
           EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
           ring.expect_complete(i, status);
         }
       }},
  };
  return result;
}

class Completion : public testing::TestWithParam<std::size_t> {};

TEST_P(Completion, OfEverySingleOneLeavesNothing) {
  const Way& way = ways()[GetParam()];
  const auto before = packed_messages();
  Ring ring;
  ring.start();
  way.complete(ring, ring.requests());
  for (int i = 0; i < messages; ++i) ring.expect_received(i);
  for (const MPI_Request request : ring.requests()) EXPECT_EQ(MPI_REQUEST_NULL, request);
  if (is_everything_packed()) {
    EXPECT_EQ(before + 2 * messages, packed_messages());
  }
}

INSTANTIATE_TEST_SUITE_P(By, Completion, testing::Range(std::size_t{0}, ways().size()),
                         [](const auto& way) { return std::string(ways()[way.param].name); });

TEST(Requests, ThatAreFreedComplete) {
  Ring ring;
  ring.start();
  // Freed sends complete by themselves; that a freed receive has arrived is known by what its sender says later.
  for (int i = 0; i < messages; ++i) MPI_Request_free(&ring.requests()[static_cast<std::size_t>(messages + i)]);
  MPI_Request_free(&ring.requests()[0]);
  EXPECT_EQ(MPI_REQUEST_NULL, ring.requests()[0]);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(all, ring.requests().data(), MPI_STATUSES_IGNORE));
  // Any message after it, on the same pair of ranks, and any call that completes requests.
  int token = rank();
  MPI_Sendrecv_replace(&token, 1, MPI_INT, Ring::after(), 99, Ring::before(), 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request nothing = MPI_REQUEST_NULL;
  MPI_Wait(&nothing, MPI_STATUS_IGNORE);
  for (int i = 0; i < messages; ++i) ring.expect_received(i);
  // What is sent may be given up once everybody has received.
  MPI_Barrier(MPI_COMM_WORLD);
}

/// To disconnect is to wait for all that is under way.
TEST(Requests, ThatAreFreedAreWaitedForByDisconnect) {
  for (const int ints : {100, 300'000}) {
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    const Owned type(strided(ints, 1, 3));
    const std::vector<int> outgoing = counting(3 * static_cast<std::size_t>(ints), rank());
    std::vector<int> incoming(outgoing.size(), -1);
    MPI_Request sending;
    MPI_Isend(outgoing.data(), 1, type, Ring::after(), 1, communicator, &sending);
    MPI_Request_free(&sending);
    MPI_Recv(incoming.data(), 1, type, Ring::before(), 1, communicator, MPI_STATUS_IGNORE);
    EXPECT_EQ(MPI_SUCCESS, MPI_Comm_disconnect(&communicator));
    const std::vector<int> sent = counting(outgoing.size(), Ring::before());
    EXPECT_EQ(placed(std::vector<int>(incoming.size(), -1), picked(sent, ints, 1, 3), 1, 3), incoming) << ints;
  }
}

TEST(Requests, ThatAreCancelledReceiveNothing) {
  std::vector<int> memory(300, -1);
  const Owned type(strided(100, 1, 3));
  MPI_Request request;
  MPI_Irecv(memory.data(), 1, type, rank(), 77, MPI_COMM_WORLD, &request);
  EXPECT_EQ(MPI_SUCCESS, MPI_Cancel(&request));
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
  int flag = 0;
  MPI_Test_cancelled(&status, &flag);
  EXPECT_EQ(1, flag);
  EXPECT_EQ(std::vector<int>(300, -1), memory);
}

TEST(Requests, OutliveTheirCommunicatorsHandle) {
  Ring ring;
  MPI_Comm communicator;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  ring.start(communicator);
  MPI_Comm_free(&communicator);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(all, ring.requests().data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < messages; ++i) ring.expect_received(i);
}

TEST(Requests, MixWithContiguousAndPersistentOnesAndNone) {
  Ring ring;
  ring.start();
  const auto sent = counting(50, rank());
  std::vector<int> received(50, -1), again(50, -1);
  std::vector<MPI_Request> requests = ring.requests();
  requests.resize(all + 5, MPI_REQUEST_NULL);
  MPI_Irecv(received.data(), 50, MPI_INT, Ring::before(), 50, MPI_COMM_WORLD, &requests[all]);
  MPI_Isend(sent.data(), 50, MPI_INT, Ring::after(), 50, MPI_COMM_WORLD, &requests[all + 2]);
  MPI_Recv_init(again.data(), 50, MPI_INT, Ring::before(), 51, MPI_COMM_WORLD, &requests[all + 3]);
  MPI_Send_init(sent.data(), 50, MPI_INT, Ring::after(), 51, MPI_COMM_WORLD, &requests[all + 4]);
  MPI_Startall(2, &requests[all + 3]);
  std::vector<MPI_Status> statuses(requests.size());
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()));
  for (int i = 0; i < all; ++i) ring.expect_complete(i, statuses[static_cast<std::size_t>(i)]);
  EXPECT_EQ(counting(50, Ring::before()), received);
  EXPECT_EQ(counting(50, Ring::before()), again);
  int count = -1;
  MPI_Get_count(&statuses[all + 1], MPI_INT, &count);
  EXPECT_EQ(0, count);
  EXPECT_EQ(MPI_ANY_SOURCE, statuses[all + 1].MPI_SOURCE);
  MPI_Request_free(&requests[all + 3]);
  MPI_Request_free(&requests[all + 4]);
}

TEST(Requests, ThatAreTruncatedTellInTheirStatuses) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  for (const int number : {100, 3000, 60'000, -3000, -60'000}) {  // negative: persistent
    SCOPED_TRACE(number);
    const int ints = std::abs(number);
    const auto receive = number > 0 ? MPI_Irecv : MPI_Recv_init;
    const Owned whole(strided(ints, 1, 3)), half(strided(ints / 2, 1, 3));
    std::vector<int> outgoing(3 * static_cast<std::size_t>(ints), 7), incoming(outgoing.size(), -1), good = incoming;
    std::vector<MPI_Request> requests(4);
    receive(incoming.data(), 1, half, Ring::before(), 1, MPI_COMM_WORLD, &requests[0]);
    receive(good.data(), 1, whole, Ring::before(), 2, MPI_COMM_WORLD, &requests[1]);
    if (number < 0) MPI_Startall(2, requests.data());
    MPI_Isend(outgoing.data(), 1, whole, Ring::after(), 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(outgoing.data(), 1, whole, Ring::after(), 2, MPI_COMM_WORLD, &requests[3]);
    std::vector<MPI_Status> statuses(4);
    // A library may return before all are complete, and says of which that is so.
    int code = MPI_Waitall(4, requests.data(), statuses.data());
    EXPECT_EQ(MPI_ERR_IN_STATUS, error_class(code));
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(statuses[0].MPI_ERROR));
    MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; number < 0 && i < 2; ++i) MPI_Request_free(&requests[static_cast<std::size_t>(i)]);
    for (std::size_t k = 0; k < incoming.size(); ++k) {
      if (k % 3 != 0 || k >= 3 * static_cast<std::size_t>(ints / 2)) {
        ASSERT_EQ(-1, incoming[k]) << k;
      }
      ASSERT_EQ(k % 3 == 0 ? 7 : -1, good[k]) << k;
    }
  }
}

int handler_calls = 0;
void count_call(MPI_Comm*, int*, ...) { ++handler_calls; }

/// The handler is told once, and returns; of which message, the statuses say.
TEST(Requests, ThatAreTruncatedCallTheHandlerOnce) {
  MPI_Comm communicator;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  MPI_Errhandler counts;
  MPI_Comm_create_errhandler(count_call, &counts);
  for (MPI_Comm each : {communicator, MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(each, counts);
  for (const int ints : {3000, 60'000}) {
    SCOPED_TRACE(ints);
    const Owned whole(strided(ints, 1, 3)), half(strided(ints / 2, 1, 3));
    std::vector<int> outgoing(3 * static_cast<std::size_t>(ints), 7);
    std::vector<std::vector<int>> incoming(3, std::vector<int>(outgoing.size(), -1));
    std::vector<MPI_Request> requests(3), sends(3);
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      MPI_Irecv(incoming[at].data(), 1, i == 1 ? whole : half, Ring::before(), i, communicator, &requests[at]);
    }
    for (int i = 0; i < 3; ++i)
      MPI_Isend(outgoing.data(), 1, whole, Ring::after(), i, communicator, &sends[static_cast<std::size_t>(i)]);
    std::vector<MPI_Status> statuses(3);
    handler_calls = 0;
    MPI_Waitall(3, requests.data(), statuses.data());
    EXPECT_EQ(1, handler_calls);
    EXPECT_TRUE(std::ranges::any_of(
        statuses, [](const MPI_Status& status) { return error_class(status.MPI_ERROR) == MPI_ERR_TRUNCATE; }));
    for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Waitall(3, sends.data(), MPI_STATUSES_IGNORE);
    for (std::size_t k = 0; k < outgoing.size(); ++k) ASSERT_EQ(k % 3 == 0 ? 7 : -1, incoming[1][k]) << k;
  }
  for (MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(each, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&counts);
  MPI_Comm_free(&communicator);
}

/// A message to oneself that packing pays for in a blocking call, and costs more behind a request than it gains.
struct ShortMessage {
  static constexpr int blocks = 150, stride = 64;

  /// How many messages were packed, of so many that are sent and received by `send`.
  static std::uint64_t packed_of(int times, const std::function<void()>& send) {
    const std::uint64_t before = packed_messages();
    for (int i = 0; i < times; ++i) send();
    return packed_messages() - before;
  }
  void expect_arrived() const {
    EXPECT_EQ(placed(std::vector<int>(outgoing.size(), -1), picked(outgoing, blocks, 1, stride), 1, stride), incoming);
  }
  void pass_by_requests() {
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(incoming.data(), 1, type, rank(), 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(outgoing.data(), 1, type, rank(), 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  }

  Owned type{strided(blocks, 1, stride)};
  std::vector<int> outgoing = counting(std::size_t{blocks} * stride), incoming = std::vector<int>(outgoing.size(), -1);
};

bool are_schemes_chosen() { return under_gapless() && std::getenv("GAPLESS_SCHEME") == nullptr; }

TEST(Requests, LeaveShortMessagesToTheLibrary) {
  ShortMessage message;
  constexpr int times = 40;  // some are the library's anyway, and then none is tried yet
  const std::uint64_t behind_requests = message.packed_of(times, [&] { message.pass_by_requests(); });
  const std::uint64_t without = message.packed_of(2 * times, [&] {
    MPI_Sendrecv(message.outgoing.data(), 1, message.type, rank(), 0, message.incoming.data(), 1, message.type, rank(),
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  message.expect_arrived();
  if (is_everything_packed()) {
    EXPECT_EQ(std::uint64_t{2 * times}, behind_requests);
    EXPECT_EQ(std::uint64_t{4 * times}, without);
  } else if (are_schemes_chosen()) {
    // Receives are looked at once a peer sends headers; without them none is packed.
    EXPECT_GE(std::getenv("GAPLESS_HEADERS") == nullptr ? std::uint64_t{times} : 0, behind_requests);
    EXPECT_LT(std::uint64_t{times}, without);
  }
}

/// Predictions may be wrong: a receive that is looked at for headers, and is the library's, is packed now and then.
TEST(Requests, AreTriedPackedThoughTheyAreLeftToTheLibrary) {
  ShortMessage message;
  const std::uint64_t packed = message.packed_of(1000, [&] { message.pass_by_requests(); });
  message.expect_arrived();
  const bool are_looked_at = size() > 1 && std::getenv("GAPLESS_HEADERS") == nullptr;
  if (are_schemes_chosen() && are_looked_at) {
    EXPECT_LT(0U, packed);
  }
}

TEST(Requests, OfNobodyAreComplete) {
  const Owned type(strided(10, 1, 3));
  std::vector<int> memory(30, -1);
  MPI_Request requests[2];
  MPI_Isend(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Status statuses[2];
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, statuses));
  EXPECT_EQ(MPI_PROC_NULL, statuses[1].MPI_SOURCE);
  EXPECT_EQ(std::vector<int>(30, -1), memory);
}

TEST(Requests, OfMatchedMessagesArrive) {
  const Owned type(strided(2000, 1, 3));
  const auto sent = counting(6000, rank());
  std::vector<int> received(6000, -1);
  MPI_Request sending, receiving;
  MPI_Issend(sent.data(), 1, type, Ring::after(), 5, MPI_COMM_WORLD, &sending);
  MPI_Message message;
  MPI_Mprobe(Ring::before(), 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  EXPECT_EQ(MPI_SUCCESS, MPI_Imrecv(received.data(), 1, type, &message, &receiving));
  MPI_Wait(&receiving, MPI_STATUS_IGNORE);
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(6000, -1), picked(counting(6000, Ring::before()), 2000, 1, 3), 1, 3), received);
}

}  // namespace
}  // namespace gapless::test

// What moves on while threads wait: for endpoints, or for other processes inside the library.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

#include "gapless/endpoints.h"
#include "on_endpoints.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// One thread begins a collective on each of its endpoints, and waits for one after the other.
TEST(Progress, OfSeveralEndpointsOfOneThread) {
  Endpoints endpoints(each(3));
  std::vector<MPI_Request> requests(3);
  std::vector<int> sums(3, -1);
  const int one = 1;
  for (std::size_t i = 0; i < 3; ++i)
    MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, endpoints.handles()[i], &requests[i]);
  // Freed while collectives are under way, which MPI allows.
  for (MPI_Comm& handle : endpoints.handles()) MPI_Comm_free(&handle);
  for (MPI_Request& request : requests) EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_EQ(std::vector<int>(3, 3 * size()), sums);
}

/// Handles are freed while receives of all kinds, long sends and requests of nobody are under way, which MPI allows;
/// the requests are completed by a thread that has started none of them.
TEST(Progress, OfMessagesWhoseHandleIsFreed) {
  constexpr int messages = 3, length = 30000;
  Endpoints endpoints(each(2));
  std::vector<std::vector<int>> in, out;
  std::vector<MPI_Request> requests;
  const auto request = [&] { return &requests.emplace_back(MPI_REQUEST_NULL); };
  for (MPI_Comm& comm : endpoints.handles()) {
    const int me = rank(comm), all = size(comm);
    for (int i = 0; i < messages; ++i) {
      const int count = i == 0 ? 1 : length;
      MPI_Irecv(in.emplace_back(static_cast<std::size_t>(length), -1).data(), length, MPI_INT,
                i == 1 ? MPI_ANY_SOURCE : (me + all - 1) % all, i, comm, request());
      MPI_Isend(out.emplace_back(static_cast<std::size_t>(count), me).data(), count, MPI_INT, (me + 1) % all, i, comm,
                request());
    }
    MPI_Irecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, comm, request());
  }
  const int all = size(endpoints.handles()[0]);
  std::vector<int> ranks;
  for (MPI_Comm& comm : endpoints.handles()) ranks.push_back(rank(comm));
  for (MPI_Comm& comm : endpoints.handles()) MPI_Comm_free(&comm);
  std::vector<MPI_Status> statuses(requests.size());
  std::thread([&] {
    MPI_Wait(&requests[0], &statuses[0]);
    const int others = static_cast<int>(requests.size()) - 1;
    EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(others, &requests[1], &statuses[1]));
  }).join();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const int from = (ranks[i / messages] + all - 1) % all;
    const MPI_Status& status = statuses[i / messages * (2 * messages + 1) + i % messages * 2];
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(i % messages == 0 ? 1 : length, count);
    EXPECT_EQ(from, status.MPI_SOURCE);
    EXPECT_EQ(std::vector<int>(static_cast<std::size_t>(count), from),
              std::vector<int>(in[i].begin(), in[i].begin() + count));
  }
}

/// A message is matched by a probe, the handle is freed, and then the message is received, whose sender has waited.
TEST(Progress, OfMatchedMessagesWhoseHandleIsFreed) {
  for (const bool is_blocking : {true, false}) {
    for (const int length : {1, 5000, 500000}) {
      Endpoints endpoints(each(2));
      std::vector<std::thread> threads;
      for (MPI_Comm& handle : endpoints.handles()) {
        threads.emplace_back([&handle, is_blocking, length] {
          MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
          const int me = rank(handle), last = size(handle) - 1;
          std::vector<int> numbers(static_cast<std::size_t>(length), me);
          if (me == 0) {
            EXPECT_EQ(MPI_SUCCESS, MPI_Ssend(numbers.data(), length, MPI_INT, last, 0, handle));
          } else if (me == last) {
            MPI_Message message;
            MPI_Mprobe(0, 0, handle, &message, MPI_STATUS_IGNORE);
            MPI_Comm_free(&handle);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the sender looks whether it is received
            MPI_Request request = MPI_REQUEST_NULL;
            const int code = is_blocking ? MPI_Mrecv(numbers.data(), length, MPI_INT, &message, MPI_STATUS_IGNORE)
                                         : MPI_Imrecv(numbers.data(), length, MPI_INT, &message, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            EXPECT_EQ(MPI_SUCCESS, code);
            EXPECT_EQ(std::vector<int>(static_cast<std::size_t>(length), 0), numbers);
            return;
          }
          MPI_Comm_free(&handle);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
}

/// Every other process receives what its neighbour sends before the neighbour waits, too. `receive(handle, number)`
/// starts the receive and waits for the other processes; it returns the receive's request.
void receive_while_others_are_waited_for(const std::function<MPI_Request(MPI_Comm, int*)>& receive,
                                         const std::function<void()>& wait) {
  Endpoints endpoints(each(1));
  MPI_Comm& comm = endpoints.handles()[0];
  const int peer = rank() ^ 1, mine = rank();
  if (peer < size() && rank() % 2 == 0) {
    int number = -1;
    MPI_Request request = receive(comm, &number);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(peer, number);
  } else {
    if (peer < size()) MPI_Ssend(&mine, 1, MPI_INT, peer, 0, comm);
    wait();
  }
  MPI_Comm_free(&comm);
}

/// One thread starts the receive and waits.
void receive_while_waiting(const std::function<void()>& wait) {
  const auto receive = [&wait](MPI_Comm comm, int* number) {
    MPI_Request request;
    MPI_Irecv(number, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
    wait();
    return request;
  };
  receive_while_others_are_waited_for(receive, wait);
}

/// All messages of endpoints that have ended.
std::uint64_t messages_of_ended_endpoints() {
  std::array<std::uint64_t, 6> counts{};
  const auto function = reinterpret_cast<void (*)(std::uint64_t*)>(core_function("gapless_endpoint_statistics"));
  function(counts.data());
  return std::accumulate(counts.begin(), counts.begin() + 5, std::uint64_t{0});
}

/// The senders free their requests and their handles before anything is received, and call nothing afterwards. Their
/// endpoints end all the same, and the requests with them.
TEST(Progress, EndsEndpointsWhoseRequestsNobodyWantsAnyMore) {
  constexpr int messages = 3000, length = 20000;
  if (size() % 2 != 0) GTEST_SKIP() << "each process sends to the next, or receives";
  const std::uint64_t before = messages_of_ended_endpoints();
  // Static, for freed requests tell nobody that they are done with their memory.
  static const std::vector<int> out = counting(length);
  EXPECT_EQ(0, on_endpoints(each(1), [&](MPI_Comm comm) {
              const int me = rank(comm);
              if (me % 2 == 0) {
                MPI_Request request;
                for (int i = 0; i < messages; ++i) {
                  const int count = i == 0 ? length : 1;
                  if (i % 100 == 0) {
                    MPI_Issend(out.data(), count, MPI_INT, me + 1, 0, comm, &request);
                  } else {
                    MPI_Isend(out.data(), count, MPI_INT, me + 1, 0, comm, &request);
                  }
                  MPI_Request_free(&request);
                }
                return 0;
              }
              std::this_thread::sleep_for(std::chrono::milliseconds(50));
              std::vector<int> in(length, -1);
              MPI_Recv(in.data(), length, MPI_INT, me - 1, 0, comm, MPI_STATUS_IGNORE);
              int wrong = in != counting(length);
              for (int i = 1; i < messages; ++i) {
                MPI_Recv(in.data(), 1, MPI_INT, me - 1, 0, comm, MPI_STATUS_IGNORE);
                wrong += in[0] != 0;
              }
              return wrong;
            }));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const std::uint64_t sent = rank() % 2 == 0 ? messages : 0;
  while (messages_of_ended_endpoints() < before + sent && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LE(before + sent, messages_of_ended_endpoints());
}

/// Persistent requests are started when nothing but them knows the communicator any more.
TEST(Progress, OfPersistentRequestsWhoseHandleIsFreed) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              int out = 0, in = -1, wrong = 0;
              std::array<MPI_Request, 2> requests;
              MPI_Comm other;
              MPI_Comm_dup(comm, &other);
              MPI_Send_init(&out, 1, MPI_INT, to, 0, other, &requests[0]);
              MPI_Recv_init(&in, 1, MPI_INT, from, 0, other, &requests[1]);
              MPI_Comm_free(&other);
              MPI_Barrier(comm);
              for (int times = 0; times < 3; ++times) {
                out = me + times;
                MPI_Startall(2, requests.data());
                wrong += MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS || in != from + times;
              }
              for (MPI_Request& request : requests) MPI_Request_free(&request);
              return wrong;
            }));
}

#if MPI_VERSION >= 4
TEST(Progress, OfPersistentCollectivesWhoseHandleIsFreed) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int one = 1;
              int sum = 0, wrong = 0;
              MPI_Request request;
              MPI_Comm other;
              MPI_Comm_dup(comm, &other);
              MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, other, MPI_INFO_NULL, &request);
              MPI_Comm_free(&other);
              for (int times = 0; times < 3; ++times) {
                sum = 0;
                wrong += MPI_Start(&request) != MPI_SUCCESS;
                wrong += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS || sum != size(comm);
              }
              MPI_Request_free(&request);
              return wrong;
            }));
}
#endif

/// Waits for the message of an endpoint, after which the receive of processes may still be under way.
using WaitForMessage = std::function<void(int* number, int peer, MPI_Comm comm, MPI_Request* of_processes)>;

MPI_Request begin_receive(int* number, int peer, MPI_Comm comm) {
  MPI_Request request;
  MPI_Irecv(number, 1, MPI_INT, peer, 0, comm, &request);
  return request;
}

const WaitForMessage waits_for_message[] = {
    [](int* number, int peer, MPI_Comm comm, MPI_Request*) {
      MPI_Recv(number, 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request*) {
      MPI_Probe(peer, 0, comm, MPI_STATUS_IGNORE);
      MPI_Recv(number, 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request*) {
      MPI_Request request = begin_receive(number, peer, comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request*) {
      MPI_Request request = begin_receive(number, peer, comm);
      for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request* of_processes) {
      MPI_Request requests[] = {*of_processes, begin_receive(number, peer, comm)};
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      *of_processes = requests[0];
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request* of_processes) {
      MPI_Request requests[] = {begin_receive(number, peer, comm), *of_processes};
      for (int flag = 0; flag == 0;) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
      *of_processes = requests[1];
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request* of_processes) {
      MPI_Request requests[] = {*of_processes, begin_receive(number, peer, comm)};
      for (int index = 0; index != MPI_UNDEFINED;) MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      *of_processes = requests[0];
    },
    [](int* number, int peer, MPI_Comm comm, MPI_Request* of_processes) {
      MPI_Request requests[] = {*of_processes, begin_receive(number, peer, comm)};
      int indices[2];
      for (int some = 0; some != MPI_UNDEFINED;) MPI_Waitsome(2, requests, &some, indices, MPI_STATUSES_IGNORE);
      *of_processes = requests[0];
    },
};

/// A message that its sender sends before the endpoint's, and that does not leave before it is received.
void receive_while_an_endpoint_waits(MPI_Datatype type, int count) {
  const int peer = rank() ^ 1;
  if (peer >= size()) return;
  int bytes = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_size(type, &bytes);
  MPI_Type_get_extent(type, &lower_bound, &extent);
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank() / 2, rank(), &pair);
  Endpoints endpoints(each(1), pair);
  MPI_Comm& comm = endpoints.handles()[0];
  for (std::size_t way = 0; way < std::size(waits_for_message); ++way) {
    std::vector<char> memory(static_cast<std::size_t>(extent) * static_cast<std::size_t>(count),
                             rank() % 2 == 0 ? 0 : 1);
    int number = static_cast<int>(way);
    if (rank() % 2 != 0) {
      MPI_Send(memory.data(), count, type, peer, 0, MPI_COMM_WORLD);
      MPI_Send(&number, 1, MPI_INT, 0, 0, comm);
      continue;
    }
    MPI_Request request;
    MPI_Irecv(memory.data(), count, type, peer, 0, MPI_COMM_WORLD, &request);
    number = -1;
    waits_for_message[way](&number, 1, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(static_cast<int>(way), number);
    EXPECT_EQ(std::ptrdiff_t{bytes} * count, std::count(memory.begin(), memory.end(), 1)) << way;
  }
  MPI_Comm_free(&comm);
  MPI_Comm_free(&pair);
}

TEST(Progress, OfTheLibraryWhileAnEndpointWaits) {
  MPI_Datatype vector;
  MPI_Type_vector(64, 64, 128, MPI_CHAR, &vector);
  MPI_Type_commit(&vector);
  for (const int count : {64 << 10, 4 << 20}) receive_while_an_endpoint_waits(MPI_CHAR, count);
  for (const int count : {16, 1024}) receive_while_an_endpoint_waits(vector, count);
  MPI_Type_free(&vector);
}

TEST(Progress, OfCollectivesOfProcessesWhileAnEndpointWaits) {
  constexpr int bytes = 100000;
  Endpoints endpoints(each(1));
  MPI_Comm& comm = endpoints.handles()[0];
  const std::vector<char> mine(bytes, static_cast<char>(1 + rank()));
  std::vector<char> all(static_cast<std::size_t>(bytes * size()));
  MPI_Request request;
  MPI_Iallgather(mine.data(), bytes, MPI_CHAR, all.data(), bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
  int number = 0;
  if (rank() == 0) {
    for (int other = 1; other < size(); ++other) {
      MPI_Recv(&number, 1, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
      EXPECT_EQ(other, number);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    number = rank();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(&number, 1, MPI_INT, 0, 0, comm);
  }
  for (int other = 0; other < size(); ++other) EXPECT_EQ(1 + other, all[static_cast<std::size_t>(bytes * other)]);
  MPI_Comm_free(&comm);
}

/// One endpoint waits for another one of its process, whose thread waits outside MPI until the message is received.
TEST(Progress, OfTheLibraryInCollectivesOfEndpoints) {
  constexpr int length = 1 << 20;
  const int peer = rank() ^ 1;
  int* sent = nullptr;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &sent, &window);
  *sent = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<char> memory(length, static_cast<char>(rank() % 2));
  Endpoints endpoints(each(2));
  if (rank() % 2 != 0) {
    MPI_Aint bytes = 0;
    int unit = 0, *of_peer = nullptr;
    MPI_Win_shared_query(window, peer, &bytes, &unit, &of_peer);
    MPI_Send(memory.data(), length, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    std::atomic_ref(*of_peer).store(1);
  }
  const bool receives = rank() % 2 == 0 && peer < size();
  EXPECT_EQ(0, endpoints.run([&](MPI_Comm comm) {
    const bool is_leader = comm == endpoints.handles()[0];
    MPI_Request request = MPI_REQUEST_NULL;
    if (receives && !is_leader) MPI_Irecv(memory.data(), length, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &request);
    while (receives && is_leader && std::atomic_ref(*sent).load() == 0) std::this_thread::yield();
    return (MPI_Barrier(comm) != MPI_SUCCESS) + (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  }));
  EXPECT_EQ(receives || rank() % 2 != 0 ? length : 0, std::count(memory.begin(), memory.end(), 1));
  MPI_Win_free(&window);
}

void wait_in_barrier() { MPI_Barrier(MPI_COMM_WORLD); }

TEST(Progress, GoesOnInsideTheLibrary) { receive_while_waiting(wait_in_barrier); }

TEST(Progress, GoesOnInCallsWithoutACommunicator) {
  MPI_Win window;
  MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  receive_while_waiting([&] { MPI_Win_fence(0, window); });
  MPI_Win_free(&window);
}

TEST(Progress, GoesOnWhileRequestsOfOthersAreTested) {
  receive_while_waiting([] {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  });
}

/// The thread inside the library has entered it when nothing was under way.
TEST(Progress, OfWhatBeginsWhileAnotherThreadIsInsideTheLibrary) {
  const auto receive = [](MPI_Comm comm, int* number) {
    std::thread waiting(wait_in_barrier);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Request request;
    MPI_Irecv(number, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
    waiting.join();
    return request;
  };
  receive_while_others_are_waited_for(receive, wait_in_barrier);
}

}  // namespace
}  // namespace gapless::test

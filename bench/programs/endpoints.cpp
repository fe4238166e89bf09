// What endpoints cost and give, beside processes and beside threads that share a rank. One line of JSON for each
// figure.
//
//   endpoints rate WAY RANKS BYTES...    messages of RANKS pairs between two processes, or of processes of that number
//   endpoints latency WAY BYTES...       half a round trip between two ranks
//   endpoints pair WAY BYTES...          messages of one pair; WAY inside: both in one process
//   endpoints depth WAY own|other DEPTH...  half a round trip of 8 bytes with DEPTH receives posted that do not match
//   endpoints allreduce WAY RANKS BYTES...  RANKS a process
//   endpoints calls WAY                  MPI_Comm_rank of MPI_COMM_WORLD, in ns; WAY dynamic or static
//
// WAY is processes, endpoints, inside (endpoints of one process) or threads (of one rank).
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gapless::bench {
namespace {

[[noreturn]] void give_up(const char* why) {
  std::printf("{\"wrong\": \"%s\"}\n", why);
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

template <class Function>
Function extension(const char* name) {
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) give_up("gapless is not there");
  return function;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One that communicates, be it a process, an endpoint, or a thread that shares a rank with others.
struct Rank {
  MPI_Comm comm = MPI_COMM_WORLD;
  int number = 0;  ///< among all that communicate
  int count = 1;
  int tag = 0;
  std::function<void()> wait_for_all;
  std::function<double(double)> of_first;  ///< the value that number 0 gives

  bool is_first() const { return number == 0; }
};

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

Rank by_communicator(MPI_Comm comm) {
  Rank rank;
  rank.comm = comm;
  MPI_Comm_rank(comm, &rank.number);
  MPI_Comm_size(comm, &rank.count);
  rank.wait_for_all = [comm] { MPI_Barrier(comm); };
  rank.of_first = [comm](double value) {
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, comm);
    return value;
  };
  return rank;
}

using Work = std::function<void(Rank&)>;

void on_endpoints(int each, const Work& work) {
  using Create = int (*)(MPI_Comm, int, MPI_Info, MPI_Comm*);
  std::vector<MPI_Comm> handles(static_cast<std::size_t>(each));
  if (extension<Create>("MPIX_Comm_create_endpoints")(MPI_COMM_WORLD, each, MPI_INFO_NULL, handles.data()) != 0)
    give_up("no endpoints");
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      Rank rank = by_communicator(handle);
      work(rank);
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void on_threads(int each, const Work& work) {
  std::barrier<> here(each);
  double shared = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < each; ++i) {
    threads.emplace_back([&, i] {
      Rank rank;
      rank.number = world_rank() * each + i;
      rank.count = world_size() * each;
      rank.tag = i;
      rank.wait_for_all = [&, i] {
        here.arrive_and_wait();
        if (i == 0) MPI_Barrier(MPI_COMM_WORLD);
        here.arrive_and_wait();
      };
      rank.of_first = [&, i](double value) {
        if (i == 0) {
          MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
          shared = value;
        }
        here.arrive_and_wait();
        value = shared;
        here.arrive_and_wait();
        return value;
      };
      work(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Runs `work` on `each` ranks a process; processes have one each, and are as many as the launcher made.
void on(const std::string& way, int each, const Work& work) {
  if (way == "processes") {
    Rank rank = by_communicator(MPI_COMM_WORLD);
    work(rank);
  } else if (way == "threads") {
    on_threads(each, work);
  } else {
    on_endpoints(each, work);
  }
}

/// Seconds of a round, the best of several samples. `work(rounds)` is called by all.
double seconds_of_round(Rank& rank, const std::function<void(int)>& work) {
  constexpr double sample_seconds = 0.02;
  constexpr int samples = 5;
  int rounds = 1;
  double seconds = 0;
  const auto sample = [&] {
    rank.wait_for_all();
    const double start = now();
    work(rounds);
    rank.wait_for_all();
    return rank.of_first(now() - start);
  };
  while ((seconds = sample()) < sample_seconds && rounds < (1 << 24))
    rounds = seconds * 8 < sample_seconds ? rounds * 4 : rounds * 2;
  double best = seconds / rounds;
  for (int i = 0; i < samples; ++i) best = std::min(best, sample() / rounds);
  return best;
}

void say(const Rank& rank, const std::string& what, const std::string& way, int ranks, long size, double value) {
  if (!rank.is_first()) return;
  std::printf("{\"what\": \"%s\", \"way\": \"%s\", \"ranks\": %d, \"size\": %ld, \"value\": %.9g}\n", what.c_str(),
              way.c_str(), ranks, size, value);
  std::fflush(stdout);
}

/// Whom a rank exchanges with: the first half of the ranks with the second. A thread's peer is a thread of the same
/// tag.
int peer_of(const Rank& rank) {
  const int other = (rank.number + rank.count / 2) % rank.count;
  return rank.comm == MPI_COMM_WORLD && world_size() != rank.count ? 1 - world_rank() : other;
}

/// Windows of messages from the first half to the second, each answered by an empty one. Seconds of a message of each
/// pair.
double windows(Rank& rank, long bytes) {
  const int window = static_cast<int>(std::clamp((4L << 20) / std::max(bytes, 1L), 1L, 64L));
  const int peer = peer_of(rank), tag = rank.tag;
  const bool sends = rank.number < rank.count / 2;
  const int length = static_cast<int>(bytes);
  std::vector<char> memory(static_cast<std::size_t>(bytes) + 1, 1);
  std::vector<MPI_Request> requests(static_cast<std::size_t>(window));
  const double seconds = seconds_of_round(rank, [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (MPI_Request& request : requests) {
        if (sends) {
          MPI_Isend(memory.data(), length, MPI_BYTE, peer, tag, rank.comm, &request);
        } else {
          MPI_Irecv(memory.data(), length, MPI_BYTE, peer, tag, rank.comm, &request);
        }
      }
      MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
      if (sends) {
        MPI_Recv(nullptr, 0, MPI_BYTE, peer, tag, rank.comm, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(nullptr, 0, MPI_BYTE, peer, tag, rank.comm);
      }
    }
  });
  return seconds / window;
}

/// Half a round trip between the first rank and `peer`; the others wait.
double half_round_trip(Rank& rank, int peer, long bytes) {
  const int length = static_cast<int>(bytes);
  std::vector<char> memory(static_cast<std::size_t>(bytes) + 1, 1);
  const auto send = [&](int to) { MPI_Send(memory.data(), length, MPI_BYTE, to, 0, rank.comm); };
  const auto receive = [&](int from) {
    MPI_Recv(memory.data(), length, MPI_BYTE, from, 0, rank.comm, MPI_STATUS_IGNORE);
  };
  return seconds_of_round(rank,
                          [&](int rounds) {
                            for (int round = 0; round < rounds; ++round) {
                              if (rank.is_first()) {
                                send(peer);
                                receive(peer);
                              } else if (rank.number == peer) {
                                receive(0);
                                send(0);
                              }
                            }
                          }) /
         2;
}

/// Receives that nothing matches, in the queue of the first rank or of the last, who takes no part.
double half_round_trip_behind(Rank& rank, bool own, int depth) {
  std::vector<MPI_Request> posted;
  if (rank.number == (own ? 0 : rank.count - 1)) {
    posted.resize(static_cast<std::size_t>(depth));
    for (int i = 0; i < depth; ++i)
      MPI_Irecv(nullptr, 0, MPI_BYTE, 1, 1000 + i, rank.comm, &posted[static_cast<std::size_t>(i)]);
  }
  const double seconds = half_round_trip(rank, 1, 8);
  for (MPI_Request& request : posted) MPI_Cancel(&request);
  MPI_Waitall(static_cast<int>(posted.size()), posted.data(), MPI_STATUSES_IGNORE);
  return seconds;
}

double allreduce(Rank& rank, long bytes) {
  const int count = static_cast<int>(bytes / 8);
  std::vector<double> in(static_cast<std::size_t>(count), 1.0), out(in);
  const double seconds = seconds_of_round(rank, [&](int rounds) {
    for (int i = 0; i < rounds; ++i) MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, rank.comm);
  });
  if (out[0] != rank.count) give_up("a wrong sum");
  return seconds;
}

using CommRank = int (*)(MPI_Comm, int*);

/// The MPI library's own, which gapless stands before.
CommRank comm_rank_of_library() {
  CommRank found = nullptr;
  const auto look = [](dl_phdr_info* object, std::size_t, void* result) {
    if (std::strstr(object->dlpi_name, "/libmpi.") == nullptr) return 0;
    void* const library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    *static_cast<CommRank*>(result) = reinterpret_cast<CommRank>(dlsym(library, "MPI_Comm_rank"));
    return 1;
  };
  dl_iterate_phdr(look, &found);
  if (found == nullptr) give_up("no MPI library");
  return found;
}

double ns_of_call(CommRank comm_rank) {
  constexpr int calls = 1 << 18;
  const double start = now();
  for (int i = 0; i < calls; ++i) {
    int rank;
    comm_rank(MPI_COMM_WORLD, &rank);
  }
  return 1e9 * (now() - start) / calls;
}

/// What a call costs, and what the library's own does at the same time: a processor's frequency changes between
/// programs by more than the difference.
void calls(const std::string& way) {
  constexpr int samples = 36;
  const auto ours = extension<CommRank>("MPI_Comm_rank"), of_library = comm_rank_of_library();
  Rank first;
  const auto measure = [&](const std::string& name) {
    double best = 1e9, alone = 1e9;
    for (int sample = 0; sample < samples; ++sample) {
      best = std::min(best, ns_of_call(ours));
      alone = std::min(alone, ns_of_call(of_library));
    }
    say(first, "calls", name, 1, 0, best);
    return alone;
  };
  if (way == "dynamic") {
    say(first, "calls", "alone", 1, 0, measure("before"));
    on_endpoints(1, [](Rank&) {});
  }
  measure(way);
}

void run(int argc, char** argv) {
  const std::string what = argv[1], way = argv[2];
  const auto sizes_from = [&](int first) {
    std::vector<long> sizes;
    for (int i = first; i < argc; ++i) sizes.push_back(std::atol(argv[i]));
    return sizes;
  };
  if (what == "calls") return calls(way);
  if (what == "rate" || what == "allreduce") {
    const int ranks = std::atoi(argv[3]);
    on(way, ranks, [&](Rank& rank) {
      for (const long bytes : sizes_from(4))
        say(rank, what, way, ranks, bytes, what == "rate" ? ranks / windows(rank, bytes) : allreduce(rank, bytes));
    });
  } else if (what == "depth") {
    const bool own = std::string(argv[3]) == "own";
    on(way, way == "inside" ? 3 : 1, [&](Rank& rank) {
      for (const long depth : sizes_from(4))
        say(rank, what + " " + argv[3], way, 1, depth, half_round_trip_behind(rank, own, static_cast<int>(depth)));
    });
  } else {
    on(way, way == "inside" ? 2 : 1, [&](Rank& rank) {
      for (const long bytes : sizes_from(3))
        say(rank, what, way, 1, bytes, what == "pair" ? 1 / windows(rank, bytes) : half_round_trip(rank, 1, bytes));
    });
  }
}

/// What a processor copies a second, in memory that two threads would have.
void copies(int argc, char** argv) {
  for (int i = 3; i < argc; ++i) {
    const auto bytes = static_cast<std::size_t>(std::atol(argv[i]));
    std::vector<char> from(bytes, 1), to(bytes);
    double best = 1;
    for (int sample = 0; sample < 9; ++sample) {
      const int rounds = static_cast<int>(std::max<std::size_t>(1, (16u << 20) / bytes));
      const double start = now();
      for (int round = 0; round < rounds; ++round) {
        std::memcpy(to.data(), from.data(), bytes);
        asm volatile("" ::: "memory");
      }
      best = std::min(best, (now() - start) / rounds);
    }
    Rank first;
    say(first, "pair", "memcpy", 1, static_cast<long>(bytes), 1 / best);
  }
}

}  // namespace
}  // namespace gapless::bench

int main(int argc, char** argv) {
  using namespace gapless::bench;
  if (argc < 3) {
    std::fprintf(stderr, "usage: endpoints rate|latency|pair|depth|allreduce|calls WAY ...\n");
    return 2;
  }
  const std::string way = argv[2];
  int level = 0;
  // Processes are measured as their users have them: without threads.
  if (way == "static") {
    using Init = int (*)(int*, char***, int, int, int*);
    extension<Init>("MPIX_Init_endpoints")(&argc, &argv, 1, MPI_THREAD_SINGLE, &level);
  } else {
    MPI_Init_thread(&argc, &argv, way == "processes" ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  }
  if (way == "memcpy") {
    copies(argc, argv);
  } else {
    run(argc, argv);
  }
  MPI_Finalize();
  return 0;
}

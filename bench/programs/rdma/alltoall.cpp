// MPI_Alltoall of a struct whose blocks double in length, from one int to as many as the row says, with gaps of one int
// (Wu et al., 2003, 8.3): by the library alone, by the library of bytes that gapless has packed, by gapless as it
// chooses with the fabric that GAPLESS_FABRIC names, and the same exchange as messages by each scheme over that. All
// ways are timed in turn within one job, in another order in each round. One line of JSON for each row.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "native_mpi.hpp"

namespace gapless::bench {
namespace {

constexpr int tag = 5, calls = 3;
/// The ranks have timed both of the ways that gapless may go.
constexpr int settling_calls = 9;
int rank, processes;

/// Of libgapless-core, which is loaded with gapless.
template <class Function>
Function core_function(const char* name) {
  void* const core = dlopen("libgapless-core.so", RTLD_NOW | RTLD_NOLOAD);
  return core != nullptr ? reinterpret_cast<Function>(dlsym(core, name)) : nullptr;
}

void force(const char* scheme) {
  const auto function = core_function<void (*)(const char*)>("gapless_transfer_force_scheme");
  if (function != nullptr) function(scheme);
}

/// The first numbers of gapless_fabric_counts(), and room for the others.
struct Counts {
  std::uint64_t posts, lists, posted_bytes, notifications, copied_bytes, registrations, others[10];
};

Counts counts() {
  Counts now{};
  const auto function = core_function<void (*)(Counts*)>("gapless_fabric_counts");
  if (function != nullptr) function(&now);
  return now;
}

/// The struct, and where each of its ints lies.
struct Struct {
  explicit Struct(int last) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    MPI_Aint at = 0;
    for (int length = 1; length <= last; length *= 2) {
      lengths.push_back(length);
      places.push_back(at * static_cast<MPI_Aint>(sizeof(int)));
      types.push_back(MPI_INT);
      for (int i = 0; i < length; ++i) ints.push_back(at + i);
      at += length + 1;
    }
    extent = at;
    MPI_Datatype plain;
    MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(), types.data(), &plain);
    MPI_Type_create_resized(plain, 0, extent * static_cast<MPI_Aint>(sizeof(int)), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&plain);
  }
  ~Struct() { MPI_Type_free(&type); }

  MPI_Datatype type{};
  MPI_Aint extent = 0;
  std::vector<MPI_Aint> ints;
};

struct Way {
  const char* name;
  const char* scheme;  ///< forced
  bool is_native, is_collective;
};
constexpr Way ways[] = {{"library", "", true, true},
                        {"packed", "packed", false, true},
                        {"gapless", "", false, true},
                        {"chosen", "", false, false},
                        {"fabric-pipelined", "fabric-pipelined", false, false},
                        {"gather-write", "gather-write", false, false},
                        {"scatter-read", "scatter-read", false, false},
                        {"multi-write", "multi-write", false, false}};

class Exchange {
 public:
  explicit Exchange(int last)
      : struct_(last),
        from_(static_cast<std::size_t>(struct_.extent * processes)),
        to_(from_.size()),
        requests_(2 * static_cast<std::size_t>(processes)) {
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = value(rank, i);
    // What ranks agree upon is a communicator's.
    for (MPI_Comm& communicator : communicators_) MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  }
  ~Exchange() {
    for (MPI_Comm& communicator : communicators_) MPI_Comm_free(&communicator);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::uint64_t bytes() const { return struct_.ints.size() * sizeof(int); }

  void run(const Way& way) {
    const MPI_Comm communicator = communicators_[&way - ways];
    const auto all = way.is_native ? GAPLESS_BENCH_NATIVE(Alltoall) : &MPI_Alltoall;
    if (way.is_collective) {
      all(from_.data(), 1, struct_.type, to_.data(), 1, struct_.type, communicator);
      return;
    }
    for (int i = 0; i < processes; ++i) {
      const int source = (rank + i) % processes, destination = (rank - i + processes) % processes;
      MPI_Irecv(&to_[place(source)], 1, struct_.type, source, tag, communicator, &requests_[index(i)]);
      MPI_Isend(&from_[place(destination)], 1, struct_.type, destination, tag, communicator,
                &requests_[index(processes + i)]);
    }
    MPI_Waitall(2 * processes, requests_.data(), MPI_STATUSES_IGNORE);
  }

  /// Every int of every process, and the gaps.
  bool is_right(const Way& way) {
    std::fill(to_.begin(), to_.end(), -1);
    std::vector<int> expected(to_);
    for (int source = 0; source < processes; ++source) {
      for (const MPI_Aint at : struct_.ints)
        expected[place(source) + index(static_cast<int>(at))] =
            value(source, place(rank) + index(static_cast<int>(at)));
    }
    run(way);
    return to_ == expected;
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static int value(int process, std::size_t i) { return process * 1000003 + static_cast<int>(i); }
  std::size_t place(int process) const { return static_cast<std::size_t>(struct_.extent * process); }

  Struct struct_;
  std::vector<int> from_, to_;
  std::vector<MPI_Request> requests_;
  MPI_Comm communicators_[std::size(ways)];  ///< by way
};

/// That of the slowest process.
double seconds_of(Exchange& exchange, const Way& way) {
  GAPLESS_BENCH_NATIVE(Barrier)(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) exchange.run(way);
  double seconds = (MPI_Wtime() - start) / calls, slowest = 0;
  GAPLESS_BENCH_NATIVE(Allreduce)(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// What the last round has taken.
struct Taken {
  std::vector<double> seconds;  ///< of each round
  Counts before, after;
};

void report(const Way& way, int last, const Exchange& exchange, const Taken& taken) {
  const auto &before = taken.before, &after = taken.after;
  std::uint64_t mine[] = {after.posts - before.posts, after.lists - before.lists,
                          after.notifications - before.notifications, after.copied_bytes - before.copied_bytes,
                          after.registrations - before.registrations};
  std::uint64_t all[5] = {};
  GAPLESS_BENCH_NATIVE(Reduce)(mine, all, 5, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  const double messages = static_cast<double>(calls) * processes * (processes - 1);
  const auto each = [&](int i) { return static_cast<double>(all[i]) / messages; };
  std::vector<double> sorted = taken.seconds;
  std::sort(sorted.begin(), sorted.end());
  std::string values;
  for (const double seconds : taken.seconds) values += (values.empty() ? "" : ", ") + std::to_string(seconds * 1e6);
  std::printf(
      "{\"measure\": \"alltoall\", \"scheme\": \"%s\", \"columns\": %d, \"bytes\": %llu, \"ranks\": %d, "
      "\"value\": %.2f, \"posts\": %.2f, \"lists\": %.2f, \"notifications\": %.2f, \"copies\": %.3f, "
      "\"registrations\": %.2f, \"rounds\": [%s]}\n",
      way.name, last, static_cast<unsigned long long>(exchange.bytes()), processes, sorted[sorted.size() / 2] * 1e6,
      each(0), each(1), each(2), each(3) / static_cast<double>(exchange.bytes()), each(4), values.c_str());
  std::fflush(stdout);
}

void verify_and_settle(Exchange& exchange, const Way& way) {
  if (!exchange.is_right(way)) {
    std::fprintf(stderr, "rdma_alltoall: wrong bytes by %s\n", way.name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < settling_calls; ++i) exchange.run(way);
}

void measure(int last) {
  Exchange exchange(last);
  Taken all[std::size(ways)];
  std::size_t order[std::size(ways)];
  std::iota(std::begin(order), std::end(order), std::size_t{0});
  std::minstd_rand random;
  // Short exchanges vary more.
  const int rounds = last <= 16384 ? 45 : 15;
  for (int round = -1; round < rounds; ++round) {
    std::shuffle(std::begin(order), std::end(order), random);
    for (const std::size_t i : order) {
      force(ways[i].scheme);
      if (round < 0) {
        verify_and_settle(exchange, ways[i]);
        continue;
      }
      all[i].before = counts();
      all[i].seconds.push_back(seconds_of(exchange, ways[i]));
      all[i].after = counts();
    }
  }
  for (std::size_t i = 0; i < std::size(ways); ++i) report(ways[i], last, exchange, all[i]);
}

}  // namespace
}  // namespace gapless::bench

int main(int count, char** arguments) {
  using namespace gapless::bench;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (!is_interposed()) {
    std::fprintf(stderr, "rdma_alltoall: run it under gapless\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int last = 2048; last <= 131072; last *= 2) measure(last);
  MPI_Finalize();
}

// What a process has used, first when MPI_Init returns, then when it has sent a first noncontiguous message to each
// other process and received one from each: processor time, the system's work included, and memory, with a share of
// what processes have in common. Run it with and without gapless preloaded. Prints one JSON line a moment, of the mean
// process.
#include <mpi.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int doubles = 1024;  // 8 KiB, every other one of an array

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// The system's proportional set size, in KiB.
double memory_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Pss:", 0) == 0) return std::atof(line.c_str() + 4);
  }
  return 0;
}

void tell(const char* moment, double seconds) {
  MPI_Barrier(MPI_COMM_WORLD);  // all are at that moment
  double mine[] = {seconds, memory_kib()}, all[2];
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0)
    std::printf("{\"moment\": \"%s\", \"ms\": %.2f, \"MiB\": %.2f}\n", moment, 1e3 * all[0] / size,
                all[1] / 1024 / size);
}

/// How many elements are wrong.
int send_to_all() {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype every_other;
  MPI_Type_vector(doubles, 1, 2, MPI_DOUBLE, &every_other);
  MPI_Type_commit(&every_other);
  const std::vector<double> out(2 * doubles, rank);
  std::vector<std::vector<double>> in(static_cast<std::size_t>(size), std::vector<double>(2 * doubles, -1));
  std::vector<MPI_Request> requests(2 * in.size());
  for (int distance = 0; distance < size; ++distance) {
    const int from = (rank + size - distance) % size, to = (rank + distance) % size;
    MPI_Request* const pair = &requests[2 * static_cast<std::size_t>(distance)];
    MPI_Irecv(in[static_cast<std::size_t>(from)].data(), 1, every_other, from, 0, MPI_COMM_WORLD, pair);
    MPI_Isend(out.data(), 1, every_other, to, 0, MPI_COMM_WORLD, pair + 1);
  }
  MPI_Waitall(2 * size, requests.data(), MPI_STATUSES_IGNORE);
  MPI_Type_free(&every_other);
  int wrong = 0;
  for (int from = 0; from < size; ++from) {
    for (std::size_t i = 0; i < 2 * doubles; ++i)
      wrong += in[static_cast<std::size_t>(from)][i] != (i % 2 == 0 ? from : -1) ? 1 : 0;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double begun = processor_seconds();
  tell("MPI_Init", begun);
  const double before = processor_seconds();
  const int wrong = send_to_all();
  tell("first messages", processor_seconds() - before);
  if (wrong != 0) std::printf("{\"wrong\": %d}\n", wrong);
  MPI_Finalize();
}

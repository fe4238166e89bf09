// The static interface: MPI is initialised with two endpoints a process, and threads bind themselves to them. A program
// of its own, for MPI_COMM_WORLD means something else here. Exits with 0 if everything is right.

#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gapless/endpoints.h"

namespace {

constexpr int per_process = 2;
std::atomic<int> wrong{0};

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

/// What a program of processes does, with MPI_COMM_WORLD and MPI_COMM_SELF in it.
void use_the_world(int processes) {
  int rank = -1, size = -1, sum = 0, self_size = -1, length = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(size == per_process * processes, "size of the world");
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == size * (size - 1) / 2, "sum of ranks");

  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int got = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(got == previous, "ring");

  // What a thread sends to itself stays its own.
  MPI_Comm_size(MPI_COMM_SELF, &self_size);
  MPI_Request request;
  MPI_Irecv(&got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
  MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(self_size == 1 && got == rank, "self");

  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_size(half, &size);
  check(size == processes, "size of a half");
  int result = -1;
  MPI_Comm_compare(half, MPI_COMM_WORLD, &result);
  check(result == MPI_UNEQUAL, "a half is not the world");
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
  check(result == MPI_IDENT, "the world is the world");
  MPI_Comm_free(&half);

  int key = MPI_KEYVAL_INVALID, flag = 0, *found = nullptr;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &rank);
  MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag);
  check(flag != 0 && found == &rank, "each has attributes of its own");
  // Not MPI_UNIVERSE_SIZE, which MPICH 5.0.2 asks its launcher for, by threads at a time in words that get mixed.
  for (const int of_the_job : {int{MPI_WTIME_IS_GLOBAL}, int{MPI_IO}, int{MPI_LASTUSEDCODE}}) {
    int in_process = 0;
    check(PMPI_Comm_get_attr(MPI_COMM_WORLD, of_the_job, &found, &in_process) == MPI_SUCCESS,
          "an attribute of the job");
    MPI_Comm_get_attr(MPI_COMM_WORLD, of_the_job, &found, &flag);
    check(flag == in_process, "the attributes of the job are those of the process's world");
  }
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  check(std::strcmp(name, "MPI_COMM_WORLD") == 0, "name of the world");
}

void parent_and_group() {
  MPI_Comm same;
  MPI_Group group;
  int relation = -1, world_rank = -1, rank = -1;
  check(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &same) == MPI_SUCCESS, "an endpoint as parent");
  MPI_Comm_compare(MPI_COMM_WORLD, same, &relation);
  check(relation == MPI_CONGRUENT, "one endpoint each is the endpoint itself");
  MPI_Comm_free(&same);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Group_rank(group, &rank);
  check(rank == world_rank, "group of the world");

  // The endpoint in its self is the one in the world.
  MPI_Group self;
  const int first = 0, other = world_rank ^ 1;  // both are of this process
  int in_world = -1, got = -1;
  MPI_Comm_group(MPI_COMM_SELF, &self);
  MPI_Group_translate_ranks(self, 1, &first, group, &in_world);
  check(in_world == world_rank, "self in the world");
  MPI_Comm between;
  check(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 9, &between) == MPI_SUCCESS, "between selves");
  MPI_Sendrecv(&world_rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, between, MPI_STATUS_IGNORE);
  check(got == other, "a message between selves");
  MPI_Comm_free(&between);
  MPI_Group_free(&self);
  MPI_Group_free(&group);
}

void misuse() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check(class_of(MPIX_Endpoint_attach(0)) == MPI_ERR_OTHER, "a thread attaches once");
  int count = 0;
  check(class_of(MPIX_Query_endpoints(MPI_COMM_WORLD, &count)) == MPI_ERR_UNSUPPORTED_OPERATION, "no query of one");
  check(class_of(MPI_Send(&count, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK,
        "rank of the endpoints' world");
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check(class_of(MPI_Comm_free(&world)) == MPI_ERR_COMM, "the world is not freed");
  // An error of no communicator's, for which processes have the handler of MPI_COMM_SELF.
  MPI_Group group, part;
  const int no_rank = 1000;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  check(class_of(MPI_Group_incl(group, 1, &no_rank, &part)) == MPI_ERR_RANK, "the thread's own handler");
  MPI_Group_free(&group);
}

void on_attached_threads(const std::function<void()>& work) {
  std::atomic<int> attached{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < per_process; ++i) {
    threads.emplace_back([&, i] {
      check(MPIX_Endpoint_attach(i) == MPI_SUCCESS, "attach");
      // Until all are attached none ends, which would let go of its endpoint.
      for (++attached; attached < per_process;) std::this_thread::yield();
      work();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The first process goes to MPI_Finalize with more buffered messages than there is room for, which the second one
/// receives later.
void leave_messages() {
  constexpr int messages = 2000;
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    for (int i = 0; i < messages; ++i) MPI_Bsend(&i, 1, MPI_INT, per_process, 7, MPI_COMM_WORLD);
  } else if (rank == per_process) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int i = 0; i < messages; ++i) {
      int got = -1;
      MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check(got == i, "a message that was left behind");
    }
  }
}

/// Without a world of endpoints, and with an endpoint left over: MPI_Finalize ends the job by the default handler.
int be_mistaken(int argc, char** argv) {
  int level = -1, process = -1;
  check(class_of(MPIX_Init_endpoints(&argc, &argv, -1, MPI_THREAD_SINGLE, &level)) == MPI_ERR_ARG, "negative number");
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check(class_of(MPIX_Endpoint_attach(0)) == MPI_ERR_OTHER, "attach without endpoints");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm left_over;
  check(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &left_over) == MPI_SUCCESS, "create");
  if (process != 0) MPI_Comm_free(&left_over);
  if (wrong == 0) std::fprintf(stderr, "all right up to MPI_Finalize\n");
  MPI_Finalize();
  return wrong != 0;
}

bool is_first_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name); rank != nullptr) return std::strcmp(rank, "0") == 0;
  }
  return false;
}

/// One process asks for more endpoints than its memory has room for, and all are told.
int ask_for_too_many(int argc, char** argv) {
  rlimit room{};
  if (is_first_process()) {
    getrlimit(RLIMIT_AS, &room);
    room.rlim_cur = std::min<rlim_t>(room.rlim_max, rlim_t{16} << 30);
    setrlimit(RLIMIT_AS, &room);
  }
  int level = -1, processes = 0;
  const int count = is_first_process() ? std::numeric_limits<int>::max() : 1;
  check(class_of(MPIX_Init_endpoints(&argc, &argv, count, MPI_THREAD_SINGLE, &level)) == MPI_ERR_ARG, "too many");
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  check(processes == 2, "a world of processes");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong != 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "mistakes") == 0) return be_mistaken(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "too_many") == 0) return ask_for_too_many(argc, argv);
  int level = -1, processes = 0, process = -1;
  check(MPIX_Init_endpoints(&argc, &argv, per_process, MPI_THREAD_SINGLE, &level) == MPI_SUCCESS, "init");
  check(level == MPI_THREAD_MULTIPLE, "level");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  check(processes >= 1 && process < processes, "a thread that is not attached sees processes");

  check(class_of(MPIX_Init_endpoints(&argc, &argv, 1, MPI_THREAD_SINGLE, &level)) == MPI_ERR_OTHER, "init twice");
  check(class_of(MPIX_Endpoint_attach(-1)) == MPI_ERR_ARG, "attach below the range");
  check(class_of(MPIX_Endpoint_attach(per_process)) == MPI_ERR_ARG, "attach above the range");

  on_attached_threads([&] { use_the_world(processes); });
  // The threads have ended, so that others may attach.
  on_attached_threads(parent_and_group);
  on_attached_threads(misuse);
  check(MPIX_Endpoint_attach(0) == MPI_SUCCESS, "the main thread attaches");
  std::thread([] { check(class_of(MPIX_Endpoint_attach(0)) == MPI_ERR_OTHER, "an endpoint is one thread's"); }).join();
  std::thread other([&] {
    check(MPIX_Endpoint_attach(1) == MPI_SUCCESS, "the other endpoint is free");
    use_the_world(processes);
  });
  use_the_world(processes);
  other.join();
  if (processes > 1) leave_messages();
  check(MPI_Finalize() == MPI_SUCCESS, "finalize");
  if (process == 0 && wrong == 0) std::puts("endpoints: right");
  return wrong != 0;
}

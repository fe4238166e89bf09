/* The whole way for a C program of threads: two endpoints a process, each driven by a thread of its own, exchange
 * messages in a ring and with every other endpoint. Prints one line, and exits with 0, if all bytes are right. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#include "gapless/endpoints.h"

enum { endpoints = 2, numbers = 5000 };

static int wrong;

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong: %s\n", what);
  __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
}

static void* run(void* place) {
  MPI_Comm* comm = place;
  int rank, size, world_rank, world_size;
  MPI_Comm_rank(*comm, &rank);
  MPI_Comm_size(*comm, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  check(size == endpoints * world_size && rank / endpoints == world_rank, "ranks");

  int mine[numbers], theirs[numbers];
  for (int i = 0; i < numbers; ++i) mine[i] = 1000 * rank + i;
  for (int peer = 0; peer < size; ++peer) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(theirs, numbers, MPI_INT, peer, 7, *comm, &requests[0]);
    MPI_Isend(mine, numbers, MPI_INT, peer, 7, *comm, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    int count = 0;
    MPI_Get_count(&statuses[0], MPI_INT, &count);
    check(count == numbers && statuses[0].MPI_SOURCE == peer && statuses[0].MPI_TAG == 7, "status");
    check(theirs[0] == 1000 * peer && theirs[numbers - 1] == 1000 * peer + numbers - 1, "numbers");
  }

  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int token = rank, got = -1;
  MPI_Status status;
  if (rank % 2 == 0) {
    MPI_Send(&token, 1, MPI_INT, next, 1, *comm);
    MPI_Recv(&got, 1, MPI_INT, previous, 1, *comm, &status);
  } else {
    MPI_Recv(&got, 1, MPI_INT, previous, 1, *comm, &status);
    MPI_Send(&token, 1, MPI_INT, next, 1, *comm);
  }
  check(got == previous && status.MPI_SOURCE == previous, "ring");
  check(MPI_Comm_free(comm) == MPI_SUCCESS && *comm == MPI_COMM_NULL, "free");
  return NULL;
}

int main(int argc, char** argv) {
  int level, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comms[endpoints];
  pthread_t threads[endpoints];
  if (MPIX_Comm_create_endpoints(MPI_COMM_WORLD, endpoints, MPI_INFO_NULL, comms) != MPI_SUCCESS) return 2;
  for (int i = 0; i < endpoints; ++i) pthread_create(&threads[i], NULL, run, &comms[i]);
  for (int i = 0; i < endpoints; ++i) pthread_join(threads[i], NULL);
  MPI_Finalize();
  if (rank == 0 && !wrong) puts("endpoints: right");
  return wrong != 0;
}

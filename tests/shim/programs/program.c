// An MPI program that knows nothing of gapless. It makes a known number of calls, with arguments in registers and on
// the stack, to its own rank, and checks what they did.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

int main(int argc, char** argv) {
  int rank, size, position = 0, sent[3] = {1, 2, 3}, received[3] = {0};
  char packed[64];
  check(MPI_Init(&argc, &argv) == MPI_SUCCESS, "MPI_Init");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  MPI_Status status;
  MPI_Sendrecv(sent, 3, MPI_INT, rank, 7, received, 3, MPI_INT, rank, 7, MPI_COMM_WORLD, &status);
  check(received[0] == 1 && received[1] == 2 && received[2] == 3, "data of MPI_Sendrecv");
  check(status.MPI_SOURCE == rank && status.MPI_TAG == 7, "status of MPI_Sendrecv");

  for (int i = 0; i < 3; ++i) MPI_Send(sent, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  PMPI_Send(sent, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Pack(sent, 3, MPI_INT, packed, sizeof(packed), &position, MPI_COMM_WORLD);
  check(position == 3 * (int)sizeof(int), "position of MPI_Pack");

  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == size, "MPI_Allreduce");

  int memory = 5, old = 0;
  MPI_Win window;
  MPI_Win_create(&memory, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  MPI_Get_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_unlock(rank, window);
  check(old == 5 && memory == 6, "MPI_Get_accumulate");
  MPI_Win_free(&window);

#ifdef HAS_LARGE_COUNT
  MPI_Send_c(sent, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
#endif
  if (rank == 0) printf("right on %d\n", size);
  MPI_Finalize();
  return 0;
}

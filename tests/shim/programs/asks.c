// A program that uses a function only if its MPI library has it.
#include <mpi.h>
#include <stdio.h>

extern int MPI_Send_c(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm) __attribute__((weak));

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  printf("large count %d\n", MPI_Send_c != 0);
  if (MPI_Send_c != 0) MPI_Send_c(0, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}

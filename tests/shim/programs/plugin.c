// A library that uses MPI, for a program that loads it at run time. Each call is the last thing its function does, so
// that compilers make it a jump and the return address that gapless sees lies in the program, which knows no MPI.
#include <mpi.h>

extern int MPI_Send_c(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm) __attribute__((weak));
extern int MPI_Comm_attach_buffer(MPI_Comm, void*, int) __attribute__((weak));

int has_large_count(void) { return MPI_Send_c != 0; }
int has_communicator_buffers(void) { return MPI_Comm_attach_buffer != 0; }
int start(void) { return MPI_Init(0, 0); }
int message(void) { return MPI_Send(0, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); }
int finish(void) { return MPI_Finalize(); }

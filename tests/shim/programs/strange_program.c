// Calls functions of an MPI library it knows nothing about and prints what they return.
#include <stdio.h>

int MPI_Sendrecv(const void*, int, int, int, int, void*, int, int, int, int, int, void*);
int MPI_Send(const void*, int, int, int, int, int);

int main(void) {
  printf("sendrecv %d\n", MPI_Sendrecv((void*)1, 2, 3, 4, 5, (void*)6, 7, 8, 9, 10, 11, (void*)12));
  printf("send %d\n", MPI_Send(0, 0, 0, 0, 0, 0));
  printf("send %d\n", MPI_Send(0, 0, 0, 0, 0, 0));
  return 0;
}

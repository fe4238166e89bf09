// Calls two functions of an MPI library it knows nothing about and prints what they return.
#include <stdio.h>

int MPI_Init(int*, char***);
int MPI_Send(const void*, int, int, int, int, int);

int main(void) {
  printf("init %d\n", MPI_Init(0, 0));
  printf("send %d\n", MPI_Send(0, 0, 0, 0, 0, 0));
  printf("send %d\n", MPI_Send(0, 0, 0, 0, 0, 0));
  return 0;
}

/* All threads of an OpenMP program take part in one MPI_Allreduce (Dinan et al., 2014, listing 1): they add up the
 * numbers from 1 to 1000000, each its share, as if every thread were a process. */
#include <gapless/endpoints.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const long last = 1000000;
  int level, wrong = 0;
  MPI_Comm* ranks = malloc(sizeof *ranks * (size_t)omp_get_max_threads());
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);

#pragma omp parallel reduction(+ : wrong)
  {
    const int thread = omp_get_thread_num();
#pragma omp master
    MPIX_Comm_create_endpoints(MPI_COMM_WORLD, omp_get_num_threads(), MPI_INFO_NULL, ranks);
#pragma omp barrier

    int rank, size;
    MPI_Comm_rank(ranks[thread], &rank);
    MPI_Comm_size(ranks[thread], &size);
    long mine = 0, sum = 0;
    for (long number = 1 + rank; number <= last; number += size) mine += number;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, ranks[thread]);
    wrong += sum != last * (last + 1) / 2;
    if (rank == 0) printf("%d ranks, sum %ld\n", size, sum);
    MPI_Comm_free(&ranks[thread]);
  }
  free(ranks);
  MPI_Finalize();
  return wrong != 0;
}

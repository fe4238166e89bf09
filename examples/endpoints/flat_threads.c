/* A language whose units of execution are threads, each of them an MPI rank (Dinan et al., 2014, section 5.2). The
 * user's part is an ordinary MPI program that knows of no threads: MPI_COMM_WORLD is its own. The runtime below makes
 * as many endpoints as it has threads, and binds each thread to one. */
#include <gapless/endpoints.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The user's part: the integral of 4 / (1 + x^2) from 0 to 1, in finer steps until it is good enough. */
static int user_main(void) {
  int rank, size;
  double pi = 0, error = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int steps = 16; error > 1e-9 && steps < 1 << 24; steps *= 4) {
    double mine = 0;
    for (int i = rank; i < steps; i += size) {
      const double x = (i + 0.5) / steps;
      mine += 4 / (1 + x * x) / steps;
    }
    MPI_Allreduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    error = fabs(pi - acos(-1.0));
  }
  if (rank == 0) printf("%d ranks, pi %.9f\n", size, pi);
  return error > 1e-9;
}

/* The runtime. */
struct unit {
  pthread_t thread;
  int id, result;
};

static void* run_unit(void* argument) {
  struct unit* unit = argument;
  MPIX_Endpoint_attach(unit->id);
  unit->result = user_main();
  return NULL;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 2;
  int level, wrong = 0;
  if (MPIX_Init_endpoints(&argc, &argv, count, MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return 2;
  struct unit* units = calloc((size_t)count, sizeof *units);
  for (int i = 0; i < count; ++i) {
    units[i].id = i;
    pthread_create(&units[i].thread, NULL, run_unit, &units[i]);
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(units[i].thread, NULL);
    wrong |= units[i].result;
  }
  free(units);
  MPI_Finalize();
  return wrong;
}

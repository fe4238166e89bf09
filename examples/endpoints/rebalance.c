/* A mesh in one dimension, cut into tiles that are ranks: each tile exchanges its ends with the tiles before and after
 * it, which keep their ranks when the load is balanced anew and tiles move to other processes. Heat spreads along the
 * mesh; the sum of it tells whether all state has moved along. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiles.h"

enum { cells = 50, tiles_each = 3, phases = 4, steps = 25 };

struct state {
  double heat[cells + 2]; /* one cell of each neighbour, at either end */
  int steps;
};

struct work {
  pthread_t thread;
  MPI_Comm rank;
  struct state* state;
};

/* What a thread does for its tile between two rebalancings. */
static void* compute(void* argument) {
  const struct work* work = argument;
  struct state* state = work->state;
  double* heat = state->heat;
  int tile, tiles;
  MPI_Comm_rank(work->rank, &tile);
  MPI_Comm_size(work->rank, &tiles);
  const int before = (tile + tiles - 1) % tiles, after = (tile + 1) % tiles;
  for (int i = 0; i < steps; ++i, ++state->steps) {
    double next[cells + 2];
    MPI_Sendrecv(&heat[cells], 1, MPI_DOUBLE, after, 0, &heat[0], 1, MPI_DOUBLE, before, 0, work->rank,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&heat[1], 1, MPI_DOUBLE, before, 1, &heat[cells + 1], 1, MPI_DOUBLE, after, 1, work->rank,
                 MPI_STATUS_IGNORE);
    for (int c = 1; c <= cells; ++c) next[c] = heat[c] / 2 + (heat[c - 1] + heat[c + 1]) / 4;
    memcpy(&heat[1], &next[1], sizeof *heat * cells);
  }
  return NULL;
}

static void compute_all(const struct tiles* tiles) {
  struct work* all = calloc((size_t)tiles->count + 1, sizeof *all);
  for (int i = 0; i < tiles->count; ++i) {
    all[i].rank = tiles->ranks[i];
    all[i].state = tiles->states[i];
    pthread_create(&all[i].thread, NULL, compute, &all[i]);
  }
  for (int i = 0; i < tiles->count; ++i) pthread_join(all[i].thread, NULL);
  free(all);
}

/* The same by one process alone. */
static double* compute_alone(int size) {
  double *heat = calloc((size_t)size, sizeof *heat), *next = calloc((size_t)size, sizeof *heat);
  heat[0] = 1000;
  for (int i = 0; i < phases * steps; ++i) {
    for (int c = 0; c < size; ++c) next[c] = heat[c] / 2 + (heat[(c + size - 1) % size] + heat[(c + 1) % size]) / 4;
    double* const other = heat;
    heat = next;
    next = other;
  }
  free(next);
  return heat;
}

static int differences(const struct tiles* tiles, const double* whole) {
  int wrong = 0;
  for (int i = 0; i < tiles->count; ++i) {
    const struct state* state = tiles->states[i];
    wrong += state->steps != phases * steps;
    for (int c = 0; c < cells; ++c) wrong += fabs(state->heat[c + 1] - whole[(tiles->first + i) * cells + c]) > 1e-9;
  }
  return wrong;
}

int main(int argc, char** argv) {
  int level, process, processes, moved = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);

  struct tiles tiles;
  if (tiles_make(MPI_COMM_WORLD, tiles_each, sizeof(struct state), &tiles) != MPI_SUCCESS) return 2;
  if (process == 0) ((struct state*)tiles.states[0])->heat[1] = 1000;
  for (int phase = 0; phase < phases; ++phase) {
    compute_all(&tiles);
    /* A load that wanders: pairs of processes have one tile more and one less by turns. */
    const int turn = process % 2 == phase % 2 ? 1 : -1, has_partner = (process ^ 1) < processes;
    const int first = tiles.first;
    if (tiles_rebalance(&tiles, has_partner ? tiles_each + turn : tiles_each) != MPI_SUCCESS) return 2;
    moved += tiles.first != first;
  }

  double* whole = compute_alone(processes * tiles_each * cells);
  int wrong = differences(&tiles, whole), all_wrong = 0, all_moved = 0;
  free(whole);
  tiles_free(&tiles);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&moved, &all_moved, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (process == 0)
    printf("%d tiles on %d processes, moved %s, %s\n", processes * tiles_each, processes, all_moved > 0 ? "yes" : "no",
           all_wrong ? "wrong" : "right");
  MPI_Finalize();
  return all_wrong != 0;
}

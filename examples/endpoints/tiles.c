#include "tiles.h"

#include <gapless/endpoints.h>
#include <stdlib.h>

/* Makes handles and places for states; tiles are numbered in the order of the processes. */
static int take(struct tiles* tiles, int count) {
  int end = 0;
  MPI_Scan(&count, &end, 1, MPI_INT, MPI_SUM, tiles->processes);
  tiles->first = end - count;
  tiles->count = count;
  tiles->ranks = calloc((size_t)count + 1, sizeof *tiles->ranks);
  tiles->states = calloc((size_t)count + 1, sizeof *tiles->states);
  return MPIX_Comm_create_endpoints(tiles->processes, count, MPI_INFO_NULL, tiles->ranks);
}

int tiles_make(MPI_Comm processes, int count, int state_size, struct tiles* tiles) {
  tiles->processes = processes;
  tiles->state_size = state_size;
  const int code = take(tiles, count);
  for (int i = 0; i < count; ++i) tiles->states[i] = calloc(1, (size_t)state_size);
  return code;
}

void tiles_free(struct tiles* tiles) {
  for (int i = 0; i < tiles->count; ++i) {
    MPI_Comm_free(&tiles->ranks[i]);
    free(tiles->states[i]);
  }
  free(tiles->ranks);
  free(tiles->states);
}

/* The process that has `tile`, by the first tile of each process. */
static int owner(const int* firsts, int processes, int tile) {
  int process = processes - 1;
  while (firsts[process] > tile) --process;
  return process;
}

int tiles_rebalance(struct tiles* tiles, int count) {
  struct tiles old = *tiles;
  const int code = take(tiles, count);
  if (code != MPI_SUCCESS) return code;

  int processes, me;
  MPI_Comm_size(tiles->processes, &processes);
  MPI_Comm_rank(tiles->processes, &me);
  int* firsts = malloc(sizeof *firsts * 2 * (size_t)processes);
  int *before = firsts, *after = firsts + processes;
  MPI_Allgather(&old.first, 1, MPI_INT, before, 1, MPI_INT, tiles->processes);
  MPI_Allgather(&tiles->first, 1, MPI_INT, after, 1, MPI_INT, tiles->processes);

  MPI_Request* requests = malloc(sizeof *requests * (size_t)(old.count + count + 1));
  int started = 0;
  for (int i = 0; i < count; ++i) {
    const int tile = tiles->first + i, from = owner(before, processes, tile);
    if (from == me) { /* it stays */
      tiles->states[i] = old.states[tile - old.first];
      old.states[tile - old.first] = NULL;
    } else {
      tiles->states[i] = malloc((size_t)tiles->state_size);
      MPI_Irecv(tiles->states[i], tiles->state_size, MPI_BYTE, from, tile, tiles->processes, &requests[started++]);
    }
  }
  for (int i = 0; i < old.count; ++i) {
    const int tile = old.first + i;
    if (old.states[i] == NULL) continue;
    MPI_Isend(old.states[i], old.state_size, MPI_BYTE, owner(after, processes, tile), tile, old.processes,
              &requests[started++]);
  }
  const int moved = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
  free(requests);
  free(firsts);
  tiles_free(&old);
  return moved;
}

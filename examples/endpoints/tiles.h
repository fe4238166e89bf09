/* Tiles of a mesh as ranks: a small library (Dinan et al., 2014, section 5.3). Tile t is rank t of an endpoints
 * communicator, wherever it lives, so that a program names its neighbours by their tiles and need not know which
 * process has them. To rebalance, processes ask for other numbers of tiles; the library makes the communicator again
 * and moves the state of each tile that has got another owner. */
#ifndef TILES_H
#define TILES_H

#include <mpi.h>

struct tiles {
  MPI_Comm processes;
  int first, count; /* the calling process has the tiles first .. first + count - 1 */
  int state_size;   /* bytes of a tile's state */
  MPI_Comm* ranks;  /* the handle of each */
  void** states;    /* the state of each, allocated by malloc */
};

/* The calling process has `count` tiles, with states of zero bytes. Collective. An error code of MPI. */
int tiles_make(MPI_Comm processes, int count, int state_size, struct tiles* tiles);

/* It has `count` from here on. Handles and states of before are gone; those of the tiles that it has are there. The
 * number of tiles in all stays. Collective, called by one thread of each process. An error code of MPI. */
int tiles_rebalance(struct tiles* tiles, int count);

void tiles_free(struct tiles* tiles);

#endif

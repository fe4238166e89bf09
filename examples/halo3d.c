/* A 3-D halo exchange in plain MPI: it knows nothing of gapless, and gapless knows nothing of it.
 *
 * A periodic grid of processes, each with a box of doubles and a halo around it. Each iteration fills the halo from the
 * 26 neighbours, whose pieces are described by MPI_Type_create_subarray. Every point holds a number made from its
 * global coordinates and the iteration, so that after each exchange every halo point can be checked.
 *
 *   halo3d [--size N] [--radius R] [--iterations I] [--mode MODE] [--device] [--no-verify]
 *
 * MODE is how the pieces travel:
 *   sendrecv    26 MPI_Sendrecv, one after the other
 *   isend       26 MPI_Irecv, 26 MPI_Isend and an MPI_Waitall
 *   persistent  the same by requests that are made once: MPI_Startall and MPI_Waitall
 *   pack        26 MPI_Pack, one MPI_Alltoallv and 26 MPI_Unpack
 *   neighbor    one MPI_Neighbor_alltoallw
 *
 * Rank 0 prints one line: halo3d key=value ...; the exit status is 1 if any halo point was wrong, 2 for a usage error.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { neighbours = 26 };

struct options {
  int size, radius, iterations, device, verify;
  const char* mode;
};

struct neighbour {
  int rank; /* who the piece is sent to */
  int from; /* who the piece in the opposite halo comes from */
  MPI_Datatype send, receive;
  int bytes;
};

struct grid {
  MPI_Comm comm;
  int rank, processes;
  int dims[3], coordinates[3];
  int full[3];               /* points of the local array with its halo */
  int64_t* last_coordinates; /* of each point along the last dimension, in the whole grid */
  struct neighbour neighbours[neighbours];
  MPI_Comm graph;                       /* the neighbours again, as `--mode neighbor` knows them */
  MPI_Request requests[2 * neighbours]; /* of `--mode persistent` */
};

/* The two buffers of `--mode pack`, with a piece for every neighbour. */
struct packed {
  char *out, *in;
  int *counts, *displacements; /* by rank */
  int offsets[neighbours];     /* where the piece to, and the piece from, a neighbour lies */
  int in_offsets[neighbours];
  int bytes;
};

/* GPU memory without a CUDA installation at compile time. */
static struct {
  int (*allocate)(void**, size_t);
  int (*copy)(void*, const void*, size_t, int);
  int (*release)(void*);
  int (*select)(int);
  int (*count)(int*);
} cuda;

static void fail(const char* message) {
  fprintf(stderr, "halo3d: %s\n", message);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void open_cuda(int rank) {
  static const char* const names[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  void* library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; ++i)
    library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
  if (!library) fail("--device needs libcudart.so on the library path");
  *(void**)&cuda.allocate = dlsym(library, "cudaMalloc");
  *(void**)&cuda.copy = dlsym(library, "cudaMemcpy");
  *(void**)&cuda.release = dlsym(library, "cudaFree");
  *(void**)&cuda.select = dlsym(library, "cudaSetDevice");
  *(void**)&cuda.count = dlsym(library, "cudaGetDeviceCount");
  if (!cuda.allocate || !cuda.copy || !cuda.release || !cuda.select || !cuda.count)
    fail("libcudart.so lacks a function");
  int devices = 0;
  if (cuda.count(&devices) != 0 || devices == 0) fail("--device needs a GPU");
  cuda.select(rank % devices);
}

static void* allocate(const struct options* options, size_t bytes) {
  void* memory = NULL;
  if (options->device) {
    if (cuda.allocate(&memory, bytes) != 0) memory = NULL;
  } else {
    memory = malloc(bytes);
  }
  if (!memory) fail("out of memory");
  return memory;
}

static void release(const struct options* options, void* memory) {
  if (options->device)
    cuda.release(memory);
  else
    free(memory);
}

static void copy(const struct options* options, void* destination, const void* source, size_t bytes) {
  enum { cuda_memcpy_default = 4 };
  if (!options->device)
    memcpy(destination, source, bytes);
  else if (cuda.copy(destination, source, bytes, cuda_memcpy_default) != 0)
    fail("cudaMemcpy failed");
}

/* Where direction d (-1, 0, 1) of a dimension starts in the local array: the points given away, or the halo filled. */
static int given_start(int d, int size, int radius) { return d > 0 ? size : radius; }
static int halo_start(int d, int size, int radius) { return d < 0 ? 0 : d > 0 ? size + radius : radius; }

/* Where the local points of a dimension, halo included, lie in the periodic grid of all processes' points. */
static int64_t global_coordinate(const struct options* options, const struct grid* grid, int dimension, int local) {
  const int64_t points = (int64_t)grid->dims[dimension] * options->size;
  const int64_t global = (int64_t)grid->coordinates[dimension] * options->size + local - options->radius;
  return (global + points) % points;
}

static void make_grid(const struct options* options, struct grid* grid) {
  const int periodic[3] = {1, 1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &grid->processes);
  memset(grid->dims, 0, sizeof grid->dims);
  MPI_Dims_create(grid->processes, 3, grid->dims);
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid->dims, periodic, 0, &grid->comm);
  MPI_Comm_rank(grid->comm, &grid->rank);
  MPI_Cart_coords(grid->comm, grid->rank, 3, grid->coordinates);
  for (int i = 0; i < 3; ++i) grid->full[i] = options->size + 2 * options->radius;
  grid->last_coordinates = malloc(sizeof(int64_t) * (size_t)grid->full[2]);
  if (!grid->last_coordinates) fail("out of memory");
  for (int k = 0; k < grid->full[2]; ++k) grid->last_coordinates[k] = global_coordinate(options, grid, 2, k);

  int n = 0;
  for (int direction = 0; direction < 27; ++direction) {
    const int d[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
    if (!d[0] && !d[1] && !d[2]) continue;
    struct neighbour* neighbour = &grid->neighbours[n++];
    int to[3], from[3], extent[3], give[3], halo[3];
    neighbour->bytes = sizeof(double);
    for (int i = 0; i < 3; ++i) {
      to[i] = grid->coordinates[i] + d[i];
      from[i] = grid->coordinates[i] - d[i];
      extent[i] = d[i] ? options->radius : options->size;
      give[i] = given_start(d[i], options->size, options->radius);
      halo[i] = halo_start(-d[i], options->size, options->radius);
      neighbour->bytes *= extent[i];
    }
    MPI_Cart_rank(grid->comm, to, &neighbour->rank);
    MPI_Cart_rank(grid->comm, from, &neighbour->from);
    MPI_Type_create_subarray(3, grid->full, extent, give, MPI_ORDER_C, MPI_DOUBLE, &neighbour->send);
    MPI_Type_create_subarray(3, grid->full, extent, halo, MPI_ORDER_C, MPI_DOUBLE, &neighbour->receive);
    MPI_Type_commit(&neighbour->send);
    MPI_Type_commit(&neighbour->receive);
  }
}

static void free_grid(struct grid* grid) {
  free(grid->last_coordinates);
  for (int n = 0; n < neighbours; ++n) {
    MPI_Type_free(&grid->neighbours[n].send);
    MPI_Type_free(&grid->neighbours[n].receive);
  }
  MPI_Comm_free(&grid->graph);
  MPI_Comm_free(&grid->comm);
}

static void exchange_sendrecv(struct grid* grid, double* field) {
  for (int n = 0; n < neighbours; ++n) {
    struct neighbour* to = &grid->neighbours[n];
    MPI_Sendrecv(field, 1, to->send, to->rank, n, field, 1, to->receive, to->from, n, grid->comm, MPI_STATUS_IGNORE);
  }
}

static void exchange_isend(struct grid* grid, double* field) {
  MPI_Request requests[2 * neighbours];
  for (int n = 0; n < neighbours; ++n) {
    struct neighbour* to = &grid->neighbours[n];
    MPI_Irecv(field, 1, to->receive, to->from, n, grid->comm, &requests[n]);
  }
  for (int n = 0; n < neighbours; ++n) {
    struct neighbour* to = &grid->neighbours[n];
    MPI_Isend(field, 1, to->send, to->rank, n, grid->comm, &requests[neighbours + n]);
  }
  MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
}

static void make_requests(struct grid* grid, double* field) {
  for (int n = 0; n < neighbours; ++n) {
    struct neighbour* to = &grid->neighbours[n];
    MPI_Recv_init(field, 1, to->receive, to->from, n, grid->comm, &grid->requests[n]);
    MPI_Send_init(field, 1, to->send, to->rank, n, grid->comm, &grid->requests[neighbours + n]);
  }
}

static void free_requests(struct grid* grid) {
  for (int n = 0; n < 2 * neighbours; ++n) MPI_Request_free(&grid->requests[n]);
}

static void exchange_persistent(struct grid* grid) {
  MPI_Startall(2 * neighbours, grid->requests);
  MPI_Waitall(2 * neighbours, grid->requests, MPI_STATUSES_IGNORE);
}

/* A process may be a neighbour in several directions: its pieces are in the order of directions at both ends. Ranks are
 * those of the grid, which was not reordered; Open MPI takes a graph made from a grid's communicator for a grid. */
static void make_graph(struct grid* grid) {
  int sources[neighbours], destinations[neighbours], weights[neighbours];
  for (int n = 0; n < neighbours; ++n) {
    weights[n] = grid->neighbours[n].bytes;
    sources[n] = grid->neighbours[n].from;
    destinations[n] = grid->neighbours[n].rank;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, neighbours, sources, weights, neighbours, destinations, weights,
                                 MPI_INFO_NULL, 0, &grid->graph);
}

/* Open MPI takes no single address for both buffers, although no byte is both sent and received: so the receive buffer
 * begins one point later, and every displacement in it is one point less. */
static void exchange_neighbor(struct grid* grid, double* field) {
  int counts[neighbours];
  MPI_Aint displacements[neighbours], shifted[neighbours];
  MPI_Datatype send[neighbours], receive[neighbours];
  for (int n = 0; n < neighbours; ++n) {
    counts[n] = 1;
    displacements[n] = 0;
    shifted[n] = -(MPI_Aint)sizeof *field;
    send[n] = grid->neighbours[n].send;
    receive[n] = grid->neighbours[n].receive;
  }
  MPI_Neighbor_alltoallw(field, counts, displacements, send, field + 1, counts, shifted, receive, grid->graph);
}

/* Pieces for one rank lie next to each other, in the order of directions: both sides know it. A piece sent in direction
 * n by one rank is the one its neighbour receives in direction n, so both count the same bytes. */
static void make_packed(const struct options* options, const struct grid* grid, struct packed* packed) {
  packed->counts = calloc(2 * (size_t)grid->processes, sizeof(int));
  packed->displacements = calloc(2 * (size_t)grid->processes, sizeof(int));
  if (!packed->counts || !packed->displacements) fail("out of memory");
  for (int incoming = 0; incoming < 2; ++incoming) {
    int* counts = packed->counts + incoming * grid->processes;
    int* displacements = packed->displacements + incoming * grid->processes;
    int* offsets = incoming ? packed->in_offsets : packed->offsets;
    packed->bytes = 0;
    for (int rank = 0; rank < grid->processes; ++rank) {
      displacements[rank] = packed->bytes;
      for (int n = 0; n < neighbours; ++n) {
        const struct neighbour* neighbour = &grid->neighbours[n];
        if ((incoming ? neighbour->from : neighbour->rank) != rank) continue;
        offsets[n] = packed->bytes;
        counts[rank] += neighbour->bytes;
        packed->bytes += neighbour->bytes;
      }
    }
  }
  packed->out = allocate(options, (size_t)packed->bytes);
  packed->in = allocate(options, (size_t)packed->bytes);
}

static void free_packed(const struct options* options, struct packed* packed) {
  release(options, packed->out);
  release(options, packed->in);
  free(packed->counts);
  free(packed->displacements);
}

/* Returns the time of packing and unpacking. */
static double exchange_pack(struct grid* grid, struct packed* packed, double* field) {
  const double start = MPI_Wtime();
  for (int n = 0; n < neighbours; ++n) {
    int position = packed->offsets[n];
    MPI_Pack(field, 1, grid->neighbours[n].send, packed->out, packed->bytes, &position, grid->comm);
  }
  const double packed_at = MPI_Wtime();
  MPI_Alltoallv(packed->out, packed->counts, packed->displacements, MPI_PACKED, packed->in,
                packed->counts + grid->processes, packed->displacements + grid->processes, MPI_PACKED, grid->comm);
  const double received_at = MPI_Wtime();
  for (int n = 0; n < neighbours; ++n) {
    int position = packed->in_offsets[n];
    MPI_Unpack(packed->in, packed->bytes, &position, field, 1, grid->neighbours[n].receive, grid->comm);
  }
  return packed_at - start + MPI_Wtime() - received_at;
}

static int is_inside(const struct options* options, int local) {
  return local >= options->radius && local < options->size + options->radius;
}

/* Fills the box with this iteration's values and the halo with a value no point has; or counts the wrong points. A
 * point's value is made from its number in the whole grid, as its owner computes it. */
static int64_t visit(const struct options* options, const struct grid* grid, double* field, int iteration, int check) {
  int64_t wrong = 0;
  for (int i = 0; i < grid->full[0]; ++i)
    for (int j = 0; j < grid->full[1]; ++j) {
      const int64_t plane = global_coordinate(options, grid, 0, i) * grid->dims[1] * options->size;
      const int64_t row = (plane + global_coordinate(options, grid, 1, j)) * grid->dims[2] * options->size;
      const int is_row_inside = is_inside(options, i) && is_inside(options, j);
      for (int k = 0; k < grid->full[2]; ++k, ++field) {
        const double value = (double)((row + grid->last_coordinates[k]) * 16 + iteration % 16);
        if (check)
          wrong += *field != value;
        else
          *field = is_row_inside && is_inside(options, k) ? value : -1.0;
      }
    }
  return wrong;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int usage(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fprintf(stderr,
            "usage: halo3d [--size N] [--radius R] [--iterations I] [--mode sendrecv|isend|persistent|pack|neighbor] "
            "[--device] [--no-verify], with N >= R >= 1 and I >= 1\n");
  return 0;
}

static int parse(int argc, char** argv, struct options* options) {
  static const struct option names[] = {{"size", required_argument, NULL, 's'},
                                        {"radius", required_argument, NULL, 'r'},
                                        {"iterations", required_argument, NULL, 'i'},
                                        {"mode", required_argument, NULL, 'm'},
                                        {"device", no_argument, NULL, 'd'},
                                        {"no-verify", no_argument, NULL, 'n'},
                                        {NULL, 0, NULL, 0}};
  *options = (struct options){.size = 64, .radius = 2, .iterations = 20, .verify = 1, .mode = "sendrecv"};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (c == 's')
      options->size = atoi(optarg);
    else if (c == 'r')
      options->radius = atoi(optarg);
    else if (c == 'i')
      options->iterations = atoi(optarg);
    else if (c == 'm')
      options->mode = optarg;
    else if (c == 'd')
      options->device = 1;
    else if (c == 'n')
      options->verify = 0;
    else
      return usage();
  }
  static const char* const modes[] = {"sendrecv", "isend", "persistent", "pack", "neighbor"};
  int is_known = 0;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) is_known |= !strcmp(options->mode, modes[i]);
  if (optind < argc || !is_known || options->radius < 1 || options->size < options->radius || options->iterations < 1)
    return usage();
  return 1;
}

/* Seconds of one exchange, and how many of them the program packed. */
struct timing {
  double exchange;
  double packing;
};

/* The slowest rank's times. */
static struct timing timed_exchange(const struct options* options, struct grid* grid, struct packed* packed,
                                    double* field) {
  struct timing timing = {0, 0};
  MPI_Barrier(grid->comm);
  const double start = MPI_Wtime();
  if (!strcmp(options->mode, "sendrecv"))
    exchange_sendrecv(grid, field);
  else if (!strcmp(options->mode, "isend"))
    exchange_isend(grid, field);
  else if (!strcmp(options->mode, "persistent"))
    exchange_persistent(grid);
  else if (!strcmp(options->mode, "neighbor"))
    exchange_neighbor(grid, field);
  else
    timing.packing = exchange_pack(grid, packed, field);
  timing.exchange = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &timing, 2, MPI_DOUBLE, MPI_MAX, grid->comm);
  return timing;
}

int main(int argc, char** argv) {
  struct options options;
  MPI_Init(&argc, &argv);
  if (!parse(argc, argv, &options)) {
    MPI_Finalize();
    return 2;
  }
  struct grid grid;
  struct packed packed;
  make_grid(&options, &grid);
  if (options.device) open_cuda(grid.rank);
  make_packed(&options, &grid, &packed);

  const size_t bytes = sizeof(double) * (size_t)grid.full[0] * (size_t)grid.full[1] * (size_t)grid.full[2];
  double* field = allocate(&options, bytes);
  double* host = options.device ? malloc(bytes) : field;
  double* times = malloc(sizeof(double) * (size_t)options.iterations);
  double least_packing = 0;
  if (!host || !times) fail("out of memory");
  make_requests(&grid, field);
  make_graph(&grid);

  int64_t wrong = 0;
  for (int iteration = -1; iteration < options.iterations; ++iteration) { /* the first is to warm up */
    if (options.verify || iteration < 0) {
      visit(&options, &grid, host, iteration + 1, 0);
      if (options.device) copy(&options, field, host, bytes);
    }
    const struct timing timing = timed_exchange(&options, &grid, &packed, field);
    if (iteration >= 0) {
      times[iteration] = timing.exchange;
      if (iteration == 0 || timing.packing < least_packing) least_packing = timing.packing;
    }
    if (options.verify) {
      if (options.device) copy(&options, host, field, bytes);
      wrong += visit(&options, &grid, host, iteration + 1, 1);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, grid.comm);

  if (grid.rank == 0) {
    qsort(times, (size_t)options.iterations, sizeof *times, compare_doubles);
    printf(
        "halo3d ranks=%d size=%d radius=%d iterations=%d mode=%s memory=%s bytes=%d median_us=%.2f min_us=%.2f "
        "packing_us=%.2f verified=%s wrong=%lld\n",
        grid.processes, options.size, options.radius, options.iterations, options.mode,
        options.device ? "device" : "host", packed.bytes, times[options.iterations / 2] * 1e6, times[0] * 1e6,
        least_packing * 1e6,
        !options.verify ? "no"
        : wrong         ? "wrong"
                        : "yes",
        (long long)wrong);
  }
  free(times);
  free_requests(&grid);
  if (options.device) free(host);
  release(&options, field);
  free_packed(&options, &packed);
  free_grid(&grid);
  MPI_Finalize();
  return wrong != 0;
}

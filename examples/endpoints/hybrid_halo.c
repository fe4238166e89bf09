/* A halo exchange in which each thread sends its own faces. The field is cut into one slab of rows for each process and
 * each slab into one block of columns for each thread. Threads of a process see each other's columns in memory; the
 * rows above and below belong to the same thread of another process, and go there as messages between endpoints. Nobody
 * waits for a whole process: each thread computes as soon as its own rows are there.
 *
 * The field is a torus, and each step replaces every point by the mean of its four neighbours. Every process computes
 * the whole field alone as well, and compares. */
#include <gapless/endpoints.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 12, columns_each = 10, steps = 20 }; /* rows of a process, columns of a thread */

static double start(int row, int column) { return (row * 37 + column * 11) % 101; }

static double mean(const double* point, int width, int column) {
  const int left = column == 0 ? width - 1 : column - 1, right = column == width - 1 ? 0 : column + 1;
  const double* line = point - column;
  return (point[-width] + point[width] + line[left] + line[right]) / 4;
}

/* `lines` lines from the global row `first` on, with one line of halo above and one below. */
static double* make_field(int first, int lines, int width) {
  double* field = calloc((size_t)(lines + 2) * (size_t)width, sizeof *field);
  for (int row = 0; row < lines; ++row)
    for (int column = 0; column < width; ++column) field[(row + 1) * width + column] = start(first + row, column);
  return field;
}

static void step(const double* from, double* to, int lines, int width, int first_column, int last_column) {
  for (int row = 1; row <= lines; ++row)
    for (int column = first_column; column < last_column; ++column)
      to[row * width + column] = mean(&from[row * width + column], width, column);
}

/* The thread's part of its process's first and last row, to the same thread of the neighbours. */
static void exchange(double* field, int width, int first_column, int threads, MPI_Comm me) {
  int rank, size;
  MPI_Comm_rank(me, &rank);
  MPI_Comm_size(me, &size);
  const int above = (rank + size - threads) % size, below = (rank + threads) % size;
  double* column = field + first_column;
  MPI_Request requests[4];
  MPI_Irecv(column, columns_each, MPI_DOUBLE, above, 0, me, &requests[0]);
  MPI_Irecv(column + (rows + 1) * width, columns_each, MPI_DOUBLE, below, 1, me, &requests[1]);
  MPI_Isend(column + rows * width, columns_each, MPI_DOUBLE, below, 0, me, &requests[2]);
  MPI_Isend(column + width, columns_each, MPI_DOUBLE, above, 1, me, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static double* compute_alone(int lines, int width) {
  double *from = make_field(0, lines, width), *to = make_field(0, lines, width);
  for (int i = 0; i < steps; ++i) {
    memcpy(from, from + lines * width, sizeof *from * (size_t)width);
    memcpy(from + (lines + 1) * width, from + width, sizeof *from * (size_t)width);
    step(from, to, lines, width, 0, width);
    double* const other = from;
    from = to;
    to = other;
  }
  free(to);
  return from;
}

int main(int argc, char** argv) {
  int level, process, processes;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const int threads = argc > 1 ? atoi(argv[1]) : 2, width = threads * columns_each;
  omp_set_dynamic(0);

  MPI_Comm* ranks = malloc(sizeof *ranks * (size_t)threads);
  if (MPIX_Comm_create_endpoints(MPI_COMM_WORLD, threads, MPI_INFO_NULL, ranks) != MPI_SUCCESS) return 2;
  double* fields[2] = {make_field(process * rows, rows, width), make_field(process * rows, rows, width)};
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num(), first = thread * columns_each;
    for (int i = 0; i < steps; ++i) {
      exchange(fields[i % 2], width, first, threads, ranks[thread]);
      step(fields[i % 2], fields[(i + 1) % 2], rows, width, first, first + columns_each);
#pragma omp barrier /* the neighbours in this process have read our columns, and we may read theirs */
    }
    MPI_Comm_free(&ranks[thread]);
  }

  double* const whole = compute_alone(rows * processes, width);
  const int wrong = memcmp(whole + (process * rows + 1) * width, fields[steps % 2] + width,
                           sizeof *whole * rows * (size_t)width) != 0;
  if (process == 0) printf("%d processes of %d threads, %s\n", processes, threads, wrong ? "wrong" : "right");
  free(whole);
  free(fields[0]);
  free(fields[1]);
  free(ranks);
  MPI_Finalize();
  return wrong;
}

/* Packs one face of a 3-D array and unpacks it into the opposite ghost layer of another: what a halo exchange does on
 * both sides of its communication, here without any.
 *
 *   cc pack_face.c -IPREFIX/include -LPREFIX/lib -lgapless-core -Wl,-rpath,PREFIX/lib */
#include <gapless/gapless.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64 };
static double source[N][N][N], destination[N][N][N];

static void check(gapless_status status, const char* call) {
  if (status == GAPLESS_SUCCESS) return;
  fprintf(stderr, "%s: %s (%s)\n", call, gapless_error_string(status), gapless_last_error());
  exit(EXIT_FAILURE);
}

/* The interior points of the layer k = `layer`: one double in every row of N, the worst face there is. */
static gapless_type* face(int64_t layer) {
  const int64_t sizes[] = {N, N, N}, subsizes[] = {N - 2, N - 2, 1}, starts[] = {1, 1, layer};
  gapless_type *element, *result;
  check(gapless_type_named(sizeof(double), sizeof(double), &element), "gapless_type_named");
  check(gapless_type_subarray(3, sizes, subsizes, starts, GAPLESS_ORDER_C, element, &result), "gapless_type_subarray");
  gapless_type_free(element);
  return result;
}

/* The number of points of `destination` that are not what the exchange should have left there. */
static int count_wrong(void) {
  int wrong = 0;
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      for (int k = 0; k < N; ++k) {
        const int is_ghost = k == 0 && i > 0 && i < N - 1 && j > 0 && j < N - 1;
        wrong += destination[i][j][k] != (is_ghost ? source[i][j][N - 2] : -1.0);
      }
    }
  }
  return wrong;
}

int main(void) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      for (int k = 0; k < N; ++k) {
        source[i][j][k] = (i * N + j) * N + k;
        destination[i][j][k] = -1.0;
      }
    }
  }

  gapless_type* outgoing = face(N - 2);
  gapless_type* ghosts = face(0);
  int64_t size;
  char line[256];
  check(gapless_type_size(outgoing, &size), "gapless_type_size");
  check(gapless_type_describe(outgoing, line, sizeof line, NULL), "gapless_type_describe");

  void* packed = malloc((size_t)size); /* what a program would send */
  if (packed == NULL) return EXIT_FAILURE;
  check(gapless_pack(outgoing, 1, source, 0, size, packed, NULL), "gapless_pack");
  check(gapless_unpack(ghosts, 1, destination, 0, size, packed, NULL), "gapless_unpack");

  const int wrong = count_wrong();
  printf("gapless %s: %s: packed %lld bytes, %d wrong points\n", gapless_version(), line, (long long)size, wrong);
  free(packed);
  gapless_type_free(outgoing);
  gapless_type_free(ghosts);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

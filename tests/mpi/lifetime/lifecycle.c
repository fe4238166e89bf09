/* Before MPI_Init and after MPI_Finalize: what may be called then works, and a whole run leaves stdout alone. */
#include <mpi.h>
#include <stdio.h>

static int failures;
static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

int main(void) {
  int flag = -1, version = 0, subversion = 0, length = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  expect(MPI_Initialized(&flag) == MPI_SUCCESS && !flag, "MPI_Initialized before MPI_Init");
  expect(MPI_Finalized(&flag) == MPI_SUCCESS && !flag, "MPI_Finalized before MPI_Init");
  expect(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version >= 3, "MPI_Get_version before MPI_Init");
  expect(MPI_Get_library_version(text, &length) == MPI_SUCCESS && length > 0,
         "MPI_Get_library_version before MPI_Init");

  MPI_Init(NULL, NULL);
  int source[6] = {1, 2, 3, 4, 5, 6}, packed[3] = {0, 0, 0}, position = 0;
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Pack(source, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
  expect(packed[0] == 1 && packed[1] == 3 && packed[2] == 5, "MPI_Pack");
  MPI_Finalize(); /* with a type that is never freed */

  expect(MPI_Finalized(&flag) == MPI_SUCCESS && flag, "MPI_Finalized after MPI_Finalize");
  expect(MPI_Initialized(&flag) == MPI_SUCCESS && flag, "MPI_Initialized after MPI_Finalize");
  expect(MPI_Get_version(&version, &subversion) == MPI_SUCCESS, "MPI_Get_version after MPI_Finalize");
  return failures != 0;
}

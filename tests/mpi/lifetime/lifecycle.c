/* Before MPI_Init and after MPI_Finalize: what may be called then works, and a whole run leaves stdout alone.
 * MPI_Finalize waits for no receive that the program has freed and that nobody sends to. */
#include <mpi.h>
#include <stdio.h>

static int failures;

enum { blocks = 1000, stride = 2, length = blocks * stride };
static int sent[length], received[length], never_received[length];

/* Receives that the program frees: one whose message comes, and two that nobody sends to. */
static void free_receives(void) {
  MPI_Datatype type;
  MPI_Request requests[3];
  MPI_Type_vector(blocks, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < length; ++i) sent[i] = i + 1;
  MPI_Irecv(received, 1, type, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Irecv(never_received, length, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[1]);
  MPI_Recv_init(never_received, 1, type, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[2]);
  MPI_Start(&requests[2]);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  MPI_Send(sent, 1, type, 0, 1, MPI_COMM_SELF);
  MPI_Type_free(&type);
}

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
  free_receives();
  MPI_Finalize(); /* with a type that is never freed */

  int wrong = 0;
  for (int i = 0; i < length; ++i) wrong += received[i] != (i % stride == 0 ? i + 1 : 0) || never_received[i] != 0;
  expect(wrong == 0, "what freed receives get until MPI_Finalize");
  expect(MPI_Finalized(&flag) == MPI_SUCCESS && flag, "MPI_Finalized after MPI_Finalize");
  expect(MPI_Initialized(&flag) == MPI_SUCCESS && flag, "MPI_Initialized after MPI_Finalize");
  expect(MPI_Get_version(&version, &subversion) == MPI_SUCCESS, "MPI_Get_version after MPI_Finalize");
  return failures != 0;
}

// MPI is initialised and finalised past gapless, as some Fortran bindings and tools do, so gapless sets itself up when
// it is first needed, and ends with an attribute: the program must not notice.
#include <mpi.h>

#include <cstdio>

#include "support/environment.hpp"

namespace {

int copied = 0, deleted = 0;

int copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  ++copied;
  *flag = 1;
  return MPI_SUCCESS;
}

int forget(MPI_Comm, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}

constexpr int blocks = 1000;
int sent[2 * blocks], received[2 * blocks];

/// A message that has come, of which the program has freed the request.
void free_receive() {
  MPI_Datatype type;
  MPI_Request request;
  MPI_Type_vector(blocks, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 2 * blocks; ++i) sent[i] = i + 1;
  MPI_Irecv(received, 1, type, 0, 1, MPI_COMM_SELF, &request);
  MPI_Request_free(&request);
  MPI_Send(sent, 1, type, 0, 1, MPI_COMM_SELF);
  MPI_Type_free(&type);
}

bool has_come() {
  for (int i = 0; i < 2 * blocks; ++i) {
    if (received[i] != (i % 2 == 0 ? i + 1 : 0)) return false;
  }
  return true;
}

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  GAPLESS_TEST_NATIVE(Init)(nullptr, nullptr);
  int keyval;
  MPI_Comm_create_keyval(copy, forget, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);

  const int source[6] = {1, 2, 3, 4, 5, 6};
  int packed[3] = {}, position = 0;
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Pack(source, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
  expect(packed[0] == 1 && packed[1] == 3 && packed[2] == 5, "MPI_Pack");
  MPI_Type_free(&type);
  expect(copied == 0, "an attribute of MPI_COMM_SELF was copied");

  free_receive();
  GAPLESS_TEST_NATIVE(Finalize)();
  expect(deleted == 1, "the attribute of MPI_COMM_SELF ends once");
  expect(has_come(), "a message whose request was freed");
  return failures != 0;
}

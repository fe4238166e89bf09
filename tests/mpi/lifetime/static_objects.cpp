// What C++ programs do that keep MPI in an object: the last messages are sent, and MPI is finalized, when static
// objects are destroyed, after main and after all that belongs to the main thread.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Exits as the process does, whatever main returned.
void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

/// A message to myself and a packed buffer, each of every second int.
void move_every_second(int count) {
  std::vector<int> source(static_cast<std::size_t>(2 * count)), received(source.size(), -1), packed(source.size() / 2);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<int>(i);
  MPI_Datatype type;
  MPI_Type_vector(count, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  int rank, position = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Sendrecv(source.data(), 1, type, rank, 0, received.data(), 1, type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Pack(source.data(), 1, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)), &position,
           MPI_COMM_WORLD);
  MPI_Type_free(&type);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    expect(packed[i] == source[2 * i], "MPI_Pack");
    expect(received[2 * i] == source[2 * i] && received[2 * i + 1] == -1, "MPI_Sendrecv");
  }
}

struct Mpi {
  ~Mpi() {
    for (int count = 10; count <= 100000; count *= 10) move_every_second(count);
    MPI_Finalize();
  }
} mpi;

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  for (int count = 10; count <= 100000; count *= 10) move_every_second(count);
}

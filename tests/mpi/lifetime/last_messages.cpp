// Messages inside MPI_Finalize: a program's callback on MPI_COMM_SELF receives what another process has sent before its
// own MPI_Finalize (MPI 5.0, 11.2.4): long and strided, so that the message waits in the sender's memory.
#include <mpi.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lifetime/expect_strided.hpp"

namespace {

constexpr int blocks = 400'000, stride = 4, tag = 7;

MPI_Datatype type;
std::vector<int> memory(static_cast<std::size_t>(blocks) * stride);

void exchange() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Send(memory.data(), 1, type, 1, tag, MPI_COMM_WORLD);
    return;
  }
  std::vector<int> incoming(memory.size(), -1);
  MPI_Recv(incoming.data(), 1, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  gapless::test::expect_strided(incoming, 1, stride);
}

int receive_at_the_end(MPI_Comm, int, void*, void*) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 1) return MPI_SUCCESS;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  exchange();
  return MPI_SUCCESS;
}

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  MPI_Type_vector(blocks, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  int keyval = MPI_KEYVAL_INVALID, rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receive_at_the_end, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  for (int i = 0; i < 6; ++i) exchange();  // by which the processes come to know each other
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) exchange();
  MPI_Finalize();
}

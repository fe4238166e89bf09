// A process whose last message is still to be fetched when it comes to MPI_Finalize: long and strided, so that it waits
// in the sender's memory, and complete for the sender, who may be far ahead of the receiver.
#include <mpi.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lifetime/expect_strided.hpp"

namespace {

constexpr int blocks = 400'000, length = 2, stride = 5, tag = 6;

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype type;
  MPI_Type_vector(blocks, length, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  std::vector<int> memory(static_cast<std::size_t>(blocks) * stride);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = rank == 0 ? static_cast<int>(i) : -1;
  // The first ones are those by which the processes come to know each other.
  constexpr int messages = 10;
  for (int i = 0; i < messages; ++i) {
    if (i == messages - 1) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Send(memory.data(), 1, type, 1, tag, MPI_COMM_WORLD);
      continue;
    }
    if (i == messages - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Recv(memory.data(), 1, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    gapless::test::expect_strided(memory, length, stride);
  }
  MPI_Type_free(&type);
  MPI_Finalize();
}

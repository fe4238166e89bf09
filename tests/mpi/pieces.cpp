// Long messages whose basic elements lie at no multiples of their size in the packed stream, from blocking sends to
// nonblocking receives of the same type. MPICH sends long messages in pieces, and cannot receive an element that lies
// in two of them: this works only as long as nobody packs such a message before the library cuts it.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

struct Particle {
  double place[3];
  int number;
  short charge;
  char kind;
  friend bool operator==(const Particle&, const Particle&) = default;
};

MPI_Datatype particle_type() {
  const int lengths[4] = {3, 1, 1, 1};
  const MPI_Aint places[4] = {offsetof(Particle, place), offsetof(Particle, number), offsetof(Particle, charge),
                              offsetof(Particle, kind)};
  const MPI_Datatype fields[4] = {MPI_DOUBLE, MPI_INT, MPI_SHORT, MPI_CHAR};
  MPI_Datatype packed_closely, particle;
  MPI_Type_create_struct(4, lengths, places, fields, &packed_closely);
  MPI_Type_create_resized(packed_closely, 0, sizeof(Particle), &particle);
  MPI_Type_free(&packed_closely);
  return particle;
}

std::vector<Particle> particles(std::size_t count, int first) {
  std::vector<Particle> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int k = first + static_cast<int>(i);
    all[i] = {{k + 0.1, k + 0.2, k + 0.3}, k, static_cast<short>(k % 1000), static_cast<char>(k % 100)};
  }
  return all;
}

void expect_particles_arrive(int from, int to) {
  const Owned type(particle_type());
  for (const std::size_t count : {1, 200, 300, 700, 3000, 50000}) {
    const std::vector<Particle> sent = particles(count, rank());
    std::vector<Particle> received(count);
    MPI_Request request;
    MPI_Irecv(received.data(), static_cast<int>(count), type, from, 0, MPI_COMM_WORLD, &request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(sent.data(), static_cast<int>(count), type, to, 0, MPI_COMM_WORLD));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_EQ(particles(count, from), received) << count << " particles";
  }
}

TEST(Pieces, OfParticlesToMyself) { expect_particles_arrive(rank(), rank()); }

TEST(Pieces, OfParticlesToMyNeighbour) {
  expect_particles_arrive((rank() + size() - 1) % size(), (rank() + 1) % size());
}

/// Pairs of 12 bytes, of which every second one's value would lie at no multiple of 8.
TEST(Pieces, OfPairs) {
  struct Pair {
    double value;
    int index;
  };
  constexpr std::size_t count = 20000;
  std::vector<Pair> sent(count), received(count);
  for (std::size_t i = 0; i < count; ++i) sent[i] = {static_cast<double>(i) / 3, static_cast<int>(i)};
  MPI_Request request;
  MPI_Irecv(received.data(), count, MPI_DOUBLE_INT, rank(), 0, MPI_COMM_WORLD, &request);
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(sent.data(), count, MPI_DOUBLE_INT, rank(), 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(sent[i].value, received[i].value) << i;
    EXPECT_EQ(sent[i].index, received[i].index) << i;
  }
}

}  // namespace
}  // namespace gapless::test

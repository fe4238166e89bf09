// Long messages whose basic elements lie at no multiples of their size in the packed stream, from blocking sends to
// nonblocking receives of the same type. MPICH sends long messages in pieces, and cannot receive an element that lies
// in two of them; Open MPI loses elements of more than 16 bytes that do: this works only as long as nobody packs such a
// message before the library cuts it.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/packs_something.hpp"

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
  const PacksSomething packs;
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

template <class Value>
struct Pair {
  Value value;
  int index;
};

/// From blocks that begin at `place` into others; elements of 2 to 20 bytes in the packed stream.
template <class Value>
void expect_pairs_arrive(MPI_Datatype type, MPI_Aint place) {
  constexpr int count = 20000;
  using Pairs = std::vector<Pair<Value>>;
  const auto at = [place](Pairs& pairs) { return reinterpret_cast<std::byte*>(pairs.data()) + place; };
  Pairs sent(count + 1), received(count + 1);
  for (int i = 0; i < count; ++i) {
    const Pair<Value> pair{static_cast<Value>(static_cast<Value>(i) / 3), i};
    std::memcpy(at(sent) + static_cast<std::size_t>(i) * sizeof pair, &pair, sizeof pair);
  }
  MPI_Datatype pairs;
  MPI_Type_create_hindexed(1, &count, &place, type, &pairs);
  const Owned owned(pairs);
  MPI_Request request;
  MPI_Irecv(received.data(), 1, owned, rank(), 0, MPI_COMM_WORLD, &request);
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(sent.data(), 1, owned, rank(), 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    Pair<Value> pair;
    std::memcpy(&pair, at(received) + static_cast<std::size_t>(i) * sizeof pair, sizeof pair);
    wrong += pair.value != static_cast<Value>(static_cast<Value>(i) / 3) || pair.index != i;
  }
  EXPECT_EQ(0, wrong) << "pairs of " << sizeof(Value) << " and 4 bytes, from " << place << " on";
}

/// Every second pair of 12 bytes has a value at no multiple of 8 in the packed stream.
TEST(Pieces, OfPairs) {
  const PacksSomething packs;
  for (const MPI_Aint place : {0, 2, 4, 8}) {
    expect_pairs_arrive<short>(MPI_SHORT_INT, place);
    expect_pairs_arrive<float>(MPI_FLOAT_INT, place);
    expect_pairs_arrive<double>(MPI_DOUBLE_INT, place);
    expect_pairs_arrive<long>(MPI_LONG_INT, place);
    expect_pairs_arrive<long double>(MPI_LONG_DOUBLE_INT, place);
  }
}

/// A wide number of the program's: `parts` floating-point numbers of `bytes` bytes that count, `stride` apart.
struct Wide {
  const char* name;
  MPI_Datatype type;
  std::size_t parts, bytes, stride;
};
const std::vector<Wide>& wide_numbers() {
  static const std::vector<Wide> all{{"double", MPI_DOUBLE, 1, 8, 8},
                                     {"long double", MPI_LONG_DOUBLE, 1, 10, 16},
                                     {"float complex", MPI_C_FLOAT_COMPLEX, 2, 4, 4},
                                     {"double complex", MPI_C_DOUBLE_COMPLEX, 2, 8, 8},
                                     {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX, 2, 10, 16},
                                     {"C++ long double complex", MPI_CXX_LONG_DOUBLE_COMPLEX, 2, 10, 16}};
  return all;
}

std::vector<std::byte> wide_values(const Wide& wide, std::size_t places) {
  std::vector<std::byte> memory(places * wide.parts * wide.stride);
  for (std::size_t i = 0; i < places * wide.parts; ++i) {
    std::byte* place = memory.data() + i * wide.stride;
    const auto value = static_cast<long double>(i) + 0.375L;
    const auto as_double = static_cast<double>(value);
    const auto as_float = static_cast<float>(value);
    const void* bytes = wide.bytes == 4   ? static_cast<const void*>(&as_float)
                        : wide.bytes == 8 ? static_cast<const void*>(&as_double)
                                          : &value;
    std::memcpy(place, bytes, wide.bytes);
  }
  return memory;
}

/// One number behind `doubles` doubles, and then every other one of `count`.
MPI_Datatype wide_type(const Wide& wide, int doubles, int count) {
  MPI_Datatype vector, type;
  MPI_Type_vector(count, 1, 2, wide.type, &vector);
  const std::array<int, 2> lengths{doubles, 1};
  const std::array<MPI_Aint, 2> places{0, 64};
  const std::array<MPI_Datatype, 2> fields{MPI_DOUBLE, vector};
  MPI_Type_create_struct(2, lengths.data(), places.data(), fields.data(), &type);
  MPI_Type_free(&vector);
  return type;
}

void expect_wide_numbers_arrive(int from, int to, MPI_Comm communicator) {
  const PacksSomething packs;
  for (const Wide& wide : wide_numbers()) {
    for (const int doubles : {0, 1}) {
      for (const int count : {20, 300, 520, 1100, 5000, 40000}) {
        const Owned type(wide_type(wide, doubles, count));
        const auto values = wide_values(wide, 2 * static_cast<std::size_t>(count) + 8);
        std::vector<std::byte> source(64 + values.size()), destination(64 + values.size());
        std::memcpy(source.data() + 64, values.data(), values.size());
        MPI_Request request;
        MPI_Irecv(destination.data(), 1, type, from, 0, communicator, &request);
        EXPECT_EQ(MPI_SUCCESS, MPI_Send(source.data(), 1, type, to, 0, communicator));
        EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
        const std::size_t number = wide.parts * wide.stride;
        int wrong = 0;
        for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(count); i += 2) {
          for (std::size_t part = 0; part < wide.parts; ++part) {
            const std::size_t at = 64 + i * number + part * wide.stride;
            wrong += std::memcmp(source.data() + at, destination.data() + at, wide.bytes) != 0;
          }
        }
        EXPECT_EQ(0, wrong) << count << " of " << wide.name << " behind " << doubles << " doubles";
      }
    }
  }
}

TEST(Pieces, OfWideNumbersToMyself) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  expect_wide_numbers_arrive(rank(), rank(), MPI_COMM_WORLD);
}

TEST(Pieces, OfWideNumbersToMyNeighbour) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  expect_wide_numbers_arrive((rank() + size() - 1) % size(), (rank() + 1) % size(), MPI_COMM_WORLD);
}

TEST(Pieces, OfWideNumbersBetweenGroups) {
  if (size() != 2) GTEST_SKIP() << "an intercommunicator of two groups of one";
  MPI_Comm across;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank(), 0, &across);
  {
    const ReturnErrors returned(across);
    expect_wide_numbers_arrive(0, 0, across);
  }
  MPI_Comm_free(&across);
}

}  // namespace
}  // namespace gapless::test

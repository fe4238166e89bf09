// Cases that other libraries are known to get wrong or to crash on, one test each. They were found in TEMPI, MPICH's
// yaksa, Open MPI and UCX; here they must be right.

#include <gtest/gtest.h>
#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/statistics.hpp"
#include "support/types/library_defects.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {
namespace {

template <typename Value>
std::vector<Value> pack_as(const void* memory, int count, MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  std::vector<Value> packed(static_cast<std::size_t>(size) * static_cast<std::size_t>(count) / sizeof(Value) + 1);
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(memory, count, type, packed.data(), static_cast<int>(packed.size() * sizeof(Value)),
                                  &position, MPI_COMM_WORLD));
  EXPECT_EQ(size * count, position);
  packed.pop_back();
  return packed;
}

MPI_Datatype every_other_double(int count) {
  MPI_Datatype type;
  MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &type);
  return type;
}

/// TEMPI loses the start of a subarray dimension of subsize 1: 39 of the 52 halo boxes of radius 1.
TEST(Tempi, EveryHaloBoxOfRadiusOneStartsWhereItShould) {
  constexpr int n = 6;
  const std::vector<int> cube = counting(n * n * n);
  for (int side = 0; side < 2; ++side) {
    for (int direction = 0; direction < 27; ++direction) {
      if (direction == 13) continue;
      const int sizes[3] = {n, n, n};
      int subsizes[3], starts[3];
      for (int d = 0, rest = direction; d < 3; ++d, rest /= 3) {
        const int sign = rest % 3 - 1;
        subsizes[d] = sign == 0 ? n - 2 : 1;
        starts[d] = sign == 0 ? 1 : sign < 0 ? (side == 0 ? 1 : 0) : (side == 0 ? n - 2 : n - 1);
      }
      std::vector<int> wanted;
      for (int x = starts[0]; x < starts[0] + subsizes[0]; ++x)
        for (int y = starts[1]; y < starts[1] + subsizes[1]; ++y)
          for (int z = starts[2]; z < starts[2] + subsizes[2]; ++z) wanted.push_back((x * n + y) * n + z);
      MPI_Datatype box;
      MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &box);
      EXPECT_EQ(wanted, pack_as<int>(cube.data(), 1, Owned(box))) << "side " << side << ", direction " << direction;
    }
  }
}

/// TEMPI sorts the modes of a type by stride, and so sends a transpose untransposed.
TEST(Tempi, TransposesKeepTheirOrder) {
  constexpr int rows = 5, columns = 7;
  const Owned transpose(transposed(rows, columns));
  std::vector<int> wanted;
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < rows; ++row) wanted.push_back(row * columns + column);
  const std::vector<int> matrix = counting(rows * columns);
  EXPECT_EQ(wanted, pack_as<int>(matrix.data(), 1, transpose));
  std::vector<int> received(rows * columns, -1);
  MPI_Sendrecv(matrix.data(), 1, transpose, rank(), 0, received.data(), rows * columns, MPI_INT, rank(), 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(wanted, received);
}

/// TEMPI ignores the extent of one-dimensional types when there are several of them.
TEST(Tempi, CountsAboveOneStepByTheExtent) {
  MPI_Datatype block, spaced;
  MPI_Type_contiguous(2, MPI_INT, &block);
  MPI_Type_create_resized(block, 0, 5 * sizeof(int), &spaced);
  MPI_Type_free(&block);
  EXPECT_EQ((std::vector<int>{0, 1, 5, 6, 10, 11}), pack_as<int>(counting(15).data(), 3, Owned(spaced)));
}

/// TEMPI chooses its word by the block length alone: vector(n, 2, 3, FLOAT) faults, as do odd bases and positions.
TEST(Tempi, WordsAreAsNarrowAsStrideBaseAndPositionAsk) {
  MPI_Datatype vector;
  MPI_Type_vector(100, 2, 3, MPI_FLOAT, &vector);
  const Owned type(vector);
  std::vector<unsigned char> memory(1300), packed(900), back(1300, 0);
  for (std::size_t k = 0; k < memory.size(); ++k) memory[k] = static_cast<unsigned char>(k * 31 + 7);
  for (int shift = 0; shift < 8; ++shift) {
    int position = shift;
    MPI_Pack(&memory[static_cast<std::size_t>(shift)], 1, type, packed.data(), 900, &position, MPI_COMM_WORLD);
    EXPECT_EQ(800 + shift, position);
    position = shift;
    MPI_Unpack(packed.data(), 900, &position, &back[static_cast<std::size_t>(shift)], 1, type, MPI_COMM_WORLD);
    for (std::size_t k = 0; k < 100; ++k) {
      const std::size_t at = static_cast<std::size_t>(shift) + 12 * k;
      EXPECT_EQ(0, std::memcmp(&memory[at], &packed[static_cast<std::size_t>(shift) + 8 * k], 8));
      EXPECT_EQ(0, std::memcmp(&memory[at], &back[at], 8));
    }
  }
}

TEST(Tempi, NoBlocksAndEmptyBlocksAreTypesToo) {
  std::vector<int> memory = counting(10);
  MPI_Datatype type;
  MPI_Type_vector(0, 3, 4, MPI_INT, &type);
  EXPECT_EQ(std::vector<int>{}, pack_as<int>(memory.data(), 4, Owned(type)));
  MPI_Type_vector(3, 0, 4, MPI_INT, &type);
  EXPECT_EQ(std::vector<int>{}, pack_as<int>(memory.data(), 4, Owned(type)));
  const int lengths[4] = {0, 2, 0, 1};
  const int places[4] = {9, 1, 5, 7};
  MPI_Type_indexed(4, lengths, places, MPI_INT, &type);
  EXPECT_EQ((std::vector<int>{1, 2, 7}), pack_as<int>(memory.data(), 1, Owned(type)));
}

/// TEMPI turns a negative stride into four billion.
TEST(Tempi, NegativeStridesGoBackwards) {
  const std::vector<int> values = counting(20);
  MPI_Datatype type;
  MPI_Type_vector(5, 2, -4, MPI_INT, &type);
  EXPECT_EQ((std::vector<int>{16, 17, 12, 13, 8, 9, 4, 5, 0, 1}), pack_as<int>(&values[16], 1, Owned(type)));
}

/// TEMPI launches an invalid grid for counts above 65535.
TEST(Tempi, CountsAbove65535) {
  constexpr int count = 70000;
  const Owned type(strided(1, 1, 2));
  const std::vector<int> values = counting(2 * count);
  EXPECT_EQ(picked(values, count, 1, 2), pack_as<int>(values.data(), count, type));
}

/// TEMPI and, on GPUs, MPICH: pair types have a gap.
TEST(Tempi, PairTypesHaveTheirGaps) {
  struct ShortInt {
    short value;
    int index;
  };
  const std::array<ShortInt, 3> pairs = {{{1, 100}, {2, 200}, {3, 300}}};
  std::array<ShortInt, 3> back = {{{0, 0}, {0, 0}, {0, 0}}};
  std::array<unsigned char, 18> packed;
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(pairs.data(), 3, MPI_SHORT_INT, packed.data(), 18, &position, MPI_COMM_WORLD));
  EXPECT_EQ(18, position);
  position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Unpack(packed.data(), 18, &position, back.data(), 3, MPI_SHORT_INT, MPI_COMM_WORLD));
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(pairs[k].value, back[k].value);
    EXPECT_EQ(pairs[k].index, back[k].index);
  }
}

/// TEMPI waits for a receive without starting its own pending sends: both sides wait for ever.
TEST(Tempi, WaitingForAReceiveLetsSendsGo) {
  const Owned type(strided(20000, 2, 3));
  const int partner = (rank() ^ 1) < size() ? rank() ^ 1 : rank();
  std::vector<int> source = counting(60000, partner);
  const std::vector<int> mine = counting(60000, rank());
  std::vector<int> destination(60000, -1);
  MPI_Request requests[2];
  MPI_Isend(mine.data(), 1, type, partner, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(destination.data(), 1, type, partner, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(60000, -1), picked(source, 20000, 2, 3), 2, 3), destination);
}

/// yaksa is wrong or slow with strided long double; MPICH copies its 10 significant bytes, so values are compared.
TEST(Yaksa, StridedLongDoublesAndTheirPairs) {
  std::vector<long double> values;
  for (int k = 0; k < 30; ++k) values.push_back(1.0L / (k + 3));
  MPI_Datatype vector;
  MPI_Type_vector(10, 1, 3, MPI_LONG_DOUBLE, &vector);
  const std::vector<long double> packed = pack_as<long double>(values.data(), 1, Owned(vector));
  for (std::size_t k = 0; k < 10; ++k) EXPECT_EQ(values[3 * k], packed[k]);

  struct Pair {
    long double value;
    int index;
  };
  const std::array<Pair, 2> pairs = {{{0.1L, 1}, {0.2L, 2}}};
  std::array<Pair, 2> back = {{{0, 0}, {0, 0}}};
  std::array<unsigned char, 40> bytes;
  int position = 0;
  MPI_Pack(pairs.data(), 2, MPI_LONG_DOUBLE_INT, bytes.data(), 40, &position, MPI_COMM_WORLD);
  EXPECT_EQ(40, position);
  position = 0;
  MPI_Unpack(bytes.data(), 40, &position, back.data(), 2, MPI_LONG_DOUBLE_INT, MPI_COMM_WORLD);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(pairs[k].value, back[k].value);
    EXPECT_EQ(pairs[k].index, back[k].index);
  }
}

/// MPICH goes from strided to strided through a 16 KiB buffer: more than that, in elements that do not divide it.
TEST(Yaksa, StridedToStridedBeyondSixteenKiB) {
  const int partner = (rank() ^ 1) < size() ? rank() ^ 1 : rank();
  const Owned sent(strided(7001, 3, 5));
  const Owned received(strided(21003, 1, 2));
  const std::vector<int> source = counting(7001 * 5, 11);
  std::vector<int> destination(21003 * 2, -1);
  MPI_Sendrecv(source.data(), 1, sent, partner, 0, destination.data(), 1, received, partner, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(21003 * 2, -1), picked(source, 7001, 3, 5), 1, 2), destination);
}

/// Open MPI 5.0.11 corrupts elements that straddle two fragments of a noncontiguous message between types of different
/// shape; its own calls are kept out of it here, since nothing can be done about them.
TEST(OpenMpi, ElementsThatStraddleFragmentsArriveWhole) {
  if (!under_gapless()) GTEST_SKIP() << "the library's own calls are known to fail";
  for (int k = 0; k < 50; ++k) {
    Random random(seed() + 1000 + static_cast<std::uint64_t>(k));
    const Type type = random_type(random, 3, 4000);
    const int count = 1 + k % 5;
    if (!library_packs_by_type_map(type, count)) continue;
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    const Type other = scattered_counterpart(random, type, count);
    const std::vector<MPI_Aint> other_offsets = packed_offsets(other.map(), 1);
    Memory source(offsets, random), destination(other_offsets, random);
    const std::vector<std::byte> wanted = destination.after_unpacking(source.packed(offsets), other_offsets);
    const int partner = (rank() ^ 1) < size() ? rank() ^ 1 : rank();
    MPI_Sendrecv(source.base(), count, type.handle(), partner, 0, destination.base(), 1, other.handle(), partner, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(same_bytes(wanted, destination.bytes())) << "case " << k << ": " << type.text();
  }
}

/// Open MPI 5.0.11 loses parts of what it receives in pieces into elements that lie at no multiple of their size: of
/// one such datatype in a hundred, also where the message comes in pieces by itself.
TEST(OpenMpi, ElementsAtOddAddressesArriveWhole) {
  if (!under_gapless()) GTEST_SKIP() << "the library's own calls are known to fail";
  const int partner = (rank() ^ 1) < size() ? rank() ^ 1 : rank();
  for (int k = 0; k < 600; ++k) {
    Random random(seed() + 5000 + static_cast<std::uint64_t>(k));
    const int fields = random.between(1, 5);
    std::vector<int> lengths(static_cast<std::size_t>(fields), 1);
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types(static_cast<std::size_t>(fields), MPI_DOUBLE);
    MPI_Aint next = random.between(0, 64);
    for (int i = 0; i < fields; ++i) {
      places.push_back(next);
      next += 8 + (random.one_in(2) ? 0 : random.between(0, 24));
    }
    std::swap(places.front(), places[static_cast<std::size_t>(random.between(0, fields - 1))]);
    MPI_Datatype structure, resized;
    MPI_Type_create_struct(fields, lengths.data(), places.data(), types.data(), &structure);
    const MPI_Aint extent = next + random.between(0, 19);
    MPI_Type_create_resized(structure, 0, extent, &resized);
    MPI_Type_free(&structure);
    const Owned type(resized);
    const int count = (4100 + random.between(0, 3000)) / (8 * fields), doubles = count * fields;
    const Owned spread(every_other_double(doubles));
    std::vector<double> source(static_cast<std::size_t>(2 * doubles));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i) + k;
    std::vector<unsigned char> incoming(static_cast<std::size_t>(extent * count) + 4096, 0xee), wanted = incoming;
    for (int i = 0; i < doubles; ++i) {
      const auto place = static_cast<std::size_t>(i / fields * extent + places[static_cast<std::size_t>(i % fields)]);
      std::memcpy(wanted.data() + place, &source[static_cast<std::size_t>(2 * i)], sizeof(double));
    }
    MPI_Request request;
    MPI_Irecv(incoming.data(), count, type, partner, 0, MPI_COMM_WORLD, &request);
    MPI_Send(source.data(), 1, spread, partner, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_TRUE(wanted == incoming) << "case " << k;
  }
}

/// Open MPI 5.0.11 moves what a process has for itself in pieces of 64 KiB, and loses the last one where that has only
/// the end of an element with a gap behind it.
TEST(OpenMpi, EndsOfOwnPartsArrive) {
  if (!under_gapless()) GTEST_SKIP() << "the library's own calls are known to fail";
  const auto ranks = static_cast<std::size_t>(size());
  for (const auto& [length, count] : {std::pair{3, 10'923}, {5000, 7}, {16'385, 2}, {20'000, 3}, {16'384, 3}}) {
    MPI_Datatype element;
    MPI_Type_contiguous(length, MPI_INT, &element);
    MPI_Datatype with_gap;
    MPI_Type_create_resized(element, 0, static_cast<MPI_Aint>(sizeof(int)) * (length + 1), &with_gap);
    MPI_Type_free(&element);
    const Owned type(with_gap);
    const auto spread = static_cast<std::size_t>(count) * static_cast<std::size_t>(length + 1);
    const auto packed = static_cast<std::size_t>(count) * static_cast<std::size_t>(length);
    const int ints = length * count;
    const std::vector<int> source = counting(static_cast<int>(spread * ranks), 1000 * rank());
    std::vector<int> wanted;
    const auto own = static_cast<std::size_t>(rank());
    const auto expect_own_part = [&](const char* name, std::size_t part, const std::vector<int>& found) {
      wanted.clear();
      for (std::size_t i = 0; i < spread; ++i) {
        if (i % static_cast<std::size_t>(length + 1) != static_cast<std::size_t>(length))
          wanted.push_back(source[part * spread + i]);
      }
      const auto first = found.begin() + static_cast<std::ptrdiff_t>(own * packed);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), first)) << name << ", " << count << " of " << length;
    };
    std::vector<int> found(packed * ranks, -1);
    MPI_Alltoall(source.data(), count, type, found.data(), ints, MPI_INT, MPI_COMM_WORLD);
    expect_own_part("Alltoall", own, found);
    found.assign(found.size(), -1);
    MPI_Allgather(source.data(), count, type, found.data(), ints, MPI_INT, MPI_COMM_WORLD);
    expect_own_part("Allgather", 0, found);
    for (int root = 0; root < size(); ++root) {
      found.assign(found.size(), -1);
      MPI_Gather(source.data(), count, type, found.data(), ints, MPI_INT, root, MPI_COMM_WORLD);
      if (rank() == root) expect_own_part("Gather", 0, found);
      found.assign(found.size(), -1);
      MPI_Scatter(source.data(), count, type, found.data() + own * packed, ints, MPI_INT, root, MPI_COMM_WORLD);
      if (rank() == root) expect_own_part("Scatter", own, found);
    }
  }
}

/// Packs so often that gapless knows the datatype.
void use_until_analysed(const void* memory, int count, MPI_Datatype type) {
  int bytes = 0;
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &bytes);
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
  const auto before = analyses();
  for (int uses = 0; uses < 1000 && under_gapless() && analyses() == before; ++uses) {
    int position = 0;
    MPI_Pack(memory, count, type, packed.data(), bytes, &position, MPI_COMM_WORLD);
  }
}

/// Open MPI sends what is to be replaced as contiguous bytes, and receives all of those, also from a rank whose call
/// gapless serves, and which has its elements in another order in memory.
TEST(OpenMpi, ElementsAreReplacedWholeInPieces) {
  const int partner = rank() ^ 1;
  if (size() % 2 != 0) GTEST_SKIP() << "takes pairs of ranks";
  for (int k = 0; k < 200; ++k) {
    Random random(seed() + 9000 + static_cast<std::uint64_t>(k));
    const Type type = random_type(random, 3, 4000);
    const int count = 1 + 4100 / std::max(1, static_cast<int>(packed_offsets(type.map(), 1).size()));
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    if (!library_packs_by_type_map(type, count) || offsets.size() < 4100 || overlaps(offsets)) continue;
    const Type other = scattered_counterpart(random, type, count);
    const std::vector<MPI_Aint> other_offsets = packed_offsets(other.map(), 1);
    Memory memory(offsets, random), of_other(other_offsets, random);
    const bool is_other = rank() % 2 == 1;
    const std::vector<std::byte> wanted = is_other ? of_other.after_unpacking(memory.packed(offsets), other_offsets)
                                                   : memory.after_unpacking(of_other.packed(other_offsets), offsets);
    if (!is_other) use_until_analysed(memory.base(), count, type.handle());
    Memory& own = is_other ? of_other : memory;
    MPI_Sendrecv_replace(own.base(), is_other ? 1 : count, is_other ? other.handle() : type.handle(), partner, 0,
                         partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(same_bytes(wanted, own.bytes())) << "case " << k << ": " << type.text();
  }
}

/// Overlapping blocks, which Open MPI copies one by one through allocated memory, may be sent.
TEST(OpenMpi, OverlappingSourcesMaySend) {
  MPI_Datatype type;
  MPI_Type_vector(4, 3, 1, MPI_INT, &type);
  EXPECT_EQ((std::vector<int>{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5}), pack_as<int>(counting(6).data(), 1, Owned(type)));
}

/// Numbers behind one that is not sent. To MPICH 5.0.2, which receives long contiguous bytes into a list of blocks,
/// they are one block in a list of three: the rest of the list is what its memory held before.
struct Behind {
  double skipped;
  float first;
  std::array<float, 1> second;
  double third;
};
/// Long enough for the library to receive it, if its elements did not lie in two of the pieces that packed bytes of a
/// GPU are sent in.
template <int numbers>
struct Apart {
  int skipped;
  char first;
  std::array<int, numbers> second;
  short third;
};

template <class Struct>
MPI_Datatype all_but_the_first(MPI_Datatype first, MPI_Datatype second, MPI_Datatype third) {
  const int lengths[3] = {1, static_cast<int>(Struct{}.second.size()), 1};
  const MPI_Aint places[3] = {offsetof(Struct, first), offsetof(Struct, second), offsetof(Struct, third)};
  const MPI_Datatype fields[3] = {first, second, third};
  MPI_Datatype fields_alone, type;
  MPI_Type_create_struct(3, lengths, places, fields, &fields_alone);
  MPI_Type_create_resized(fields_alone, 0, sizeof(Struct), &type);
  MPI_Type_free(&fields_alone);
  return type;
}
MPI_Datatype type_of(const Behind*) { return all_but_the_first<Behind>(MPI_FLOAT, MPI_FLOAT, MPI_DOUBLE); }
template <int numbers>
MPI_Datatype type_of(const Apart<numbers>*) {
  return all_but_the_first<Apart<numbers>>(MPI_CHAR, MPI_INT, MPI_SHORT);
}

template <class Struct>
std::vector<Struct> numbered(int count) {
  std::vector<Struct> all(static_cast<std::size_t>(count));
  int next = count;
  const auto number = [&next](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(++next % 101);
  };
  for (Struct& one : all) {
    number(one.first);
    std::ranges::for_each(one.second, number);
    number(one.third);
  }
  return all;
}

/// Fills what is allocated, with one byte of another value each time.
class FilledMemory {
 public:
  FilledMemory() { mallopt(M_PERTURB, 0xa5); }
  ~FilledMemory() { mallopt(M_PERTURB, 0); }
};

constexpr int most_bytes = 200'000;

/// The receiver's datatype is new each time, so that it is left to the library if that can be; the sender's is not.
template <class Struct, class Exchange>
void expect_structs_arrive(bool from_gpu, Exchange&& exchange) {
  const int steps = 72 / std::max(size(), 2);  // as many messages at any number of ranks
  const FilledMemory filled;
  const Owned kept(type_of(static_cast<const Struct*>(nullptr)));
  for (int step = 1; step <= steps; ++step) {
    const int count = 1 + static_cast<int>(most_bytes / sizeof(Struct)) * step / steps;
    const std::vector<Struct> sent = numbered<Struct>(count);
    std::vector<Struct> received(sent.size());
    std::vector<std::byte> bytes(sizeof(Struct) * sent.size());
    std::memcpy(bytes.data(), sent.data(), bytes.size());
    const std::unique_ptr<OnGpu> on_gpu = from_gpu ? std::make_unique<OnGpu>(bytes) : nullptr;
    const Owned fresh(type_of(sent.data()));
    exchange(on_gpu ? on_gpu->at(0) : sent.data(), received.data(), count, kept, fresh);
    const auto is_same = [](const Struct& one, const Struct& other) {
      return one.first == other.first && one.second == other.second && one.third == other.third;
    };
    EXPECT_TRUE(std::ranges::equal(sent, received, is_same)) << count << " structs";
  }
}

void send_and_receive(const void* sent, void* received, int count, MPI_Datatype kept, MPI_Datatype fresh) {
  MPI_Request request;
  MPI_Irecv(received, count, fresh, (rank() + size() - 1) % size(), 0, MPI_COMM_WORLD, &request);
  const auto send = count % 2 == 0 ? MPI_Send : MPI_Ssend;
  EXPECT_EQ(MPI_SUCCESS, send(sent, count, kept, (rank() + 1) % size(), 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void exchange_all(const void* sent, void* received, int count, MPI_Datatype kept, MPI_Datatype fresh) {
  const auto all = static_cast<std::size_t>(size());
  std::vector<int> given(all), taken(all), places(all);
  given[static_cast<std::size_t>((rank() + 1) % size())] = count;
  taken[static_cast<std::size_t>((rank() + size() - 1) % size())] = count;
  const std::vector<MPI_Datatype> of_sent(all, kept), of_received(all, fresh);
  EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(sent, given.data(), places.data(), of_sent.data(), received, taken.data(),
                                       places.data(), of_received.data(), MPI_COMM_WORLD));
}

#if !defined(OPEN_MPI)
/// To the next process, which takes no part.
class Put {
 public:
  explicit Put(std::size_t most_bytes) : exposed_(most_bytes) {
    MPI_Win_create(exposed_.data(), static_cast<MPI_Aint>(most_bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    MPI_Win_fence(0, window_);
  }
  ~Put() { MPI_Win_free(&window_); }
  Put(const Put&) = delete;
  Put& operator=(const Put&) = delete;

  void operator()(const void* sent, void* received, int count, MPI_Datatype kept, MPI_Datatype fresh) {
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(fresh, &lower, &extent);
    EXPECT_EQ(MPI_SUCCESS, MPI_Put(sent, count, kept, (rank() + 1) % size(), 0, count, fresh, window_));
    EXPECT_EQ(MPI_SUCCESS, MPI_Win_fence(0, window_));
    std::memcpy(received, exposed_.data(), static_cast<std::size_t>(count * extent));
    std::ranges::fill(exposed_, std::byte{0});
    EXPECT_EQ(MPI_SUCCESS, MPI_Win_fence(0, window_));
  }

 private:
  std::vector<std::byte> exposed_;
  MPI_Win window_ = MPI_WIN_NULL;
};
#endif

/// From host memory, from GPUs, and from GPUs at some ranks alone.
template <class Struct>
void expect_structs_arrive() {
  const bool is_even = rank() % 2 == 0, has_gpus = under_gapless() && has_gpu();
  for (const bool from_gpu : {false, has_gpus, has_gpus && is_even}) {
    expect_structs_arrive<Struct>(from_gpu, send_and_receive);
    expect_structs_arrive<Struct>(from_gpu, exchange_all);
#if !defined(OPEN_MPI)  // whose own crashes in MPI_Put of long structs
    expect_structs_arrive<Struct>(from_gpu, Put(most_bytes + sizeof(Struct)));
#endif
  }
}

TEST(Mpich, StructsBehindANumberArriveInPieces) { expect_structs_arrive<Behind>(); }
TEST(Mpich, UnalignedElementsArriveInPieces) {
  expect_structs_arrive<Apart<3000>>();
  expect_structs_arrive<Apart<30'000>>();
}

}  // namespace
}  // namespace gapless::test

// Random nested datatypes of every combiner: what MPI_Pack and MPI_Unpack do with them, and what arrives when they are
// sent, against the type map taken literally; and against the MPI library's own pack in the same process.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/messages.hpp"
#include "support/packs_something.hpp"
#include "support/types/library_defects.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {
namespace {

std::string replay(std::uint64_t seed, const Type& type, int count) {
  return "replay with GAPLESS_TEST_SEED=" + std::to_string(seed) + " GAPLESS_TEST_ITERATIONS=1; count " +
         std::to_string(count) + " of " + type.text();
}

/// Calls `check(random, type, count)` for many types; the k-th is drawn from seed + k, so that each can be run alone.
template <typename Check>
void for_random_types(int how_many, Check check) {
  int library_defects = 0;
  for (int k = 0; k < iterations(how_many); ++k) {
    const std::uint64_t own_seed = seed() + static_cast<std::uint64_t>(k);
    Random random(own_seed);
    const Type type = random_type(random, random.between(1, 4));
    static constexpr std::array<int, 6> counts = {0, 1, 1, 2, 3, 7};
    const int count = counts[static_cast<std::size_t>(random.between(0, 5))];
    SCOPED_TRACE(replay(own_seed, type, count));
    if (!library_packs_by_type_map(type, count)) {
      ++library_defects;
      continue;
    }
    check(random, type, count);
    if (testing::Test::HasFailure()) return;  // one replay line says more than a hundred
  }
  if (library_defects > 0 && rank() == 0)
    std::cout << library_defects << " types left out, which the MPI library itself packs wrong\n";
}

/// Of so many random types with their counts, not fewer than these have bytes with gaps among them.
std::uint64_t least_packed(int how_many) {
  return iterations(how_many) < how_many ? 0 : static_cast<std::uint64_t>(how_many) / 4;
}

TEST(RandomTypes, SizeAndBoundsAreThoseOfTheTypeMap) {
  for_random_types(300, [](Random&, const Type& type, int) {
    int size = -1;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_size(type.handle(), &size));
    EXPECT_EQ(type.map().size(), static_cast<std::size_t>(size));
  });
}

TEST(RandomTypes, PackGivesTheBytesOfTheTypeMap) {
  const PacksSomething packs(least_packed(600));
  for_random_types(600, [](Random& random, const Type& type, int count) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    Memory memory(offsets, random, random.between(0, 15));
    const int start = random.between(0, 17);
    const std::vector<std::byte> expected = memory.packed(offsets);
    for (auto* pack : {&MPI_Pack, GAPLESS_TEST_NATIVE(Pack)}) {
      std::vector<std::byte> packed(expected.size() + static_cast<std::size_t>(start) + 9, std::byte{0xA5});
      const std::vector<std::byte> before = packed;
      int position = start;
      EXPECT_EQ(MPI_SUCCESS, pack(memory.base(), count, type.handle(), packed.data(),
                                  static_cast<int>(packed.size() - 9), &position, MPI_COMM_WORLD));
      EXPECT_EQ(start + static_cast<int>(expected.size()), position);
      std::vector<std::byte> wanted = before;
      std::copy(expected.begin(), expected.end(), wanted.begin() + start);
      EXPECT_TRUE(same_bytes(wanted, packed)) << (pack == &MPI_Pack ? "MPI_Pack" : "the library's own pack");
    }
  });
}

TEST(RandomTypes, UnpackWritesTheBytesOfTheTypeMapAndNoOther) {
  const PacksSomething packs(least_packed(600));
  for_random_types(600, [](Random& random, const Type& type, int count) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    if (overlaps(offsets)) return;
    std::vector<std::byte> packed(offsets.size());
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random.bits());
    const int start = random.between(0, 17);
    const int end = start + static_cast<int>(packed.size());
    std::vector<std::byte> input(static_cast<std::size_t>(end) +
                                 1);  // Open MPI refuses a null buffer, even of no bytes
    std::copy(packed.begin(), packed.end(), input.begin() + start);
    Memory memory(offsets, random, random.between(0, 15));
    const std::vector<std::byte> wanted = memory.after_unpacking(packed, offsets);
    int position = start;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Unpack(input.data(), end, &position, memory.base(), count, type.handle(), MPI_COMM_WORLD));
    EXPECT_EQ(end, position);
    EXPECT_TRUE(same_bytes(wanted, memory.bytes()));
  });
}

TEST(RandomTypes, PackSizeIsEnough) {
  for_random_types(200, [](Random&, const Type& type, int count) {
    int size = -1;
    EXPECT_EQ(MPI_SUCCESS, MPI_Pack_size(count, type.handle(), MPI_COMM_WORLD, &size));
    EXPECT_GE(size, static_cast<int>(type.map().size()) * count);
  });
}

/// Sends `count` of `type` to `partner`, which receives its elements as `into`, a type of the same signature.
void expect_arrival(Random& random, const Type& type, int count, const Type& into, int into_count, int partner) {
  const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
  const std::vector<MPI_Aint> into_offsets = packed_offsets(into.map(), into_count);
  Memory source(offsets, random, random.between(0, 7));
  Memory destination(into_offsets, random, random.between(0, 7));
  const auto mode = static_cast<SendMode>(random.between(0, send_modes - 1));
  const auto way = static_cast<ReceiveWay>(random.between(0, receive_ways - 1));
  SCOPED_TRACE("received as " + into.text() + ", " + name(mode) + " to " + name(way));
  // All ranks draw the same numbers, so the partner's source holds the same bytes as mine.
  const std::vector<std::byte> wanted = destination.after_unpacking(source.packed(offsets), into_offsets);

  MPI_Status status;
  exchange(mode, way, {source.base(), count, type.handle()}, {destination.base(), into_count, into.handle()}, partner,
           &status);

  EXPECT_TRUE(same_bytes(wanted, destination.bytes()));
  EXPECT_EQ(partner, status.MPI_SOURCE);
  if (into.map().size() == 0) return;
  int received = -1;
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, into.handle(), &received));
  EXPECT_EQ(into_count, received);
}

/// Noncontiguous to contiguous, contiguous to noncontiguous, noncontiguous to noncontiguous, and a type to itself.
void expect_arrival_in_all_forms(int partner, int how_many) {
  const PacksSomething packs(least_packed(how_many));
  for_random_types(how_many, [partner](Random& random, const Type& type, int count) {
    const Type contiguous = contiguous_counterpart(type, count);
    const Type scattered = scattered_counterpart(random, type, count);
    expect_arrival(random, type, count, contiguous, 1, partner);
    expect_arrival(random, type, count, scattered, 1, partner);
    expect_arrival(random, scattered, 1, contiguous, 1, partner);
    expect_arrival(random, contiguous, 1, scattered, 1, partner);
    if (overlaps(packed_offsets(type.map(), count))) return;
    expect_arrival(random, contiguous, 1, type, count, partner);
    expect_arrival(random, scattered, 1, type, count, partner);
    expect_arrival(random, type, count, type, count, partner);
  });
}

TEST(RandomTypes, ArriveAtMyself) { expect_arrival_in_all_forms(rank(), 60); }

TEST(RandomTypes, ArriveAtMyNeighbour) {
  const int partner = rank() ^ 1;
  expect_arrival_in_all_forms(partner < size() ? partner : rank(), 60);
}

}  // namespace
}  // namespace gapless::test

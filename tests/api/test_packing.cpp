// Packing of host memory through the C API against the oracle's type maps: any range, batches, copies, and every way to
// be wrong.
#include <cstdint>
#include <cstring>

#include "random_type.hpp"

namespace {

constexpr std::int64_t huge = INT64_C(1) << 62;

/// Random memory that holds every byte a map names, with a margin; `origin` is what displacements count from.
struct Memory {
  Memory(RandomTypes& random, const TypeMap& map)
      : bytes(random.bytes(static_cast<std::size_t>(map.end() - map.first() + 64))),
        origin_index(32 - map.first()),
        origin(reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(bytes.data()) +
                                                static_cast<std::uintptr_t>(origin_index))) {}
  unsigned char& at(std::int64_t offset) { return bytes[static_cast<std::size_t>(origin_index + offset)]; }

  std::vector<unsigned char> bytes;
  std::int64_t origin_index;
  unsigned char* origin;
};

struct Range {
  std::int64_t begin, end;
  std::size_t length() const { return static_cast<std::size_t>(end - begin); }
};

Range random_range(RandomTypes& random, std::int64_t size) {
  const std::int64_t begin = random.between(0, size);
  return random.between(0, 2) == 0 ? Range{0, size} : Range{begin, random.between(begin, size)};
}

std::vector<unsigned char> expected_packed(Memory& memory, const TypeMap& map, Range range) {
  std::vector<unsigned char> packed;
  for (std::int64_t k = range.begin; k < range.end; ++k) packed.push_back(memory.at(map.bytes[std::size_t(k)]));
  return packed;
}

void unpack_by_hand(Memory& memory, const TypeMap& map, Range range, const std::vector<unsigned char>& packed) {
  for (std::int64_t k = range.begin; k < range.end; ++k) {
    memory.at(map.bytes[std::size_t(k)]) = packed[std::size_t(k - range.begin)];
  }
}

void expect_failure(gapless_status got, gapless_status expected, const char* mentions) {
  EXPECT_EQ(got, expected) << gapless_last_error();
  EXPECT_NE(std::strstr(gapless_last_error(), mentions), nullptr)
      << '"' << gapless_last_error() << "\" does not mention " << mentions;
}

}  // namespace

TEST(Packing, AnyRangeOfRandomTypes) {
  RandomTypes random;
  for (int i = 0; i < 2000; ++i) {
    const TwiceMade made = random.type();
    const std::int64_t count = random.between(0, 4);
    const TypeMap map = map_repeated(count, made.map);
    const Range range = random_range(random, map.size());
    Memory memory(random, map);

    const std::vector<unsigned char> before = memory.bytes;
    std::vector<unsigned char> packed(range.length());
    ASSERT_EQ(gapless_pack(made.type.get(), count, memory.origin, range.begin, range.end, packed.data(), nullptr),
              GAPLESS_SUCCESS)
        << gapless_last_error();
    ASSERT_EQ(packed, expected_packed(memory, map, range)) << "type " << i;
    ASSERT_EQ(memory.bytes, before) << "packing wrote to memory, type " << i;

    Memory expected = memory;
    const std::vector<unsigned char> incoming = random.bytes(range.length());
    unpack_by_hand(expected, map, range, incoming);
    ASSERT_EQ(gapless_unpack(made.type.get(), count, memory.origin, range.begin, range.end, incoming.data(), nullptr),
              GAPLESS_SUCCESS);
    ASSERT_EQ(memory.bytes, expected.bytes) << "type " << i;
  }
}

TEST(Packing, ABatchIsItsJobs) {
  RandomTypes random;
  for (int i = 0; i < 100; ++i) {
    std::vector<TwiceMade> made;
    std::vector<TypeMap> maps;
    std::vector<Memory> memories;
    std::vector<std::vector<unsigned char>> packed;
    std::vector<gapless_job> jobs;
    std::vector<std::vector<unsigned char>> expected;
    const std::size_t job_count = static_cast<std::size_t>(random.between(0, 26));
    for (std::size_t j = 0; j < job_count; ++j) {
      const std::int64_t count = random.between(0, 3);
      made.push_back(random.type());
      maps.push_back(map_repeated(count, made[j].map));
      memories.emplace_back(random, maps[j]);
      const Range range = random_range(random, maps[j].size());
      packed.push_back(random.bytes(range.length()));
      Memory& memory = memories[j];
      const bool packs = random.between(0, 1) != 0;
      jobs.push_back(
          {made[j].type.get(), count, nullptr, range.begin, range.end, nullptr, packs ? GAPLESS_PACK : GAPLESS_UNPACK});
      if (packs) {
        expected.push_back(expected_packed(memory, maps[j], range));
      } else {
        Memory after = memory;
        unpack_by_hand(after, maps[j], range, packed[j]);
        expected.push_back(after.bytes);
      }
    }
    for (std::size_t j = 0; j < job_count; ++j) {  // when the vectors have stopped moving
      jobs[j].memory = memories[j].bytes.data() + memories[j].origin_index;
      jobs[j].packed = packed[j].data();
    }
    ASSERT_EQ(gapless_pack_batch(jobs.data(), job_count, nullptr), GAPLESS_SUCCESS) << gapless_last_error();
    for (std::size_t j = 0; j < job_count; ++j) {
      ASSERT_EQ(jobs[j].direction == GAPLESS_PACK ? packed[j] : memories[j].bytes, expected[j]) << "job " << j;
    }
  }
}

TEST(Packing, ABatchWithOneWrongJobMovesNothing) {
  const TypeHandle vector = parse("vector(4, 1, 2, int)");
  const std::vector<int> memory(8, 7);
  std::vector<int> packed(4, -1);
  const gapless_job right = {vector.get(), 1, const_cast<int*>(memory.data()), 0, 16, packed.data(), GAPLESS_PACK};
  gapless_job jobs[] = {right, right};
  jobs[1].end = 17;
  expect_failure(gapless_pack_batch(jobs, 2, nullptr), GAPLESS_ERROR_RANGE, "job 1: ");
  jobs[1] = right;
  jobs[1].direction = 7;
  expect_failure(gapless_pack_batch(jobs, 2, nullptr), GAPLESS_ERROR_ARGUMENT, "direction");
  EXPECT_EQ(packed, std::vector<int>(4, -1));
  expect_failure(gapless_pack_batch(nullptr, 1, nullptr), GAPLESS_ERROR_ARGUMENT, "jobs is null");
  EXPECT_EQ(gapless_pack_batch(nullptr, 0, nullptr), GAPLESS_SUCCESS);
}

TEST(Packing, CopyBetweenRandomTypesOfOneSize) {
  RandomTypes random;
  int copies = 0;
  for (int i = 0; i < 1000; ++i) {
    const TwiceMade source = random.type(), destination = random.type();
    if (source.map.size() == 0 || destination.map.size() == 0) continue;
    // Each type as often as the other is long.
    const std::int64_t limit = 4096;
    if (source.map.size() * destination.map.size() > limit) continue;
    const TypeMap from = map_repeated(destination.map.size(), source.map);
    const TypeMap to = map_repeated(source.map.size(), destination.map);
    Memory source_memory(random, from), destination_memory(random, to);
    Memory expected = destination_memory;
    const Range all{0, from.size()};
    unpack_by_hand(expected, to, all, expected_packed(source_memory, from, all));
    ASSERT_EQ(gapless_copy(source.type.get(), destination.map.size(), source_memory.origin, destination.type.get(),
                           source.map.size(), destination_memory.origin, nullptr),
              GAPLESS_SUCCESS)
        << gapless_last_error();
    ASSERT_EQ(destination_memory.bytes, expected.bytes) << "pair " << i;
    ++copies;
  }
  EXPECT_GT(copies, 50);
}

TEST(Packing, NothingToMoveNeedsNoMemory) {
  const TypeHandle vector = parse("vector(4, 1, 2, int)");
  const TypeHandle empty = parse("contiguous(0, int)");
  EXPECT_EQ(gapless_pack(vector.get(), 0, nullptr, 0, 0, nullptr, nullptr), GAPLESS_SUCCESS);
  EXPECT_EQ(gapless_unpack(vector.get(), 1, nullptr, 8, 8, nullptr, nullptr), GAPLESS_SUCCESS);
  EXPECT_EQ(gapless_pack(empty.get(), huge, nullptr, 0, 0, nullptr, nullptr), GAPLESS_SUCCESS);
  EXPECT_EQ(gapless_copy(empty.get(), 1, nullptr, vector.get(), 0, nullptr, nullptr), GAPLESS_SUCCESS);
}

TEST(PackingErrors, WrongArgumentsMoveNothing) {
  const TypeHandle vector = parse("vector(4, 1, 2, int)");
  int memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int packed[4] = {-1, -1, -1, -1};
  expect_failure(gapless_pack(nullptr, 1, memory, 0, 16, packed, nullptr), GAPLESS_ERROR_ARGUMENT, "type is null");
  expect_failure(gapless_pack(vector.get(), -1, memory, 0, 16, packed, nullptr), GAPLESS_ERROR_ARGUMENT, "count is -1");
  expect_failure(gapless_pack(vector.get(), 1, nullptr, 0, 16, packed, nullptr), GAPLESS_ERROR_ARGUMENT,
                 "memory is null");
  expect_failure(gapless_pack(vector.get(), 1, memory, 0, 16, nullptr, nullptr), GAPLESS_ERROR_ARGUMENT,
                 "packed is null");
  expect_failure(gapless_pack(vector.get(), 1, memory, -1, 16, packed, nullptr), GAPLESS_ERROR_RANGE, "[-1, 16)");
  expect_failure(gapless_pack(vector.get(), 1, memory, 8, 4, packed, nullptr), GAPLESS_ERROR_RANGE, "[8, 4)");
  expect_failure(gapless_pack(vector.get(), 1, memory, 0, 17, packed, nullptr), GAPLESS_ERROR_RANGE, "16 packed bytes");
  expect_failure(gapless_unpack(vector.get(), 1, memory, 0, 17, packed, nullptr), GAPLESS_ERROR_RANGE, "[0, 17)");
  expect_failure(gapless_unpack(vector.get(), huge, memory, 0, 1, packed, nullptr), GAPLESS_ERROR_OVERFLOW, "63 bits");
  for (int value : packed) EXPECT_EQ(value, -1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(memory[i], i + 1);
}

TEST(PackingErrors, RepetitionsOutOfReach) {
  const TypeHandle far = parse("resized(byte, 0, 4611686018427387904)");
  char byte = 0, packed = 0;
  expect_failure(gapless_pack(far.get(), 3, &byte, 0, 1, &packed, nullptr), GAPLESS_ERROR_OVERFLOW, "63 bits");
  EXPECT_EQ(gapless_pack(far.get(), 1, &byte, 0, 1, &packed, nullptr), GAPLESS_SUCCESS);
  // Both ends fit, and their distance does not.
  const TypeHandle farthest = parse("resized(byte, 0, -9223372036854775808)");
  expect_failure(gapless_pack(farthest.get(), 2, &byte, 0, 1, &packed, nullptr), GAPLESS_ERROR_OVERFLOW, "63 bits");
}

TEST(PackingErrors, CopiesOfDifferentTypesOrSizes) {
  const TypeHandle four = parse("contiguous(4, int)"), three = parse("contiguous(3, int)");
  int a[4] = {}, b[4] = {};
  expect_failure(gapless_copy(four.get(), 1, a, three.get(), 1, b, nullptr), GAPLESS_ERROR_ARGUMENT, "16 packed bytes");
  expect_failure(gapless_copy(nullptr, 1, a, three.get(), 1, b, nullptr), GAPLESS_ERROR_ARGUMENT,
                 "source_type is null");
  expect_failure(gapless_copy(four.get(), 1, a, four.get(), -1, b, nullptr), GAPLESS_ERROR_ARGUMENT,
                 "destination_count is -1");
  expect_failure(gapless_copy(four.get(), 1, nullptr, four.get(), 1, b, nullptr), GAPLESS_ERROR_ARGUMENT,
                 "source_memory is null");
  expect_failure(gapless_copy(four.get(), huge, a, four.get(), 1, b, nullptr), GAPLESS_ERROR_OVERFLOW, "source_type");
}

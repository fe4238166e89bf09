// Types through the C API: bounds and facts against the oracle's type maps, ownership, text, and every way to be wrong.
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "random_type.hpp"

namespace {

constexpr std::int64_t huge = INT64_C(1) << 62;

void expect_bounds(const gapless_type* type, const TypeMap& map) {
  std::int64_t size, lower, extent, true_lower, true_extent;
  ASSERT_EQ(gapless_type_size(type, &size), GAPLESS_SUCCESS);
  ASSERT_EQ(gapless_type_extent(type, &lower, &extent), GAPLESS_SUCCESS);
  ASSERT_EQ(gapless_type_true_extent(type, &true_lower, &true_extent), GAPLESS_SUCCESS);
  EXPECT_EQ(size, map.size());
  EXPECT_EQ(lower, map.lower_bound);
  EXPECT_EQ(extent, map.extent());
  EXPECT_EQ(true_lower, map.first());
  EXPECT_EQ(true_extent, map.end() - map.first());
}

/// The call fails with `status` and says why.
void expect_failure(gapless_status got, gapless_status expected, const char* mentions) {
  EXPECT_EQ(got, expected) << gapless_last_error();
  EXPECT_NE(std::strstr(gapless_last_error(), mentions), nullptr)
      << '"' << gapless_last_error() << "\" does not mention " << mentions;
}

class TypeErrors : public testing::Test {
 protected:
  // Stays as it is in every test: failures leave results untouched.
  gapless_type* const untouched_ = reinterpret_cast<gapless_type*>(0x10);
  gapless_type* result_ = untouched_;
  TypeHandle int_ = make(gapless_type_named, std::int64_t{4}, std::int64_t{4});
  void TearDown() override { EXPECT_EQ(result_, untouched_); }
};

}  // namespace

TEST(Types, BoundsOfRandomTypesAreThoseOfTheTypeMap) {
  RandomTypes random;
  for (int i = 0; i < 2000; ++i) {
    const TwiceMade made = random.type();
    ASSERT_NE(made.type, nullptr);
    expect_bounds(made.type.get(), made.map);
    if (HasFailure()) FAIL() << "type " << i;
  }
}

TEST(Types, FactsOfRandomTypesHoldForTheTypeMap) {
  RandomTypes random;
  for (int i = 0; i < 2000; ++i) {
    const TwiceMade made = random.type();
    gapless_facts facts;
    ASSERT_EQ(gapless_type_facts(made.type.get(), &facts), GAPLESS_SUCCESS);
    EXPECT_GE(facts.block_count, made.map.blocks());
    EXPECT_GE(facts.longest_block, facts.shortest_block);
    EXPECT_LE(facts.shortest_block * facts.block_count, made.map.size());
    EXPECT_GE(facts.longest_block * facts.block_count, made.map.size());
    EXPECT_GE(facts.memory_bytes, 0);
    if (facts.injective) {
      EXPECT_FALSE(made.map.names_a_byte_twice());
    }
    for (std::size_t k = 1; k < made.map.bytes.size(); ++k) {
      if (made.map.bytes[k] != made.map.bytes[k - 1] + 1) {
        EXPECT_EQ((made.map.bytes[k] - made.map.bytes[0]) % facts.alignment, 0);
      }
    }
    if (HasFailure()) FAIL() << "type " << i;
  }
}

TEST(Types, FactsOfAFaceAreExact) {
  const TypeHandle face = parse("subarray([8,8,8], [6,6,2], [1,1,0], c, double)");
  gapless_facts facts;
  ASSERT_EQ(gapless_type_facts(face.get(), &facts), GAPLESS_SUCCESS);
  EXPECT_EQ(facts.block_count, 36);
  EXPECT_EQ(facts.shortest_block, 16);
  EXPECT_EQ(facts.longest_block, 16);
  EXPECT_EQ(facts.alignment, 16);
  EXPECT_EQ(facts.injective, 1);
}

TEST(Types, TrafficCountsDistinctLines) {
  RandomTypes random;
  for (int i = 0; i < 500; ++i) {
    const TwiceMade made = random.type();
    const std::int64_t count = random.between(0, 5);
    const TypeMap map = map_repeated(count, made.map);
    gapless_traffic traffic;
    ASSERT_EQ(gapless_type_traffic(made.type.get(), count, &traffic), GAPLESS_SUCCESS);
    ASSERT_EQ(traffic.packed_bytes, map.size());
    ASSERT_EQ(traffic.lines_touched, map.lines()) << "type " << i << ", count " << count;
  }
}

TEST(Types, TrafficOfManyBlocksIsEstimated) {
  // 2^20 ints, one in every 128 bytes: a line each.
  gapless_traffic traffic;
  ASSERT_EQ(gapless_type_traffic(parse("vector(1048576, 1, 32, int)").get(), 1, &traffic), GAPLESS_SUCCESS);
  EXPECT_EQ(traffic.lines_touched, 1048576);
  // A transpose of 1024 x 1024 ints visits each line 16 times and touches 65536.
  const TypeHandle column = parse("resized(vector(1024, 1, 1024, int), 0, 4)");
  ASSERT_EQ(gapless_type_traffic(column.get(), 1024, &traffic), GAPLESS_SUCCESS);
  EXPECT_EQ(traffic.lines_touched, 65536);
}

TEST(Types, SubarraysInBothOrders) {
  const TypeHandle element = make(gapless_type_named, std::int64_t{4}, std::int64_t{4});
  const std::int64_t sizes[] = {5, 7}, subsizes[] = {2, 3}, starts[] = {1, 4};
  const TypeHandle in_c = make(gapless_type_subarray, 2, sizes, subsizes, starts, GAPLESS_ORDER_C, element.get());
  expect_bounds(in_c.get(), map_subarray({5, 7}, {2, 3}, {1, 4}, map_named(4, 4)));
  const std::int64_t sizes_f[] = {7, 5}, subsizes_f[] = {3, 2}, starts_f[] = {4, 1};
  const TypeHandle in_fortran =
      make(gapless_type_subarray, 2, sizes_f, subsizes_f, starts_f, GAPLESS_ORDER_FORTRAN, element.get());
  int equal = 0;
  ASSERT_EQ(gapless_type_equal(in_c.get(), in_fortran.get(), &equal), GAPLESS_SUCCESS);
  EXPECT_EQ(equal, 1);
}

TEST(Types, DarrayOfBlocksIsASubarray) {
  const TypeHandle element = make(gapless_type_named, std::int64_t{8}, std::int64_t{8});
  const std::int64_t sizes[] = {8, 6}, arguments[] = {GAPLESS_DISTRIBUTE_DEFAULT, GAPLESS_DISTRIBUTE_DEFAULT};
  const std::int64_t grid[] = {2, 3};
  const int block[] = {GAPLESS_DISTRIBUTE_BLOCK, GAPLESS_DISTRIBUTE_BLOCK};
  // Rank 4 of the row-major 2 x 3 grid is (1, 1).
  const TypeHandle mine = make(gapless_type_darray, std::int64_t{6}, std::int64_t{4}, 2, sizes, block, arguments, grid,
                               GAPLESS_ORDER_C, element.get());
  expect_bounds(mine.get(), map_subarray({8, 6}, {4, 2}, {4, 2}, map_named(8, 8)));
}

TEST(Types, EqualMeansTheSameBytesInTheSameOrder) {
  int equal = -1;
  const TypeHandle vector = parse("vector(6, 2, 4, int)");
  ASSERT_EQ(gapless_type_equal(vector.get(), parse("hvector(6, 1, 16, contiguous(2, int))").get(), &equal),
            GAPLESS_SUCCESS);
  EXPECT_EQ(equal, 1);
  ASSERT_EQ(gapless_type_equal(vector.get(), parse("vector(6, 2, 5, int)").get(), &equal), GAPLESS_SUCCESS);
  EXPECT_EQ(equal, 0);
  const TypeHandle by_rows = parse("contiguous(4, int)");
  const TypeHandle reversed = parse("vector(4, 1, -1, int)");
  ASSERT_EQ(gapless_type_equal(by_rows.get(), reversed.get(), &equal), GAPLESS_SUCCESS);
  EXPECT_EQ(equal, 0);
}

TEST(Types, DescribeCutsAndTellsTheLength) {
  const TypeHandle vector = parse("vector(1024, 2, 4, int)");
  std::size_t length = 0;
  ASSERT_EQ(gapless_type_describe(vector.get(), nullptr, 0, &length), GAPLESS_SUCCESS);
  ASSERT_GT(length, 8u);
  std::string whole(length + 1, 'x');
  ASSERT_EQ(gapless_type_describe(vector.get(), whole.data(), whole.size(), nullptr), GAPLESS_SUCCESS);
  EXPECT_EQ(std::strlen(whole.c_str()), length);
  EXPECT_NE(whole.find("1024"), std::string::npos) << whole;
  char few[8];
  ASSERT_EQ(gapless_type_describe(vector.get(), few, sizeof few, &length), GAPLESS_SUCCESS);
  EXPECT_EQ(std::string(few), whole.substr(0, 7));
  EXPECT_EQ(length, std::strlen(whole.c_str()));
}

TEST(Types, ChildrenAndOwnersMayEndInAnyOrder) {
  gapless_type *element = nullptr, *vector = nullptr;
  ASSERT_EQ(gapless_type_named(4, 4, &element), GAPLESS_SUCCESS);
  ASSERT_EQ(gapless_type_vector(8, 1, 2, element, &vector), GAPLESS_SUCCESS);
  gapless_type_free(element);
  std::vector<std::thread> owners;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(gapless_type_retain(vector), GAPLESS_SUCCESS);
    owners.emplace_back([vector] {
      std::int64_t size = 0;
      gapless_type_size(vector, &size);
      EXPECT_EQ(size, 32);
      gapless_type_free(vector);
    });
  }
  gapless_type_free(vector);
  for (auto& owner : owners) owner.join();
  gapless_type_free(nullptr);
}

TEST_F(TypeErrors, NullArguments) {
  const std::int64_t ones[] = {1};
  expect_failure(gapless_type_contiguous(1, nullptr, &result_), GAPLESS_ERROR_ARGUMENT, "child is null");
  expect_failure(gapless_type_contiguous(1, int_.get(), nullptr), GAPLESS_ERROR_ARGUMENT, "result is null");
  expect_failure(gapless_type_vector(1, 1, 1, nullptr, &result_), GAPLESS_ERROR_ARGUMENT, "child is null");
  expect_failure(gapless_type_hvector(1, 1, 1, nullptr, &result_), GAPLESS_ERROR_ARGUMENT, "child is null");
  expect_failure(gapless_type_indexed(1, nullptr, ones, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block_lengths");
  expect_failure(gapless_type_indexed(1, ones, nullptr, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "displacements");
  expect_failure(gapless_type_hindexed(1, ones, nullptr, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT,
                 "displacements_bytes");
  expect_failure(gapless_type_indexed_block(1, 1, nullptr, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT,
                 "displacements");
  expect_failure(gapless_type_hindexed_block(1, 1, nullptr, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT,
                 "displacements_bytes");
  const gapless_type* no_children[] = {nullptr};
  expect_failure(gapless_type_struct(1, ones, ones, nullptr, &result_), GAPLESS_ERROR_ARGUMENT, "children");
  expect_failure(gapless_type_struct(1, ones, ones, no_children, &result_), GAPLESS_ERROR_ARGUMENT, "children");
  expect_failure(gapless_type_subarray(1, ones, nullptr, ones, GAPLESS_ORDER_C, int_.get(), &result_),
                 GAPLESS_ERROR_ARGUMENT, "subsizes");
  expect_failure(gapless_type_darray(1, 0, 1, ones, nullptr, ones, ones, GAPLESS_ORDER_C, int_.get(), &result_),
                 GAPLESS_ERROR_ARGUMENT, "distributions");
  expect_failure(gapless_type_resized(nullptr, 0, 1, &result_), GAPLESS_ERROR_ARGUMENT, "child is null");
  expect_failure(gapless_type_parse(nullptr, &result_, nullptr, 0), GAPLESS_ERROR_ARGUMENT, "text is null");
  expect_failure(gapless_type_retain(nullptr), GAPLESS_ERROR_ARGUMENT, "type is null");
}

TEST_F(TypeErrors, NegativeAndImpossibleNumbers) {
  const std::int64_t one[] = {1}, minus[] = {-1}, two[] = {2};
  expect_failure(gapless_type_named(-1, 4, &result_), GAPLESS_ERROR_ARGUMENT, "size is -1");
  expect_failure(gapless_type_named(4, 3, &result_), GAPLESS_ERROR_ARGUMENT, "extent");
  expect_failure(gapless_type_contiguous(-1, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "count");
  expect_failure(gapless_type_vector(-1, 1, 1, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "count");
  expect_failure(gapless_type_vector(1, -1, 1, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block");
  expect_failure(gapless_type_hvector(-1, 1, 1, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "count");
  expect_failure(gapless_type_indexed(-1, one, one, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "count is -1");
  expect_failure(gapless_type_indexed(1, minus, one, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block");
  expect_failure(gapless_type_hindexed(1, minus, one, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block");
  expect_failure(gapless_type_indexed_block(1, -1, one, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block");
  expect_failure(gapless_type_hindexed_block(1, -1, one, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "block");
  const gapless_type* children[] = {int_.get()};
  expect_failure(gapless_type_struct(-1, one, one, children, &result_), GAPLESS_ERROR_ARGUMENT, "count is -1");
  expect_failure(gapless_type_struct(1, minus, one, children, &result_), GAPLESS_ERROR_ARGUMENT, "block");
  expect_failure(gapless_type_subarray(0, one, one, one, GAPLESS_ORDER_C, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT,
                 "dimensions is 0");
  expect_failure(gapless_type_subarray(1, one, two, one, GAPLESS_ORDER_C, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT,
                 "");
  expect_failure(gapless_type_subarray(1, two, one, one, 7, int_.get(), &result_), GAPLESS_ERROR_ARGUMENT, "order");
  const int unknown[] = {7};
  expect_failure(gapless_type_darray(1, 0, 1, two, unknown, one, one, GAPLESS_ORDER_C, int_.get(), &result_),
                 GAPLESS_ERROR_ARGUMENT, "distribution");
  const int block[] = {GAPLESS_DISTRIBUTE_BLOCK};
  expect_failure(gapless_type_darray(1, 1, 1, two, block, two, one, GAPLESS_ORDER_C, int_.get(), &result_),
                 GAPLESS_ERROR_ARGUMENT, "");
}

TEST_F(TypeErrors, NumbersBeyond63Bits) {
  expect_failure(gapless_type_contiguous(huge, int_.get(), &result_), GAPLESS_ERROR_OVERFLOW, "");
  expect_failure(gapless_type_vector(2, 1, huge, int_.get(), &result_), GAPLESS_ERROR_OVERFLOW, "");
  expect_failure(gapless_type_hvector(5, 1, huge, int_.get(), &result_), GAPLESS_ERROR_OVERFLOW, "");
  expect_failure(gapless_type_resized(int_.get(), huge, huge, &result_), GAPLESS_ERROR_OVERFLOW, "");
}

TEST_F(TypeErrors, TextThatIsNoType) {
  char error[256] = "";
  expect_failure(gapless_type_parse("vector(1, 2", &result_, error, sizeof error), GAPLESS_ERROR_PARSE, "");
  EXPECT_STREQ(error, gapless_last_error());
  EXPECT_NE(error[0], '\0');
  char few[4] = "abc";
  expect_failure(gapless_type_parse("no_such_type", &result_, few, sizeof few), GAPLESS_ERROR_PARSE, "");
  EXPECT_EQ(std::strlen(few), 3u);
  EXPECT_EQ(std::strncmp(few, gapless_last_error(), 3), 0);
  expect_failure(gapless_type_parse("", &result_, nullptr, 0), GAPLESS_ERROR_PARSE, "");
  expect_failure(gapless_type_parse("contiguous(9223372036854775807, int)", &result_, nullptr, 0),
                 GAPLESS_ERROR_OVERFLOW, "column 1: ");
}

TEST_F(TypeErrors, QuestionsWithoutAnAnswer) {
  std::int64_t number = 0;
  int equal = 0;
  gapless_facts facts;
  gapless_traffic traffic;
  expect_failure(gapless_type_size(nullptr, &number), GAPLESS_ERROR_ARGUMENT, "null");
  expect_failure(gapless_type_size(int_.get(), nullptr), GAPLESS_ERROR_ARGUMENT, "null");
  expect_failure(gapless_type_extent(int_.get(), nullptr, &number), GAPLESS_ERROR_ARGUMENT, "null");
  expect_failure(gapless_type_true_extent(int_.get(), &number, nullptr), GAPLESS_ERROR_ARGUMENT, "null");
  expect_failure(gapless_type_facts(nullptr, &facts), GAPLESS_ERROR_ARGUMENT, "type is null");
  expect_failure(gapless_type_facts(int_.get(), nullptr), GAPLESS_ERROR_ARGUMENT, "facts is null");
  expect_failure(gapless_type_traffic(int_.get(), -1, &traffic), GAPLESS_ERROR_ARGUMENT, "count is -1");
  expect_failure(gapless_type_traffic(int_.get(), 1, nullptr), GAPLESS_ERROR_ARGUMENT, "traffic is null");
  expect_failure(gapless_type_traffic(int_.get(), huge, &traffic), GAPLESS_ERROR_OVERFLOW, "63 bits");
  expect_failure(gapless_type_describe(int_.get(), nullptr, 1, nullptr), GAPLESS_ERROR_ARGUMENT, "buffer is null");
  expect_failure(gapless_type_equal(int_.get(), nullptr, &equal), GAPLESS_ERROR_ARGUMENT, "null");
}

TEST(Status, EachHasAText) {
  for (int status = GAPLESS_SUCCESS; status <= GAPLESS_ERROR_INTERNAL; ++status) {
    EXPECT_STRNE(gapless_error_string(status), "not a status of gapless");
  }
  EXPECT_STREQ(gapless_error_string(77), "not a status of gapless");
}

TEST(Status, LastErrorIsPerThread) {
  gapless_type_retain(nullptr);
  EXPECT_STREQ(gapless_last_error(), "type is null");
  std::thread([] { EXPECT_STREQ(gapless_last_error(), ""); }).join();
}

TEST(Status, VersionIsThatOfTheHeader) {
  const std::string header = std::to_string(GAPLESS_VERSION_MAJOR) + '.' + std::to_string(GAPLESS_VERSION_MINOR) + '.' +
                             std::to_string(GAPLESS_VERSION_PATCH);
  EXPECT_EQ(header, gapless_version());
}

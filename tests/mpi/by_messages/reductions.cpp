// Reductions of GPU memory by messages: each rank combines its share.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "by_messages/exchanges.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"

namespace gapless::test {
namespace {

std::uint64_t reductions() { return count_by("gapless_reductions_by_messages"); }
std::uint64_t kernels() { return count_by("gapless_reduction_kernels"); }

/// Numbers of which all sums are exact.
int operand_of(int rank, std::size_t i, int round) { return rank * 31 + static_cast<int>(i * 7 % 1009) + round - 500; }
template <class Number>
std::vector<Number> operands_of(int rank, std::size_t count, int round) {
  std::vector<Number> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Number>(operand_of(rank, i, round));
  return values;
}
/// All ranks' operands, combined.
template <class Number, class Combine>
std::vector<Number> wanted_of(std::size_t count, int round, Combine combine) {
  std::vector<Number> wanted = operands_of<Number>(0, count, round);
  for (int rank = 1; rank < size(); ++rank) {
    for (std::size_t i = 0; i < count; ++i)
      wanted[i] = combine(wanted[i], static_cast<Number>(operand_of(rank, i, round)));
  }
  return wanted;
}

constexpr auto sum = [](auto a, auto b) { return a + b; };

/// Where a rank's operand and result are.
struct Places {
  bool operand_on_gpu, result_on_gpu;
};

/// Reductions of so many elements.
class Reductions : public testing::TestWithParam<int> {
 protected:
  Reductions() { MPI_Comm_dup(MPI_COMM_WORLD, &all_); }
  ~Reductions() override { MPI_Comm_free(&all_); }

  static std::size_t ranks() { return static_cast<std::size_t>(size()); }
  static bool is_root(int root) { return rank() == root; }
  /// One of more than two ranks has host memory, and others have a side there.
  static Places places(int round) {
    const bool is_on_host = size() > 2 && rank() == 1;
    return {!is_on_host && (round % 4 != 3 || rank() != 0), !is_on_host && (round % 4 != 2 || rank() != 0)};
  }
  /// So many calls of `bytes` have gone by messages.
  static void expect_messages(std::uint64_t before, int calls, std::size_t bytes) {
    constexpr std::size_t least = 16 << 10;
    if (may_be_combined()) {
      EXPECT_EQ(before + (bytes < least ? 0 : static_cast<std::uint64_t>(calls)), reductions());
    }
  }

  template <class Number, class Combine>
  void expect_all_reduced(MPI_Op op, MPI_Datatype datatype, Combine combine) {
    constexpr int calls = 6;
    const std::uint64_t before = reductions();
    for (int round = 0; round < calls; ++round) {
      const auto [operand_on_gpu, result_on_gpu] = places(round);
      const bool is_in_place = round % 2 == 1;
      const std::vector<Number> mine = operands_of<Number>(rank(), count(), round);
      NumberBuffer<Number> out(mine, operand_on_gpu);
      NumberBuffer<Number> in(is_in_place ? mine : std::vector<Number>(count()), result_on_gpu);
      ASSERT_EQ(MPI_SUCCESS,
                MPI_Allreduce(is_in_place ? MPI_IN_PLACE : out.data(), in.data(), length_, datatype, op, all_));
      ASSERT_TRUE(wanted_of<Number>(count(), round, combine) == in.values()) << "round " << round;
      ASSERT_TRUE(mine == out.values()) << "round " << round;
    }
    expect_messages(before, calls, count() * sizeof(Number));
  }

  /// The result is that share of all numbers, and nothing behind it. In place, what is behind has no value.
  static void expect_share(const std::vector<int>& reduced, std::size_t first, std::size_t count,
                           const std::vector<int>& result, bool is_in_place) {
    ASSERT_TRUE(std::equal(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(count),
                           reduced.begin() + static_cast<std::ptrdiff_t>(first)));
    if (!is_in_place) {
      ASSERT_EQ(none, result[count]);
    }
  }

  std::size_t count() const { return static_cast<std::size_t>(length_); }

  const int length_ = GetParam();
  MPI_Comm all_ = MPI_COMM_NULL;
};

TEST_P(Reductions, ToAll) {
  const std::uint64_t before = kernels();
  expect_all_reduced<int>(MPI_SUM, MPI_INT, sum);
  if (may_be_combined() && length_ > 40'000 && (size() == 2 || rank() != 1)) {
    EXPECT_LT(before, kernels());
  }
}

TEST_P(Reductions, OfOtherNumbers) {
  const auto least = [](auto a, auto b) { return std::min(a, b); };
  const auto greatest = [](auto a, auto b) { return std::max(a, b); };
  expect_all_reduced<double>(MPI_SUM, MPI_DOUBLE, sum);
  expect_all_reduced<float>(MPI_MIN, MPI_FLOAT, least);
  expect_all_reduced<long>(MPI_MAX, MPI_LONG, greatest);
  expect_all_reduced<std::uint32_t>(MPI_PROD, MPI_UINT32_T, [](auto a, auto b) { return a * b; });
  expect_all_reduced<std::complex<double>>(MPI_SUM, MPI_C_DOUBLE_COMPLEX, sum);
}

/// Other operations and datatypes are the library's.
TEST_P(Reductions, ThatTheLibraryMakes) {
  const std::uint64_t before = reductions();
  const std::vector<int> mine = operands_of<int>(rank(), count(), 0);
  NumberBuffer<int> out(mine, true), in(std::vector<int>(count()), true);
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(out.data(), in.data(), length_, MPI_INT, MPI_BXOR, all_));
  EXPECT_TRUE(wanted_of<int>(count(), 0, [](int a, int b) { return a ^ b; }) == in.values());
  ASSERT_EQ(MPI_SUCCESS, MPI_Scan(out.data(), in.data(), length_, MPI_INT, MPI_SUM, all_));
  std::vector<int> wanted = operands_of<int>(0, count(), 0);
  for (int from = 1; from <= rank(); ++from) {
    for (std::size_t i = 0; i < count(); ++i) wanted[i] += operand_of(from, i, 0);
  }
  EXPECT_TRUE(wanted == in.values());
  EXPECT_EQ(before, reductions());
}

TEST_P(Reductions, ToOneRank) {
  constexpr int calls = 6;
  const std::uint64_t before = reductions();
  for (int round = 0; round < calls; ++round) {
    const int root = round % size();
    const auto [operand_on_gpu, result_on_gpu] = places(round);
    const bool is_in_place = is_root(root) && round >= calls / 2;
    const std::vector<int> mine = operands_of<int>(rank(), count(), round);
    NumberBuffer<int> out(mine, operand_on_gpu), in(is_in_place ? mine : std::vector<int>(count()), result_on_gpu);
    ASSERT_EQ(MPI_SUCCESS, MPI_Reduce(is_in_place ? MPI_IN_PLACE : out.data(), is_root(root) ? in.data() : nullptr,
                                      length_, MPI_INT, MPI_SUM, root, all_));
    if (is_root(root)) {
      ASSERT_TRUE(wanted_of<int>(count(), round, sum) == in.values()) << "round " << round;
    }
    ASSERT_TRUE(mine == out.values()) << "round " << round;
  }
  expect_messages(before, calls, count() * sizeof(int));
}

TEST_P(Reductions, ScatteredInBlocks) {
  constexpr int calls = 4;
  const std::uint64_t before = reductions();
  const std::size_t all = count() * ranks();
  for (int round = 0; round < calls; ++round) {
    const auto [operand_on_gpu, result_on_gpu] = places(round);
    const bool is_in_place = round >= calls / 2;
    const std::vector<int> mine = operands_of<int>(rank(), all, round);
    NumberBuffer<int> out(mine, operand_on_gpu),
        in(is_in_place ? mine : std::vector<int>(count() + 1, none), result_on_gpu);
    ASSERT_EQ(MPI_SUCCESS, MPI_Reduce_scatter_block(is_in_place ? MPI_IN_PLACE : out.data(), in.data(), length_,
                                                    MPI_INT, MPI_SUM, all_));
    const std::vector<int> reduced = wanted_of<int>(all, round, sum);
    expect_share(reduced, count() * static_cast<std::size_t>(rank()), count(), in.values(), is_in_place);
  }
  expect_messages(before, calls, all * sizeof(int));
}

/// Shares of different lengths; one rank's is empty. (MPICH 5.0.2 aborts in place where a share is longer than all
/// shares before it.)
TEST_P(Reductions, ScatteredUnevenly) {
  constexpr int calls = 4;
  const std::uint64_t before = reductions();
  std::vector<int> counts(ranks());
  for (std::size_t k = 0; k < ranks(); ++k) counts[k] = k == 1 ? 0 : length_ + 40 - 8 * static_cast<int>(k);
  std::size_t all = 0, own = 0;
  for (std::size_t k = 0; k < ranks(); ++k) {
    if (k == static_cast<std::size_t>(rank())) own = all;
    all += static_cast<std::size_t>(counts[k]);
  }
  const auto own_count = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank())]);
  for (int round = 0; round < calls; ++round) {
    const auto [operand_on_gpu, result_on_gpu] = places(round);
    // At some ranks, which MPI_Reduce_scatter alone allows.
    const bool is_in_place = (round + rank()) % 2 == 1;
    const std::vector<int> mine = operands_of<int>(rank(), all, round);
    NumberBuffer<int> out(mine, operand_on_gpu),
        in(is_in_place ? mine : std::vector<int>(own_count + 1, none), result_on_gpu);
    void* const result = own_count == 0 && !is_in_place ? nullptr : in.data();
    ASSERT_EQ(MPI_SUCCESS, MPI_Reduce_scatter(is_in_place ? MPI_IN_PLACE : out.data(), result, counts.data(), MPI_INT,
                                              MPI_SUM, all_));
    expect_share(wanted_of<int>(all, round, sum), own, own_count, in.values(), is_in_place);
  }
  expect_messages(before, calls, all * sizeof(int));
}

/// Numbers whose sum depends on the order: every rank has the same bits.
TEST_P(Reductions, AgreeOnEveryBit) {
  std::vector<float> mine(count());
  for (std::size_t i = 0; i < count(); ++i)
    mine[i] = std::sin(static_cast<float>(i * 3 + static_cast<std::size_t>(rank()))) / 3;
  NumberBuffer<float> out(mine, true), in(std::vector<float>(count()), true);
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(out.data(), in.data(), length_, MPI_FLOAT, MPI_SUM, all_));
  const std::vector<float> own = in.values();
  std::vector<float> of_first = own;
  MPI_Bcast(of_first.data(), length_, MPI_FLOAT, 0, all_);
  EXPECT_EQ(0, std::memcmp(own.data(), of_first.data(), own.size() * sizeof(float)));
}

/// No number, whose place among the others says what the least is: kernels and the CPU, where some ranks combine,
/// agree.
TEST_P(Reductions, AgreeOnNoNumber) {
  std::vector<float> mine(count());
  for (std::size_t i = 0; i < count(); ++i) {
    const bool is_none = i % static_cast<std::size_t>(size() + 1) == static_cast<std::size_t>(rank());
    mine[i] = is_none ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i);
  }
  NumberBuffer<float> out(mine, rank() % 2 == 0), in(std::vector<float>(count()), rank() % 2 == 0);
  const std::uint64_t before = reductions();
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(out.data(), in.data(), length_, MPI_FLOAT, MPI_MIN, all_));
  if (before == reductions()) return;  // the library's: an MPI library need not agree
  const std::vector<float> own = in.values();
  std::vector<float> of_first = own;
  MPI_Bcast(of_first.data(), length_, MPI_FLOAT, 0, all_);
  EXPECT_EQ(0, std::memcmp(own.data(), of_first.data(), own.size() * sizeof(float)));
}

/// Sums that are rounded go one way at every length, unless two ranks alone have them.
TEST_P(Reductions, ThatAreRoundedGoOneWay) {
  constexpr int calls = 3;
  NumberBuffer<float> out(operands_of<float>(rank(), count(), 0), true), in(std::vector<float>(count()), true);
  const std::uint64_t before = reductions();
  for (int round = 0; round < calls; ++round)
    ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(out.data(), in.data(), length_, MPI_FLOAT, MPI_SUM, all_));
  constexpr std::size_t least = 256 << 10;
  if (size() > 2 && count() * sizeof(float) < least) {
    EXPECT_EQ(before, reductions());
  } else {
    expect_messages(before, calls, count() * sizeof(float));
  }
  EXPECT_TRUE(wanted_of<float>(count(), 0, sum) == in.values());
}

/// The rank whose kernel fails tells, and no other rank waits for it.
TEST_P(Reductions, WhoseKernelFails) {
  if (!may_be_combined() || !gpu_fails_on_request()) return;
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  NumberBuffer<int> out(operands_of<int>(rank(), count(), 0), true), in(std::vector<int>(count()), true);
  const bool fails = rank() == 1 && length_ > 100;
  if (fails) fail_next("reduce");
  const int code = MPI_Allreduce(out.data(), in.data(), length_, MPI_INT, MPI_SUM, all_);
  EXPECT_EQ(fails, code != MPI_SUCCESS);
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(out.data(), in.data(), length_, MPI_INT, MPI_SUM, all_));
  EXPECT_TRUE(wanted_of<int>(count(), 0, sum) == in.values());
}

/// Operands at addresses that are no multiples of a number's size, which kernels cannot read.
TEST_P(Reductions, OfMisalignedNumbers) {
  const std::vector<int> mine = operands_of<int>(rank(), count(), 0);
  const auto* const first = reinterpret_cast<const char*>(mine.data());
  std::vector<char> bytes(1);
  bytes.insert(bytes.end(), first, first + mine.size() * sizeof(int));
  NumberBuffer<char> out(bytes, true), in(std::vector<char>(bytes.size()), true);
  char *const from = static_cast<char*>(out.data()) + 1, *const to = static_cast<char*>(in.data()) + 1;
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(from, to, length_, MPI_INT, MPI_SUM, all_));
  const std::vector<char> got = in.values();
  const std::vector<int> wanted = wanted_of<int>(count(), 0, sum);
  EXPECT_EQ(0, std::memcmp(got.data() + 1, wanted.data(), wanted.size() * sizeof(int)));
}

/// A mistake, which the library tells. (MPICH 5.0.2 looks neither at counts nor at datatypes and operations.)
TEST_P(Reductions, AtARootThatIsNoRank) {
  if (!under_gapless() || library_reads_gpu()) GTEST_SKIP() << "libraries crash where they read what is not there";
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  NumberBuffer<int> out(std::vector<int>(count()), true), in(std::vector<int>(count()), true);
  const std::uint64_t before = reductions();
  EXPECT_NE(MPI_SUCCESS, MPI_Reduce(out.data(), in.data(), length_, MPI_INT, MPI_SUM, size(), all_));
  EXPECT_EQ(before, reductions());
}

INSTANTIATE_TEST_SUITE_P(Lengths, Reductions, testing::Values(100, 40'000, 100'003));

/// More than the workspace has room for.
TEST(LongReductions, GoInRounds) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  constexpr int count = 5'000'003;
  const std::vector<int> mine = operands_of<int>(rank(), count, 1);
  NumberBuffer<int> in(mine, true);
  ASSERT_EQ(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, in.data(), count, MPI_INT, MPI_SUM, all));
  const std::vector<int> wanted = wanted_of<int>(count, 1, sum);
  EXPECT_TRUE(wanted == in.values());

  if (may_be_combined()) {  // MPICH 5.0.2 aborts
    NumberBuffer<int> scattered(mine, true);
    // A share of several rounds, whose result overlaps its own operand and others'.
    constexpr int before = 1000;
    std::vector<int> counts(static_cast<std::size_t>(size()), 0);
    counts.front() = before;
    counts.back() = count - before;
    ASSERT_EQ(MPI_SUCCESS, MPI_Reduce_scatter(MPI_IN_PLACE, scattered.data(), counts.data(), MPI_INT, MPI_SUM, all));
    const std::vector<int> result = scattered.values();
    if (rank() == size() - 1) {
      EXPECT_TRUE(std::equal(wanted.begin() + before, wanted.end(), result.begin()));
    }
  }
  MPI_Comm_free(&all);
}

}  // namespace
}  // namespace gapless::test

// A rank without heap memory in a call that goes from GPU to GPU, or that all ranks vote on: it takes part for the
// others, who would wait for it, and gets the error alone.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/allocations.hpp"
#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int length = 6000, none = -1;
constexpr std::size_t span = 2 * length;
/// Exchanges after which peers have mapped what they are told of.
constexpr int rounds_before = 8;

std::uint64_t combined() {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(core_function("gapless_combined_received"));
  return function != nullptr ? function() : 0;
}

bool is_true_anywhere(bool mine) {
  int flag = mine ? 1 : 0, any = 0;
  MPI_Allreduce(&flag, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

/// What came of a call of a rank that may have been refused memory.
struct Outcome {
  int code;
  bool is_refused;
};
/// Makes the call; at a poor rank, allocations behind the first `after` are refused.
template <class Call>
Outcome call_with(bool is_poor, unsigned after, NoNew::Refused refused, Call call) {
  if (!is_poor) return {call(), false};
  const NoNew no_memory(after, refused);
  const int code = call();
  return {code, no_memory.is_refused()};
}
/// A poor rank may get an error, and no other.
void expect_no_other_error(bool is_poor, int code) {
  EXPECT_TRUE(code == MPI_SUCCESS || (is_poor && error_class(code) == MPI_ERR_NO_MEM)) << code;
}

/// Every second int of as many as there are ranks, by MPI_Alltoallw.
class WithoutHeap : public testing::Test {
 protected:
  WithoutHeap() {
    MPI_Comm_dup(MPI_COMM_WORLD, &all_);
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
    for (std::size_t k = 0; k < ranks_; ++k) places_.push_back(static_cast<int>(k * span * sizeof(int)));
  }
  ~WithoutHeap() override { MPI_Comm_free(&all_); }

  std::vector<int> values_of(int of_rank, int round) const {
    return counting(ranks_ * span, of_rank * 1'000'000 + round);
  }
  int exchange(int round) {
    out_.set(values_of(rank(), round));
    in_.set(std::vector<int>(ranks_ * span, none));
    return call();
  }
  int call() {
    return MPI_Alltoallw(out_.data(), ones_.data(), places_.data(), types_.data(), in_.data(), ones_.data(),
                         places_.data(), types_.data(), all_);
  }
  /// Has that rank's part arrived? Else there may be zeros, where `may_be_zeros`.
  bool has_arrived(int from, int round, bool may_be_zeros) const {
    const std::vector<int> found = in_.values(), sent = values_of(from, round);
    const auto part = static_cast<std::size_t>(from) * span, own = static_cast<std::size_t>(rank()) * span;
    bool is_right = true, is_zeros = true;
    for (std::size_t i = 0; i < span; ++i) {
      const bool is_gap = i % 2 != 0;
      is_right = is_right && found[part + i] == (is_gap ? none : sent[own + i]);
      is_zeros = is_zeros && found[part + i] == (is_gap ? none : 0);
    }
    return is_right || (may_be_zeros && is_zeros);
  }

  const std::size_t ranks_ = static_cast<std::size_t>(size());
  const Owned gaps_{strided(length, 1, 2)};
  const std::vector<MPI_Datatype> types_ = std::vector<MPI_Datatype>(ranks_, gaps_);
  const std::vector<int> ones_ = std::vector<int>(ranks_, 1);
  std::vector<int> places_;
  Ints out_{values_of(rank(), 0), true}, in_{values_of(rank(), 0), true};
  MPI_Comm all_ = MPI_COMM_NULL;
};

TEST_F(WithoutHeap, InAnExchangeFromGpuToGpu) {
  int round = 0;
  for (; round < rounds_before; ++round) EXPECT_EQ(MPI_SUCCESS, exchange(round));
  for (const NoNew::Refused refused : {NoNew::Refused::one, NoNew::Refused::all}) {
    for (int poor = 0; poor < size(); ++poor) {
      bool goes_on = true;
      for (unsigned after = 0; goes_on; ++after, ++round) {
        out_.set(values_of(rank(), round));
        in_.set(std::vector<int>(ranks_ * span, none));
        const auto [code, is_refused] = call_with(rank() == poor, after, refused, [this] { return call(); });
        expect_no_other_error(rank() == poor, code);
        for (int from = 0; code == MPI_SUCCESS && from < size(); ++from)
          EXPECT_TRUE(has_arrived(from, round, from == poor)) << from << " after " << after << " of " << poor;
        goes_on = is_true_anywhere(is_refused);
      }
    }
  }
  // What the others had offered the rank was released, so parts go combined as before.
  const std::uint64_t before = combined();
  EXPECT_EQ(MPI_SUCCESS, exchange(++round));
  for (int from = 0; from < size(); ++from) EXPECT_TRUE(has_arrived(from, round, false));
  EXPECT_EQ(before + ranks_ - 1, combined());
}

/// The rank takes part in both exchanges of a reduction. Its share of the result is lost where it cannot combine.
TEST_F(WithoutHeap, InAReduction) {
  constexpr int numbers = 30'000, root = 0;
  Ints operand(counting(numbers, rank()), true), result(std::vector<int>(numbers), true);
  std::vector<int> wanted(numbers);
  for (int from = 0; from < size(); ++from) {
    for (int i = 0; i < numbers; ++i) wanted[static_cast<std::size_t>(i)] += from + i;
  }
  const auto reduce = [&] { return MPI_Reduce(operand.data(), result.data(), numbers, MPI_INT, MPI_SUM, root, all_); };
  for (int round = 0; round < rounds_before; ++round) EXPECT_EQ(MPI_SUCCESS, reduce());
  for (const NoNew::Refused refused : {NoNew::Refused::one, NoNew::Refused::all}) {
    for (int poor = 0; poor < size(); ++poor) {
      bool goes_on = true;
      for (unsigned after = 0; goes_on; ++after) {
        result.set(std::vector<int>(numbers, none));
        const auto [code, is_refused] = call_with(rank() == poor, after, refused, reduce);
        expect_no_other_error(rank() == poor, code);
        if (!is_true_anywhere(code != MPI_SUCCESS) && rank() == root) {
          EXPECT_TRUE(wanted == result.values()) << "after " << after << " of " << poor;
        }
        goes_on = is_true_anywhere(is_refused);
      }
    }
  }
  EXPECT_EQ(MPI_SUCCESS, reduce());
  if (rank() == root) {
    EXPECT_TRUE(wanted == result.values());
  }
}

TEST_F(WithoutHeap, InAWindowsCreation) {
  for (int poor = 0; poor < size(); ++poor) {
    bool goes_on = true;
    for (unsigned after = 0; goes_on; ++after) {
      int memory = 0;
      MPI_Win window = MPI_WIN_NULL;
      const auto [code, is_refused] = call_with(rank() == poor, after, NoNew::Refused::one, [&] {
        return MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, all_, &window);
      });
      EXPECT_EQ(MPI_SUCCESS, code);
      if (code == MPI_SUCCESS) MPI_Win_free(&window);
      goes_on = is_true_anywhere(is_refused);
    }
  }
}

}  // namespace
}  // namespace gapless::test
